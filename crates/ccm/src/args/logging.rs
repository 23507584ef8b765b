//! Flags of the log output.

use clap::Args;

/// Flags of the log output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingArgs {
    /// Verbosity: 0 to 3 is info, 4 and 5 debug, 6 and more trace.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: u8,
    /// `text` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub logging_format: String,
}

//! Flags of `demo`.

/// Flags of the demonstration.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Keep the simulated cluster running, and print how to reach it with kubectl and the OpenStack client.
    #[arg(long)]
    pub(super) keep: bool,
    /// Show every connection that was measured, as tables.
    #[arg(long)]
    pub(super) verbose: bool,
    /// Write the controller's log to standard error.
    #[arg(long)]
    pub(super) log: bool,
}

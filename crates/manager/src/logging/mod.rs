//! Log output: text or JSON, with klog's verbosity levels. Each record is one line, whatever it contains.

mod fields;
pub mod json;
mod text;

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::args::LoggingArgs;

/// The level of a klog verbosity: 0 to 3 info, 4 and 5 debug, above trace.
fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        0..=3 => LevelFilter::INFO,
        4 | 5 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    }
}

/// Starts logging to standard error. `RUST_LOG` refines what `-v` sets.
pub fn start(arguments: &LoggingArgs) {
    begin(arguments, true);
}

/// Starts logging without the names of modules, which mean nothing to users of a program with another name.
pub(crate) fn start_without_modules(arguments: &LoggingArgs) {
    begin(arguments, false);
}

fn begin(arguments: &LoggingArgs, names_modules: bool) {
    let level = level(arguments.verbosity);
    // Libraries below the HTTP layer log bytes; their trace output does not help to debug a cluster.
    // Errors of the connection layer are logged by the callers, with server and cause.
    let quiet = "hyper=info,kube_client=info,kube_client::client::builder=off,hyper_util=info,rustls=info,tower=info,reqwest=info,h2=info";
    let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| format!("{level},{quiet}"));
    let filter = EnvFilter::builder().with_default_directive(level.into()).parse_lossy(filter);
    let lines = fmt::layer().with_ansi(io::stderr().is_terminal()).fmt_fields(JsonFields::new());
    let lines = lines.with_writer(|| OneLine(io::stderr()));
    let log = match arguments.logging_format.as_str() {
        "json" => lines.event_format(json::Json).with_filter(filter).boxed(),
        _ => lines.event_format(text::Text { names_modules }).with_filter(filter).boxed(),
    };
    if let Err(error) = tracing_subscriber::registry().with(log).try_init() {
        tracing::warn!(%error, "logging was started before");
    }
}

/// Writes each record as one line: a line break within it becomes `\n`. Log collectors take a second line as another
/// record, which a foreign text could forge.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    /// Takes a whole record, as the formatter hands it over.
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let line = record.strip_suffix(b"\n").unwrap_or(record);
        if line.contains(&b'\n') {
            let lines: Vec<&[u8]> = line.split(|byte| *byte == b'\n').collect();
            let mut joined = lines.join(&b"\\n"[..]);
            joined.push(b'\n');
            self.0.write_all(&joined)?;
        } else {
            self.0.write_all(record)?;
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_follows_klog() {
        assert_eq!(level(0), LevelFilter::INFO);
        assert_eq!(level(2), LevelFilter::INFO);
        assert_eq!(level(4), LevelFilter::DEBUG);
        assert_eq!(level(6), LevelFilter::TRACE);
        assert_eq!(level(10), LevelFilter::TRACE);
    }

    #[test]
    fn a_record_is_one_line() {
        let mut written = Vec::new();
        let mut output = OneLine(&mut written);
        output.write_all(b"INFO plan=create\ncreate\ndone\n").unwrap();
        output.write_all(b"INFO next\n").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "INFO plan=create\\ncreate\\ndone\nINFO next\n");
    }
}

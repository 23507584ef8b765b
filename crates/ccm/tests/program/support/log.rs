//! What the program logs, of those who want to know.

use std::cell::RefCell;
use std::io::{self, Write};

use tracing::{Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::reconciliation;

thread_local! {
    /// What the program of this thread logs, while somebody wants to know.
    static LINES: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct LinesWriter;

impl Write for LinesWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.extend_from_slice(text)));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps lines, part of the one subscriber of all tests.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let wanted = dynamic_filter_fn(|about, _| {
        *about.level() <= Level::INFO && LINES.try_with(|lines| lines.borrow().is_some()).unwrap_or(false)
    })
    // Whoever logs more need not make up the words.
    .with_max_level_hint(LevelFilter::INFO);
    tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| LinesWriter).with_filter(wanted)
}

/// Shows what `RUST_LOG` asks for, in the output of the test.
pub(super) fn shown<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let filter = EnvFilter::from_default_env();
    tracing_subscriber::fmt::layer().with_ansi(false).with_test_writer().with_filter(filter)
}

/// What is logged while `work` goes on, and its result.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
    reconciliation::follow();
    LINES.set(Some(Vec::new()));
    let result = work();
    (result, String::from_utf8(LINES.take().unwrap()).unwrap())
}

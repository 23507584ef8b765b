//! What the terminal of the reader can show, and what is told to one who waits.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use openstack_ccm_doctor::output::table::Style;

/// A look that takes no longer than this needs no word.
const PATIENCE: Duration = Duration::from_secs(1);

/// Colours and width as the terminal has them; neither where the output goes into a file or a pipe.
pub(super) fn style(short: bool) -> Style {
    let is_terminal = std::io::stdout().is_terminal();
    // https://no-color.org: any value but the empty one.
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let width = is_terminal.then(width).flatten();
    Style { short, colours: is_terminal && !no_colour && !is_dumb, width }
}

/// `COLUMNS`, which shells keep; else what the terminal says.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| Some(usize::from(rustix::termios::tcgetwinsize(std::io::stdout()).ok()?.ws_col)))
}

/// Tells a person who waits what is being looked at.
pub(super) struct Progress {
    start: Instant,
    is_shown: bool,
    written: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), is_shown: std::io::stderr().is_terminal(), written: false }
    }

    /// What comes now.
    pub(super) fn say(&mut self, what: &str) {
        if self.is_shown && self.start.elapsed() >= PATIENCE {
            // Nobody misses it where it cannot be shown.
            let _ = write!(std::io::stderr(), "\r\u{1b}[K{what} ...");
            self.written = true;
        }
    }

    /// Takes the last word away.
    pub(super) fn end(&mut self) {
        if self.written {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
            self.written = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

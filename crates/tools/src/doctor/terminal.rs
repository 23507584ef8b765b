//! The capabilities of the user's terminal.

use std::io::IsTerminal as _;

use openstack_ccm_doctor::output::table::Style;

/// Returns colours and width of the terminal; neither where the output goes to a file or a pipe.
pub(super) fn style(short: bool) -> Style {
    let is_terminal = std::io::stdout().is_terminal();
    // https://no-color.org: any value but the empty one.
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let width = is_terminal.then(width).flatten();
    Style { short, colours: is_terminal && !no_colour && !is_dumb, width }
}

/// Returns `COLUMNS`, which shells maintain, or else the terminal's width.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| Some(usize::from(rustix::termios::tcgetwinsize(std::io::stdout()).ok()?.ws_col)))
}

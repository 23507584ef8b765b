//! Lines for people, as `linkerd check` writes them.

use std::fmt::Write as _;

use super::Outcome;
use crate::code::Severity;
use crate::finding::{Check, Finding};
use crate::report::{Counts, Report};
use openstack_ccm_core::text::printable;

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Only what is not well.
    pub short: bool,
    pub colours: bool,
    /// Columns of the terminal; absent where lines may be of any length.
    pub width: Option<usize>,
}

/// Narrower than that nothing is wrapped.
const NARROWEST: usize = 40;

/// Everything, as text.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    for report in &outcome.reports {
        page.report(report);
    }
    if let Some(checks) = &outcome.leftovers {
        page.section("leftovers", checks);
    }
    let counts = outcome.counts();
    for report in &outcome.reports {
        page.line("", &report.sentence());
    }
    page.line("", &counts.to_string());
    page.text
}

/// Some checks and what they come to.
pub fn checks(title: &str, checks: &[Check], style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.section(title, checks);
    page.line("", &Counts::of(checks).to_string());
    page.text
}

struct Page {
    text: String,
    style: Style,
}

#[derive(Clone, Copy)]
enum Colour {
    Green = 32,
    Yellow = 33,
    Red = 31,
    Grey = 90,
}

impl Page {
    fn report(&mut self, report: &Report) {
        let before = self.text.len();
        let title = format!("{} at {}", report.subject, report.destinations.join(", "));
        let title = if report.destinations.is_empty() { report.subject.clone() } else { title };
        self.line("", &title);
        self.text.push('\n');
        let head = self.text.len();
        for hop in &report.hops {
            self.section(hop.hop.title(), &hop.checks);
        }
        if self.text.len() == head && self.style.short {
            self.text.truncate(before);
        }
    }

    fn section(&mut self, title: &str, checks: &[Check]) {
        let shown: Vec<&Check> = checks.iter().filter(|check| !self.style.short || is_odd(check)).collect();
        if shown.is_empty() {
            return;
        }
        self.line("", title);
        self.line("", &"-".repeat(title.chars().count()));
        for check in shown {
            self.check(check);
        }
        self.text.push('\n');
    }

    fn check(&mut self, check: &Check) {
        match check {
            Check::Ok(text) => self.marked("√", Colour::Green, text),
            Check::Skipped(text) => self.marked("-", Colour::Grey, &format!("skipped: {text}")),
            Check::Unknown(text) => self.marked("?", Colour::Yellow, &format!("unknown: {text}")),
            Check::Found(finding) => self.finding(finding),
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let Finding { code, text, evidence, fix, node: _, partial: _ } = finding;
        let (mark, colour) = match finding.severity() {
            Severity::Error => ("×", Colour::Red),
            Severity::Warning => ("‼", Colour::Yellow),
            Severity::Info => ("i", Colour::Green),
        };
        self.marked(mark, colour, &format!("{text} [{code}]"));
        for one in evidence {
            let parts = [one.object.as_str(), one.field.as_str()];
            let what: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.line("    ", &format!("{}: {}", what.join(" "), one.value));
        }
        if let Some(fix) = fix {
            // One line, also where it is longer than the terminal: it is pasted.
            let _ = writeln!(self.text, "    fix: {}", printable(&fix.to_string()));
        }
        self.line("    ", &format!("see {}", code.anchor()));
    }

    fn marked(&mut self, mark: &str, colour: Colour, text: &str) {
        if self.style.colours {
            let _ = write!(self.text, "\u{1b}[{}m{mark}\u{1b}[0m ", colour as u8);
        } else {
            let _ = write!(self.text, "{mark} ");
        }
        self.wrapped(2, 2, text);
    }

    fn line(&mut self, indent: &str, text: &str) {
        self.text.push_str(indent);
        self.wrapped(indent.len(), indent.len() + 2, text);
    }

    /// Writes a text that begins in a column; further lines are indented. A word is never broken.
    fn wrapped(&mut self, start: usize, indent: usize, text: &str) {
        let text = printable(text);
        let width = self.style.width.filter(|width| *width >= NARROWEST).unwrap_or(usize::MAX);
        let mut column = start;
        for (place, word) in text.split(' ').enumerate() {
            let length = word.chars().count();
            if place > 0 && column.saturating_add(1 + length) > width {
                self.text.push('\n');
                self.text.push_str(&" ".repeat(indent));
                column = indent;
            } else if place > 0 {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(word);
            column += length;
        }
        self.text.push('\n');
    }
}

fn is_odd(check: &Check) -> bool {
    match check {
        Check::Ok(_) | Check::Skipped(_) => false,
        Check::Unknown(_) => true,
        Check::Found(finding) => finding.severity() > Severity::Info,
    }
}

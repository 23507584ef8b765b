//! The report as lines for users, in the style of `linkerd check`.

use std::fmt::Write as _;

use super::Outcome;
use crate::MAX_NAMES;
use crate::code::{Code, Severity};
use crate::finding::{Check, Finding, Gap};
use crate::question::HopReport;
use crate::report::{Counts, Report};
use openstack_ccm_core::text::{printable, some_of};

/// The style of the lines.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to show only problems.
    pub short: bool,
    pub colours: bool,
    /// Columns of the terminal; absent for lines of any length.
    pub width: Option<usize>,
}

/// The narrowest width at which lines are wrapped.
const MIN_WRAP_WIDTH: usize = 40;

/// Renders the outcome as text.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    match outcome.reports.as_slice() {
        [report] => page.report(report),
        reports => page.causes(reports),
    }
    if let Some(checks) = &outcome.leftovers {
        page.section("leftovers", checks);
    } else if outcome.reports.is_empty() && outcome.absent.is_empty() {
        page.line("", "The cluster has no Service of type LoadBalancer.");
    }
    for absent in &outcome.absent {
        page.marked("×", Colour::Red, absent);
    }
    let many = outcome.reports.len() > 1;
    for report in outcome.reports.iter().filter(|report| !(many && style.short && report.is_quiet())) {
        let green = report.is_quiet().then_some(("√", Colour::Green));
        page.conclusion(green.filter(|_| many), &report.sentence());
    }
    if many {
        page.total(&outcome.reports);
    }
    page.line("", &outcome.counts().to_string());
    page.text
}

/// Renders some checks with their counts.
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
        let unchecked = self.unchecked(report);
        for hop in &report.hops {
            let mut checks: Vec<&Check> = hop
                .checks()
                .iter()
                .filter(|check| !unchecked.iter().any(|one| says_the_same(one, check)))
                .collect();
            // Skipped checks are shown only where a hop has no other.
            if checks.iter().any(|check| !matches!(check, Check::Skipped(_))) {
                checks.retain(|check| !matches!(check, Check::Skipped(_)));
            }
            self.section_of(hop.hop().title(), &checks);
        }
        if self.text.len() == head && self.style.short {
            self.text.truncate(before);
        }
    }

    /// Writes each gap of several hops once, with these hops. Returns these results.
    fn unchecked(&mut self, report: &Report) -> Vec<Check> {
        let mut said: Vec<Check> = Vec::new();
        let all = report.hops.iter().flat_map(HopReport::checks);
        for check in all.filter(|check| matches!(check, Check::Unknown(_))) {
            let hops =
                report.hops.iter().filter(|hop| hop.checks().iter().any(|one| says_the_same(one, check)));
            let titles: Vec<&str> = hops.map(|hop| hop.hop().title()).collect();
            if let Check::Unknown(unknown) = check
                && titles.len() > 1
                && !said.iter().any(|one| says_the_same(one, check))
            {
                let what = unknown.gap.title();
                let text = format!("{what}: {}, for {}", unknown.text, titles.join(", "));
                self.marked("?", Colour::Yellow, &text);
                said.push(check.clone());
            }
        }
        if !said.is_empty() {
            self.text.push('\n');
        }
        said
    }

    /// Writes the problems of several Services: each cause once, with the Services that have it.
    fn causes(&mut self, reports: &[Report]) {
        let mut causes: Vec<(&Check, Vec<&str>)> = Vec::new();
        for report in reports {
            for check in report.hops.iter().flat_map(HopReport::checks).filter(|check| is_odd(check)) {
                match causes.iter_mut().find(|(known, _)| is_same_cause(known, check)) {
                    Some((_, names)) => {
                        if names.last() != Some(&report.subject.as_str()) {
                            names.push(&report.subject);
                        }
                    }
                    None => causes.push((check, vec![&report.subject])),
                }
            }
        }
        for (check, names) in causes {
            let count = names.len();
            let services = if count == 1 { "1 Service".to_owned() } else { format!("{count} Services") };
            self.check(check);
            let first = if count == 1 { "" } else { ", shown for the first" };
            self.line("    ", &format!("in {services}{first}: {}", some_of(&names, MAX_NAMES)));
            self.text.push('\n');
        }
    }

    fn conclusion(&mut self, mark: Option<(&str, Colour)>, sentence: &str) {
        match mark {
            Some((mark, colour)) => self.marked(mark, colour, sentence),
            None => self.line("", sentence),
        }
    }

    fn total(&mut self, reports: &[Report]) {
        let green = reports.iter().filter(|report| report.is_green()).count();
        self.line("", &format!("{} Services: no fault found for {green} of them", reports.len()));
    }

    fn section(&mut self, title: &str, checks: &[Check]) {
        self.section_of(title, &checks.iter().collect::<Vec<_>>());
    }

    fn section_of(&mut self, title: &str, checks: &[&Check]) {
        let shown: Vec<&Check> =
            checks.iter().copied().filter(|check| !self.style.short || is_odd(check)).collect();
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
            Check::Unknown(unknown) => {
                self.marked("?", Colour::Yellow, &format!("{}: {}", unknown.gap.title(), unknown.text));
            }
            Check::Found(finding) => self.finding(finding),
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let Finding { code, text, evidence, fix, .. } = finding;
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
            // A fix stays on one line, even if longer than the terminal: users paste it.
            let _ = writeln!(self.text, "    fix: {}", printable(&fix.to_string()));
        } else {
            self.line("    ", code.entry().remedy);
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

    /// Writes a text that begins at a column, and indents its further lines. Words are never broken.
    fn wrapped(&mut self, start: usize, indent: usize, text: &str) {
        let text = printable(text);
        let width = self.style.width.filter(|width| *width >= MIN_WRAP_WIDTH).unwrap_or(usize::MAX);
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
        Check::Unknown(unknown) => unknown.gap != Gap::NotSeen,
        Check::Found(finding) => finding.severity() > Severity::Info,
    }
}

/// Returns whether two checks have the same cause. Findings of one code may differ between Services by names and addresses.
fn is_same_cause(one: &Check, other: &Check) -> bool {
    match (one, other) {
        (Check::Found(one), Check::Found(other)) => {
            one.code == other.code && (one.text == other.text || !is_about_a_value(one))
        }
        (one, other) => says_the_same(one, other),
    }
}

/// Returns whether the code is used for different causes: a value, an Event.
fn is_about_a_value(finding: &Finding) -> bool {
    matches!(finding.code, Code::D005 | Code::D504 | Code::D505 | Code::D508 | Code::D512)
}

/// Returns whether two checks say the same, regardless of the packets in a gap's scope.
fn says_the_same(one: &Check, other: &Check) -> bool {
    match (one, other) {
        (Check::Unknown(one), Check::Unknown(other)) => one.text == other.text,
        (one, other) => one == other,
    }
}

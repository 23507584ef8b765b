//! The output of the demo: a line for each chapter, or with `--verbose` a table with all measurements.

use std::io::IsTerminal as _;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use openstack_ccm_doctor::code::Code;
use openstack_ccm_doctor::output::table;
use openstack_ccm_tools::output::print_line;

/// Columns of the tables where standard output is not a terminal.
const LOG_WIDTH: u16 = 120;

const RED: &str = "31";
const GREEN: &str = "32";

/// The style of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    verbose: bool,
    color: bool,
}

impl Style {
    /// Chooses colours only for a terminal, and not where `NO_COLOR` is set (<https://no-color.org>).
    pub(super) fn new(verbose: bool) -> Self {
        let color =
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        Self { verbose, color }
    }

    /// Writes the header above the first chapter.
    pub(super) fn begin(self) -> anyhow::Result<()> {
        if self.verbose {
            return Ok(());
        }
        print_line("A load balancer with PROXY protocol, called by pods of its own cluster and from")?;
        print_line("outside. Every answer is measured in this run; --verbose shows each of them.\n")?;
        print_line(row(["", "cluster", "published", "pods", "outside"]))
    }

    /// Writes doctor's outcome: its first error in a line, or all problems.
    pub(super) fn diagnosis(
        self,
        found: &openstack_ccm_doctor::output::Outcome,
        first: Option<Code>,
    ) -> anyhow::Result<()> {
        if self.verbose {
            let style = table::Style { short: true, colours: self.color, width: None };
            return print_line(format_args!(
                "openstack-ccm doctor default/ingress --output=short\n\n{}",
                table::text(found, style)
            ));
        }
        print_line(match first {
            Some(code) => format!("  doctor says {code}: {}", code.entry().title),
            None => "  doctor finds no error".to_owned(),
        })
    }

    /// Returns a cell in red or green, padded before it is coloured.
    fn painted(self, text: &str, width: usize, color: &str) -> String {
        if self.color { format!("\x1b[1;{color}m{text:<width$}\x1b[0m") } else { format!("{text:<width$}") }
    }
}

/// The kind of client that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A pod of the cluster.
    Pod,
    /// A client outside the cluster.
    Outside,
    /// The cloud itself, for left-over objects.
    Cloud,
}

/// The outcome of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Works,
    /// The backend refused the connection because the PROXY header was missing.
    CutOff,
    /// Something else went wrong.
    Fails,
}

/// One measurement.
pub(super) struct Measurement {
    /// How the situation differs from the line before.
    pub(super) situation: String,
    /// The entry in the status of the Service.
    pub(super) published: String,
    pub(super) asked: Asked,
    pub(super) who: String,
    pub(super) outcome: Outcome,
    /// The outcome in words.
    pub(super) result: String,
    /// Whether this outcome was expected.
    pub(super) expected: bool,
}

/// The heading of a chapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    /// The name, in one word.
    pub(super) name: &'static str,
    /// The cluster, in a few words.
    pub(super) cluster: &'static str,
    /// The published entry, in a few words.
    pub(super) published: &'static str,
    /// The title of the table.
    pub(super) title: &'static str,
    /// What to look for in the table.
    pub(super) explanation: &'static str,
}

/// A chapter with its lines.
pub(super) struct Chapter {
    heading: Heading,
    lines: Vec<Measurement>,
}

impl Chapter {
    /// Creates a chapter without lines.
    pub(super) fn new(heading: Heading) -> Self {
        Self { heading, lines: Vec::new() }
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: Measurement) {
        self.lines.push(line);
    }

    /// Writes the chapter to standard output and returns how many lines are not as expected.
    pub(super) fn print(self, style: Style) -> anyhow::Result<usize> {
        if style.verbose {
            let Heading { title, explanation, .. } = self.heading;
            print_line(format_args!("\n{title}\n{explanation}\n{}", self.table()))?;
        } else {
            print_line(self.summary(style))?;
            for line in self.lines.iter().filter(|line| !line.expected) {
                print_line(format_args!(
                    "          NOT AS EXPECTED: {} {}: {}",
                    line.situation, line.who, line.result
                ))?;
            }
        }
        Ok(self.lines.iter().filter(|line| !line.expected).count())
    }

    fn summary(&self, style: Style) -> String {
        let Heading { name, cluster, published, .. } = self.heading;
        let verdict = |asked: Asked, width: usize| {
            let outcomes: Vec<Outcome> =
                self.lines.iter().filter(|line| line.asked == asked).map(|line| line.outcome).collect();
            verdict(&outcomes)
                .map_or_else(|| " ".repeat(width), |(text, color)| style.painted(text, width, color))
        };
        let last = if self.lines.iter().any(|line| line.asked == Asked::Cloud) {
            Asked::Cloud
        } else {
            Asked::Outside
        };
        row([name, cluster, published, &verdict(Asked::Pod, 9), &verdict(last, 7)]).trim_end().to_owned()
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        if !std::io::stdout().is_terminal() {
            table.set_width(LOG_WIDTH);
        }
        table.set_header(["situation", "status of the Service", "who asks", "what happens", ""]);
        for line in &self.lines {
            let mark = Cell::new(if line.expected { "as expected" } else { "NOT AS EXPECTED" });
            table.add_row([
                Cell::new(&line.situation),
                Cell::new(&line.published),
                Cell::new(&line.who),
                Cell::new(&line.result),
                mark.set_alignment(CellAlignment::Right),
            ]);
        }
        table
    }
}

/// Summarises outcomes as a word with its colour.
fn verdict(outcomes: &[Outcome]) -> Option<(&'static str, &'static str)> {
    let all = |wanted: Outcome| outcomes.iter().all(|outcome| *outcome == wanted);
    match outcomes {
        [] => None,
        _ if all(Outcome::Works) => Some(("ok", GREEN)),
        _ if all(Outcome::CutOff) => Some(("CUT OFF", RED)),
        _ => Some(("FAILS", RED)),
    }
}

fn row([name, cluster, published, pods, outside]: [&str; 5]) -> String {
    format!("{name:<9} {cluster:<27} {published:<20} {pods:<9} {outside}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chapter(outcomes: &[(Asked, Outcome)]) -> Chapter {
        let heading = Heading {
            name: "Break",
            cluster: "Kubernetes 1.36",
            published: "ip, ipMode: VIP",
            title: "",
            explanation: "",
        };
        let mut chapter = Chapter::new(heading);
        for (asked, outcome) in outcomes {
            chapter.line(Measurement {
                situation: String::new(),
                published: String::new(),
                asked: *asked,
                who: String::new(),
                outcome: *outcome,
                result: String::new(),
                expected: true,
            });
        }
        chapter
    }

    #[test]
    fn a_chapter_is_one_line_in_red_and_green() {
        let chapter = chapter(&[
            (Asked::Pod, Outcome::CutOff),
            (Asked::Pod, Outcome::CutOff),
            (Asked::Outside, Outcome::Works),
        ]);
        assert_eq!(
            chapter.summary(Style { verbose: false, color: false }),
            "Break     Kubernetes 1.36             ip, ipMode: VIP      CUT OFF   ok"
        );
        let colored = chapter.summary(Style { verbose: false, color: true });
        assert!(colored.contains("\x1b[1;31mCUT OFF  \x1b[0m \x1b[1;32mok     \x1b[0m"), "{colored:?}");
    }

    #[test]
    fn one_that_fails_among_others_is_seen() {
        assert_eq!(verdict(&[Outcome::Works, Outcome::CutOff]), Some(("FAILS", RED)));
        assert_eq!(verdict(&[Outcome::Works, Outcome::Works]), Some(("ok", GREEN)));
        assert_eq!(verdict(&[]), None);
    }
}

//! What a run will do, what that takes, and when it is late.

use std::time::{Duration, Instant};

use crate::machine::say;

/// All groups on two cores with nothing else to do, measured: from empty caches, and when everything is built.
const FROM_EMPTY_CACHES: Duration = Duration::from_secs(45 * 60);
const FROM_WARM_CACHES: Duration = Duration::from_secs(15 * 60);

/// What a run is about to do.
pub(crate) struct Preface {
    pub groups: usize,
    /// Parts that have to be built, of so many.
    pub missing: usize,
    pub parts: usize,
    /// The most worlds that there will be.
    pub worlds: usize,
    pub budget: Option<Duration>,
}

impl Preface {
    /// The first lines.
    pub(crate) fn text(&self) -> String {
        let Self { groups, missing, parts, worlds, .. } = self;
        let built = match missing {
            0 => format!("all {parts} parts that they need are built"),
            _ => format!("{missing} of the {parts} parts that they need have to be fetched and built first"),
        };
        let limit = self.budget.map_or_else(String::new, |budget| {
            format!(
                " After {} s nothing more is built and no further group is begun: what is left out is named at the end.",
                budget.as_secs()
            )
        });
        format!(
            "{groups} groups of scenarios on real Kubernetes and OpenStack components; {built}. All groups take about {} minutes from empty \
             caches and {} from warm ones, on two cores that have nothing else to do. Worlds that work side by side: at most {worlds}, \
             with 2 GB of memory each. What is built stays in the caches, with 14 GB of disk.{limit}",
            FROM_EMPTY_CACHES.as_secs() / 60,
            FROM_WARM_CACHES.as_secs() / 60,
        )
    }

    /// How long it should take.
    fn expected(&self) -> Duration {
        let all = if self.missing == 0 { FROM_WARM_CACHES } else { FROM_EMPTY_CACHES };
        self.budget.map_or(all, |budget| all.min(budget + FROM_WARM_CACHES / 3))
    }
}

/// Says once that a run takes longer than it should.
pub(crate) struct Lateness {
    began: Instant,
    expected: Duration,
    said: bool,
}

impl Lateness {
    pub(crate) fn new(began: Instant, preface: &Preface) -> Self {
        Self { began, expected: preface.expected(), said: false }
    }

    pub(crate) fn look(&mut self) {
        if self.said || self.began.elapsed() < self.expected {
            return;
        }
        self.said = true;
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or("unknown");
        say(&format!(
            "     late: this run takes longer than the {} minutes that it should; the load of this machine is {load}",
            self.expected.as_secs() / 60
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_say_what_will_be_done_and_what_it_takes() {
        let cold =
            Preface { groups: 23, missing: 9, parts: 31, worlds: 4, budget: Some(Duration::from_secs(900)) };
        let text = cold.text();
        for part in
            ["23 groups", "9 of the 31 parts", "45 minutes", "15 from warm", "at most 4,", "After 900 s"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(cold.expected(), Duration::from_secs(1200));
        let warm = Preface { missing: 0, budget: None, ..cold };
        assert!(warm.text().contains("all 31 parts that they need are built"));
        assert_eq!(warm.expected(), FROM_WARM_CACHES);
    }
}

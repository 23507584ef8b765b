//! What a change costs: the calls that a controller makes for it.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Who sends requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sender {
    /// The controller under test.
    #[default]
    OpenstackCcm,
    /// The controller that it replaces.
    Occm,
    /// A service, or a test.
    Other,
}

/// The calls of a controller for one change, and the time until the change is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub change: String,
    /// Whose calls they are.
    pub by: Sender,
    /// Until the change was made, in seconds.
    pub seconds: f32,
    /// When Services were served that were created at once.
    pub served: Option<Served>,
    /// Calls to Octavia.
    pub octavia: usize,
    /// Those of them that ask for a change.
    pub octavia_writes: usize,
    /// Those of them that only ask how far Octavia is.
    pub octavia_polls: usize,
    /// Calls to Neutron.
    pub neutron: usize,
    /// Writes in Kubernetes, without Events and leases.
    pub kubernetes_writes: usize,
    /// What it may cost; absent where nothing is said about it.
    pub limit: Option<Limit>,
    /// The load of the machine during its last minute.
    pub load: f32,
}

/// The calls to Octavia that a change may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    /// So many writes, neither more nor fewer.
    pub writes: usize,
    /// At most so many reads, without polls.
    pub reads: usize,
}

/// How long Services that were created at once waited until their address was published, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// The first of them.
    pub first: f32,
    /// Half of them.
    pub median: f32,
}

impl Served {
    /// Of all their times, in order; absent where there is none.
    pub(crate) fn of(times: &[Duration]) -> Option<Self> {
        let seconds = |time: &Duration| time.as_secs_f32();
        let median = times.get(times.len().saturating_sub(1) / 2)?;
        Some(Self { first: seconds(times.first()?), median: seconds(median) })
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}, {:.1}", self.first, self.median)
    }
}

impl Cost {
    /// The head of the table of calls.
    pub(crate) const HEAD: &str = "| Change | Seconds | First, median served | Calls to Octavia | of these writes | polls | other reads | at most | Calls to Neutron | Writes in Kubernetes | Load |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

    /// The head of the table with both controllers.
    pub(crate) const HEAD_BESIDE: &str = "| Change | Seconds: openstack-ccm | OCCM | First, median served: openstack-ccm | OCCM | Calls to Octavia: openstack-ccm | OCCM | of these writes: openstack-ccm | OCCM | Load: openstack-ccm | OCCM |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

    /// The same with the calls that it may cost the controller under test.
    pub(crate) fn with_limit(self, limit: Option<Limit>) -> Self {
        Self { limit: limit.filter(|_| self.by == Sender::OpenstackCcm), ..self }
    }

    /// Reads that are no polls.
    fn reads(&self) -> usize {
        self.octavia - self.octavia_writes - self.octavia_polls
    }

    /// Fails if it cost more than it may.
    ///
    /// # Errors
    /// The text has what was allowed and what it cost.
    pub(crate) fn within_limit(self) -> Result<Self> {
        if let Some(Limit { writes, reads }) = self.limit {
            ensure!(self.octavia_writes == writes, "it may take {writes} writes to Octavia: {self}");
            ensure!(self.reads() <= reads, "it may take {reads} reads from Octavia at most: {self}");
        }
        Ok(self)
    }

    /// The row of a change in the table of calls.
    pub(crate) fn row(&self) -> String {
        let Self {
            change,
            seconds,
            octavia,
            octavia_writes,
            octavia_polls,
            neutron,
            kubernetes_writes,
            load,
            ..
        } = self;
        let most = self.limit.map(|limit| limit.reads);
        let (served, reads, most) = (shown(self.served.as_ref()), self.reads(), shown(most.as_ref()));
        format!(
            "| {change} | {seconds:.1} | {served} | {octavia} | {octavia_writes} | {octavia_polls} | {reads} | {most} | {neutron} \
             | {kubernetes_writes} | {load:.1} |"
        )
    }

    /// The row of a change in the table with both controllers, beside what it cost OCCM; absent where that did not come to an end.
    pub(crate) fn row_beside(&self, occm: Option<&Self>) -> String {
        let pair = |cell: fn(&Self) -> String| format!("{} | {}", cell(self), shown(occm.map(cell).as_ref()));
        let cells = [
            pair(|cost| format!("{:.1}", cost.seconds)),
            pair(|cost| shown(cost.served.as_ref())),
            pair(|cost| cost.octavia.to_string()),
            pair(|cost| cost.octavia_writes.to_string()),
            pair(|cost| format!("{:.1}", cost.load)),
        ];
        format!("| {} | {} |", self.change, cells.join(" | "))
    }
}

fn shown(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "–".to_owned(), ToString::to_string)
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds, octavia, octavia_writes, octavia_polls, neutron, kubernetes_writes, load, ..
        } = self;
        write!(f, "after {seconds:.1} s; ")?;
        if let Some(Served { first, median }) = self.served {
            write!(f, "the first served after {first:.1} s, half of them after {median:.1} s; ")?;
        }
        write!(
            f,
            "{octavia} calls to Octavia: {octavia_writes} writes, {octavia_polls} polls, {} other reads",
            self.reads()
        )?;
        if let Some(Limit { reads, .. }) = self.limit {
            write!(f, " (at most {reads})")?;
        }
        write!(f, "; {neutron} to Neutron; {kubernetes_writes} writes in Kubernetes; load {load:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_services_are_served_at_the_median() {
        let times = |seconds: &[u64]| seconds.iter().copied().map(Duration::from_secs).collect::<Vec<_>>();
        assert_eq!(Served::of(&times(&[])), None);
        assert_eq!(Served::of(&times(&[3])), Some(Served { first: 3.0, median: 3.0 }));
        assert_eq!(Served::of(&times(&[1, 2, 3, 9])), Some(Served { first: 1.0, median: 2.0 }));
        assert_eq!(Served::of(&times(&[1, 2, 3, 9, 9])), Some(Served { first: 1.0, median: 3.0 }));
    }

    #[test]
    fn what_occm_does_not_end_has_no_figures_in_its_row() {
        let own = Cost {
            change: "create 1".into(),
            seconds: 1.25,
            octavia: 4,
            octavia_writes: 1,
            ..Cost::default()
        };
        let occm = Cost { seconds: 9.0, octavia: 14, octavia_writes: 3, by: Sender::Occm, ..own.clone() };
        assert_eq!(
            own.row_beside(Some(&occm)),
            "| create 1 | 1.2 | 9.0 | – | – | 4 | 14 | 1 | 3 | 0.0 | 0.0 |"
        );
        assert_eq!(own.row_beside(None), "| create 1 | 1.2 | – | – | – | 4 | – | 1 | – | 0.0 | – |");
    }

    #[test]
    fn a_change_that_costs_more_than_it_may_fails() {
        let limit = Some(Limit { writes: 1, reads: 2 });
        let cost = Cost { octavia: 9, octavia_writes: 1, octavia_polls: 6, limit, ..Cost::default() };
        assert!(cost.clone().within_limit().is_ok());
        let with_a_write = Cost { octavia: 10, octavia_writes: 2, ..cost.clone() };
        assert!(with_a_write.within_limit().unwrap_err().to_string().contains("1 writes"));
        let with_a_read = Cost { octavia: 10, ..cost };
        assert!(with_a_read.within_limit().unwrap_err().to_string().contains("2 reads"));
    }
}

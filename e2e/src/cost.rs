//! What a change costs: the calls that the controller makes for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The calls of the controller for one change, and the time until the change is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Until the change was made, in seconds.
    pub seconds: f32,
    /// Calls to Octavia.
    pub octavia: usize,
    /// Those of them that ask for a change.
    pub octavia_writes: usize,
    /// Calls to Neutron.
    pub neutron: usize,
    /// Writes in Kubernetes, without Events and leases.
    pub kubernetes_writes: usize,
    /// The calls to Octavia that it may cost.
    pub target: String,
}

impl Cost {
    /// The row of a change in the table of calls.
    pub(crate) fn row(&self, change: &str) -> String {
        let Self { seconds, octavia, octavia_writes, neutron, kubernetes_writes, target } = self;
        format!(
            "| {change} | {seconds:.1} | {octavia} | {octavia_writes} | {target} | {neutron} | {kubernetes_writes} |"
        )
    }

    /// The head of that table.
    pub(crate) const HEAD: &str = "| Change | Seconds | Calls to Octavia | of these writes | Target | Calls to Neutron | Writes in Kubernetes |\n\
        | --- | ---: | ---: | ---: | --- | ---: | ---: |";
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, octavia, octavia_writes, neutron, kubernetes_writes, target } = self;
        write!(
            f,
            "after {seconds:.1} s; {octavia} calls to Octavia, {octavia_writes} of them writes (target: {target}); {neutron} to \
             Neutron; {kubernetes_writes} writes in Kubernetes"
        )
    }
}

//! The scenarios there are, by section.

/// Whose behaviour a scenario describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The Go openstack-cloud-controller-manager.
    Contract,
    /// The framework below every cloud-controller-manager.
    Framework,
    /// A known defect of the Go openstack-cloud-controller-manager.
    Defect,
}

impl Source {
    /// The word before the colon in a doc comment.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::Contract => "Contract",
            Self::Framework => "Framework",
            Self::Defect => "Defect",
        }
    }
}

/// Scenarios of one subject: ids are `prefix` and a number from 1 to `last`.
pub(crate) struct Section {
    pub(crate) source: Source,
    pub(crate) title: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) last: u32,
}

const fn contract(title: &'static str, prefix: &'static str, last: u32) -> Section {
    Section { source: Source::Contract, title, prefix, last }
}

const fn framework(title: &'static str, prefix: &'static str, last: u32) -> Section {
    Section { source: Source::Framework, title, prefix, last }
}

/// All sections in the order of the page.
pub(crate) const SECTIONS: &[Section] = &[
    contract("Creation", "C", 29),
    contract("Floating IP, internal, status", "F", 23),
    contract("Classes", "L", 7),
    contract("Changes on a running Service", "E", 20),
    contract("Health monitors", "M", 10),
    contract("Source ranges and ovn", "S", 8),
    contract("Sharing", "H", 15),
    contract("Cluster name change", "R", 8),
    contract("Deletion", "K", 12),
    contract("Security groups", "G", 12),
    contract("Serial mode", "SR", 5),
    contract("Node changes and waiting", "U", 10),
    contract("Nodes", "N", 16),
    contract("Routes", "T", 9),
    contract("Configuration", "X", 11),
    contract("What OCCM's users asked for", "O", 23),
    framework("Service: decisions of a reconciliation", "S", 27),
    framework("Service: which changes count", "U", 12),
    framework("Service: queue", "Q", 4),
    framework("Service: node changes", "P", 18),
    framework("Service: rules shared with providers", "H", 5),
    framework("Nodes", "N", 25),
    framework("Node addresses", "A", 12),
    framework("Node lifecycle", "L", 16),
    framework("Routes", "R", 14),
    framework("Process", "M", 12),
    Section { source: Source::Defect, title: "By number", prefix: "", last: 85 },
];

impl Section {
    /// The ids, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        (1..=self.last).map(|number| format!("{}{number}", self.prefix))
    }
}

/// Whether there is a scenario of this id.
pub(crate) fn has(source: Source, id: &str) -> bool {
    SECTIONS.iter().any(|section| section.source == source && section.ids().any(|known| known == id))
}

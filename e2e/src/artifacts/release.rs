//! Releases of OpenStack that a world can run.

use std::path::PathBuf;

use crate::artifacts::source;
use crate::machine::python;

/// A release, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Release {
    /// Octavia 10.
    #[value(name = "yoga")]
    Yoga,
    /// Octavia 12.
    #[value(name = "2023.1")]
    V2023_1,
    /// Octavia 14.
    #[value(name = "2024.1")]
    V2024_1,
    /// Octavia 16.
    #[value(name = "2025.1")]
    V2025_1,
    /// Octavia 19.
    #[value(name = "2026.2")]
    V2026_2,
}

impl Release {
    /// The one that all groups run on that are not about releases.
    pub(crate) const NEWEST: Self = Self::V2026_2;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Yoga => "yoga",
            Self::V2023_1 => "2023.1",
            Self::V2024_1 => "2024.1",
            Self::V2025_1 => "2025.1",
            Self::V2026_2 => "2026.2",
        }
    }

    /// The newest version of Octavia's API; absent where it is not known.
    pub(crate) fn octavia_api(self) -> Option<&'static str> {
        match self {
            Self::Yoga => Some("v2.25"),
            Self::V2023_1 => Some("v2.26"),
            Self::V2024_1 => Some("v2.28"),
            Self::V2025_1 => Some("v2.30"),
            Self::V2026_2 => None,
        }
    }

    /// The Python that its list of packages is pinned for.
    pub(crate) fn python_minor(self) -> &'static str {
        match self {
            Self::Yoga => "3.8",
            Self::V2023_1 => "3.10",
            Self::V2024_1 | Self::V2025_1 | Self::V2026_2 => "3.11",
        }
    }

    /// A file of its lists.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        source("octavia/releases").join(self.name()).join(name)
    }

    /// Why this machine cannot run it; nothing if it can.
    pub(crate) fn obstacle(self) -> Option<String> {
        let minor = self.python_minor();
        python(minor).is_none().then(|| format!("there is no Python {minor}"))
    }

    /// `[project]` in `pyproject.toml` needs 61; services of before 2025 need `pkg_resources` as it was before 70.
    pub(crate) fn setuptools(self) -> &'static str {
        if self == Self::NEWEST { "setuptools<81" } else { "setuptools>=61,<70" }
    }

    /// Whether it comes with Nova, Placement and Glance: the newest, and one of the older ones.
    pub(crate) fn has_nova(self) -> bool {
        matches!(self, Self::V2024_1 | Self::V2026_2)
    }

    /// Keystone's policy: older releases have their defaults.
    pub(crate) fn scopes(self) -> &'static str {
        if self == Self::NEWEST { "[oslo_policy]\nenforce_scope = true" } else { "" }
    }
}

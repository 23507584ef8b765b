//! Which release of Octavia answers: what it knows, and in which words it passes on what Neutron refuses.
//!
//! All are held to recorded answers. The words with which a provider refuses are in none: they are those that were seen of real
//! services of Yoga, 2023.1, 2024.1 and 2025.1, one request after another.

use serde_json::json;

use super::versions::NEWEST_MINOR;
use crate::python_repr::python_repr;

/// A major version of Octavia.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OctaviaRelease {
    /// Yoga.
    V10,
    /// 2023.1.
    V12,
    /// 2024.1.
    V14,
    /// 2025.1.
    V16,
    /// 2026.2.
    #[default]
    V19,
}

impl OctaviaRelease {
    /// The newest API version 2.x that it knows.
    pub(crate) fn api_minor(self) -> u8 {
        match self {
            Self::V10 => 25,
            Self::V12 => 26,
            Self::V14 => 28,
            Self::V16 | Self::V19 => NEWEST_MINOR,
        }
    }

    /// A source range of another family than those of the VIPs.
    pub(crate) fn other_family(self, cidr: &str, vips: &[String]) -> String {
        match vips {
            // It knows no additional ones.
            [vip] if self == Self::V10 => {
                format!("CIDR {cidr} IP version incompatible with VIP {vip} IP version.")
            }
            _ => {
                let vips = python_repr(&json!(vips));
                format!("CIDR {cidr} IP version incompatible with all VIPs {vips} IP version.")
            }
        }
    }

    /// Whether it accepts a batch that names a member twice. The worker fails over that and never ends.
    pub(crate) fn accepts_duplicate_members(self) -> bool {
        self == Self::V10
    }
}

//! Which release of Kubernetes the simulator answers as, and what differs between releases.

use std::fmt;

/// Oldest minor release that can be simulated.
const OLDEST_MINOR: u8 = 24;
/// Newest minor release that can be simulated.
const NEWEST_MINOR: u8 = 36;

/// The release of Kubernetes that the simulator answers as: 1.24 to 1.36, and for 1.29 to 1.31 the state of the
/// feature gate `LoadBalancerIPMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiVersion {
    minor: u8,
    ip_mode_gate: bool,
}

/// A release that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The minor is outside of the simulated range.
    #[error("minor {0} is not simulated: choose {OLDEST_MINOR} to {NEWEST_MINOR}")]
    MinorOutOfRange(u8),
    /// The gate `LoadBalancerIPMode` can be set on 1.29, 1.30 and 1.31 only: before, the field does not exist;
    /// from 1.32 on the gate is locked or gone.
    #[error(
        "the gate LoadBalancerIPMode cannot be set to {gate} on 1.{minor}: it can be chosen on 1.29, 1.30 and 1.31"
    )]
    GateNotSettable {
        /// The release that was asked for.
        minor: u8,
        /// The state that was asked for.
        gate: bool,
    },
}

impl ApiVersion {
    /// 1.28: `ipMode` is not known and pruned from every object.
    pub const V1_28: Self = Self { minor: 28, ip_mode_gate: false };
    /// 1.29 as it is installed: `ipMode` is known, the gate is off.
    pub const V1_29: Self = Self { minor: 29, ip_mode_gate: false };
    /// 1.29 with `--feature-gates=LoadBalancerIPMode=true`.
    pub const V1_29_GATE_ON: Self = Self { minor: 29, ip_mode_gate: true };
    /// 1.30, the first release with the gate on by default.
    pub const V1_30: Self = Self { minor: 30, ip_mode_gate: true };
    /// 1.36: `ipMode` cannot be switched off.
    pub const V1_36: Self = Self { minor: 36, ip_mode_gate: true };

    /// A release with the gate in its default state: unknown up to 1.28, off in 1.29, on from 1.30.
    ///
    /// # Errors
    /// The minor is not within 24..=36.
    pub fn new(minor: u8) -> Result<Self, VersionError> {
        if !(OLDEST_MINOR..=NEWEST_MINOR).contains(&minor) {
            return Err(VersionError::MinorOutOfRange(minor));
        }
        Ok(Self { minor, ip_mode_gate: minor >= 30 })
    }

    /// A release with the gate `LoadBalancerIPMode` forced on or off.
    ///
    /// # Errors
    /// The minor is not within 24..=36, or the gate cannot be in that state in that release.
    pub fn with_gate(minor: u8, gate: bool) -> Result<Self, VersionError> {
        let default = Self::new(minor)?;
        if default.ip_mode_gate == gate || (29..=31).contains(&minor) {
            Ok(Self { minor, ip_mode_gate: gate })
        } else {
            Err(VersionError::GateNotSettable { minor, gate })
        }
    }

    /// The minor release, 28 for 1.28.
    pub fn minor(self) -> u8 {
        self.minor
    }

    /// Whether the gate `LoadBalancerIPMode` is on (false where the field does not exist).
    pub fn ip_mode_gate(self) -> bool {
        self.ip_mode_gate
    }

    /// The patch release whose recorded answers the simulator is held to, where there is one.
    fn patch_release(self) -> u8 {
        match self.minor {
            28 | 29 => 15,
            36 => 3,
            _ => 0,
        }
    }

    /// `gitVersion` as `/version` shows it.
    pub fn git_version(self) -> String {
        format!("v1.{}.{}", self.minor, self.patch_release())
    }

    // The rules below were measured on 1.28, 1.29 and 1.36. Where the release between that changed them is not
    // known from its release notes, the newer rule starts at 1.36.

    /// `sendInitialEvents` of a watch: on by default in 1.32, off again in 1.33, on since 1.34.
    pub(crate) fn has_watch_list(self) -> bool {
        self.minor == 32 || self.minor >= 34
    }

    /// A `resourceVersion` that is no number is a 400; before it was a 500.
    pub(crate) fn malformed_resource_version_is_bad_request(self) -> bool {
        self.minor >= 36
    }

    /// How a resourceVersion that is not there is written in a refusal.
    pub(crate) fn zero_resource_version(self) -> &'static str {
        if self.minor >= 36 { "0" } else { "0x0" }
    }

    /// Reviews leave out a creation time that they do not have, and answers with a token name the account's uid.
    pub(crate) fn omits_empty_times(self) -> bool {
        self.minor >= 36
    }

    /// Services can be selected by `spec.clusterIP` and `spec.type`.
    pub(crate) fn has_service_field_labels(self) -> bool {
        self.minor >= 36
    }

    /// Names of Services follow RFC 1123 (may start with a digit) instead of RFC 1035.
    pub(crate) fn has_relaxed_service_names(self) -> bool {
        self.minor >= 36
    }

    /// IP addresses with leading zeros are refused, and the texts about addresses show examples.
    pub(crate) fn has_strict_addresses(self) -> bool {
        self.minor >= 36
    }

    /// Lists in "Unsupported value" messages are written as JSON instead of Go syntax.
    pub(crate) fn writes_lists_as_json(self) -> bool {
        self.minor >= 36
    }

    /// Objects in "Invalid value" messages are written as JSON instead of Go syntax.
    pub(crate) fn writes_objects_as_json(self) -> bool {
        self.minor >= 36
    }

    /// A token's user says in `extra` which token it was: the feature `ServiceAccountTokenJTI`, on since 1.30.
    pub(crate) fn names_tokens(self) -> bool {
        self.minor >= 30
    }

    /// Ingress entries of a Service that is not of type LoadBalancer are refused.
    pub(crate) fn forbids_ingress_of_other_types(self) -> bool {
        self.minor >= 29
    }

    /// `/version` shows the emulated and the minimum compatible version.
    pub(crate) fn shows_compatibility(self) -> bool {
        self.minor >= 34
    }
}

impl Default for ApiVersion {
    fn default() -> Self {
        Self::V1_36
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.git_version())?;
        if (29..=31).contains(&self.minor) {
            write!(formatter, " (LoadBalancerIPMode {})", if self.ip_mode_gate { "on" } else { "off" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_follows_history_unless_it_is_forced() {
        assert!(!ApiVersion::new(28).unwrap().ip_mode_gate());
        assert!(!ApiVersion::new(29).unwrap().ip_mode_gate());
        assert!(ApiVersion::new(30).unwrap().ip_mode_gate());
        assert!(ApiVersion::with_gate(29, true).unwrap().ip_mode_gate());
        assert!(!ApiVersion::with_gate(31, false).unwrap().ip_mode_gate());
    }

    #[test]
    fn a_gate_that_no_release_offers_is_refused() {
        let refused = Err(VersionError::GateNotSettable { minor: 32, gate: false });
        assert_eq!(ApiVersion::with_gate(32, false), refused);
        assert_eq!(ApiVersion::new(37), Err(VersionError::MinorOutOfRange(37)));
        assert_eq!(
            ApiVersion::with_gate(28, true).unwrap_err().to_string(),
            "the gate LoadBalancerIPMode cannot be set to true on 1.28: it can be chosen on 1.29, 1.30 and 1.31"
        );
    }
}

//! The ClusterRole that doctor needs.

/// The output of `--print-rbac`. All its rules are read-only.
pub const ROLE: &str = include_str!("role.yaml");

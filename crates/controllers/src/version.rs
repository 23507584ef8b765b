//! resourceVersions as numbers, which Kubernetes promises since 1.35 and all API servers had before.

/// The number of a resourceVersion; absent where it is none, and nothing can be compared.
pub(crate) fn number(resource_version: &str) -> Option<u64> {
    resource_version.parse().ok()
}

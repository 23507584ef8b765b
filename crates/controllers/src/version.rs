//! resourceVersions as numbers, which Kubernetes guarantees since 1.35 and all API servers had before.

/// Returns the number of a resourceVersion; `None` if it is not a number, and cannot be compared.
pub(crate) fn number(resource_version: &str) -> Option<u64> {
    resource_version.parse().ok()
}

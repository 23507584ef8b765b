//! Health monitors: their comparable attributes.

use openstack_ccm_openstack_api::octavia::HealthMonitorType;

use super::Tags;

/// A health monitor as it is created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MonitorSpec {
    /// Name. Not compared: children keep the name, and the index in it, from their creation.
    pub(crate) name: String,
    /// Type of the check. Cannot be changed.
    pub(crate) kind: HealthMonitorType,
    pub(crate) attributes: MonitorAttributes,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// The attributes of a health monitor that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MonitorAttributes {
    /// Time between checks, in seconds.
    pub(crate) delay: u32,
    /// Longest time for one check, in seconds; not above `delay`.
    pub(crate) timeout: u32,
    /// Successful checks until a member is ONLINE, 1 to 10.
    pub(crate) max_retries: u32,
    /// Failed checks until a member is in ERROR, 1 to 10.
    pub(crate) max_retries_down: u32,
    /// The request, where the type is HTTP.
    pub(crate) http: Option<HttpCheck>,
}

/// The request of an HTTP health monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpCheck {
    pub path: String,
    pub method: String,
    /// Expected status codes: one, a list or a range.
    pub codes: String,
}

impl HttpCheck {
    /// The check of `spec.healthCheckNodePort`: the service proxy answers 200 where the node has a ready endpoint.
    pub(crate) fn health_check_node_port() -> Self {
        Self { path: "/healthz".to_owned(), method: "GET".to_owned(), codes: "200".to_owned() }
    }
}

//! What Neutron says when it refuses: a type, a message, a status.

use http::StatusCode;
use serde_json::json;

use super::kind::ResourceKind;
use crate::reply::Reply;
use crate::world::identity::Caller;

/// A refusal of Neutron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeutronFault {
    pub(crate) status: StatusCode,
    /// The exception's name, which clients may match.
    pub(crate) kind: &'static str,
    /// The text.
    pub(crate) message: String,
}

impl NeutronFault {
    /// Any refusal.
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into() }
    }

    pub(crate) fn conflict(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, kind, message)
    }

    pub(crate) fn bad_request(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, message)
    }

    /// A value of the wrong form.
    pub(crate) fn invalid_input(attribute: &str, reason: &str) -> Self {
        Self::bad_request("HTTPBadRequest", format!("Invalid input for {attribute}. Reason: {reason}"))
    }

    /// A path that does not exist.
    pub(crate) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "HTTPNotFound", "The resource could not be found.")
    }

    /// A resource that does not exist for the caller. Each kind has its own wording.
    pub(crate) fn not_found(kind: ResourceKind, id: &str) -> Self {
        let (name, message) = match kind {
            ResourceKind::Network => ("NetworkNotFound", format!("Network {id} could not be found.")),
            ResourceKind::Subnet => ("SubnetNotFound", format!("Subnet {id} could not be found.")),
            ResourceKind::Port => ("PortNotFound", format!("Port {id} could not be found.")),
            ResourceKind::FloatingIp => {
                ("FloatingIPNotFound", format!("Floating IP {id} could not be found"))
            }
            ResourceKind::SecurityGroup => {
                ("SecurityGroupNotFound", format!("Security group {id} does not exist"))
            }
            ResourceKind::SecurityGroupRule => {
                ("SecurityGroupRuleNotFound", format!("Security group rule {id} does not exist"))
            }
            ResourceKind::Router => ("RouterNotFound", format!("Router {id} could not be found")),
            ResourceKind::Trunk => ("TrunkNotFound", format!("Trunk {id} could not be found.")),
        };
        Self::new(StatusCode::NOT_FOUND, name, message)
    }

    /// The project has as many of these as it may.
    pub(crate) fn over_quota(kind: ResourceKind) -> Self {
        Self::conflict("OverQuota", format!("Quota exceeded for resources: ['{}'].", kind.root()))
    }

    /// A rule of the policy that the caller does not meet.
    pub(crate) fn policy(rule: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "PolicyNotAuthorized", format!("{rule} is disallowed by policy"))
    }
}

impl From<NeutronFault> for Reply {
    fn from(fault: NeutronFault) -> Self {
        let body = json!({"NeutronError": {"type": fault.kind, "message": fault.message, "detail": ""}});
        Self::json(fault.status, body)
    }
}

/// Changes need the role `member`; the policy names the action and the kind.
pub(crate) fn check_policy(caller: &Caller, action: &str, kind: ResourceKind) -> Result<(), NeutronFault> {
    if caller.is_admin() || (caller.has_role("member") && !caller.project_id.is_empty()) {
        return Ok(());
    }
    Err(NeutronFault::policy(&format!("rule:{action}_{}", kind.root())))
}

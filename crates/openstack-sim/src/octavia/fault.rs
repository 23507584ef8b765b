//! What Octavia says when it refuses. The texts are those of Octavia 19, word for word.

use http::StatusCode;
use serde_json::{Value, json};

use super::kind::ObjectKind;
use super::major_version::OctaviaRelease;
use crate::neutron::NeutronFault;
use crate::python_repr::python_str;
use crate::reply::Reply;
use crate::world::load_balancing::Provisioning;

/// A refusal of Octavia's controllers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OctaviaFault {
    /// The caller lacks the role.
    Policy,
    /// Nothing has this id.
    NotFound { kind: &'static str, id: String },
    /// Something that the body refers to, in another service, does not exist.
    InvalidReference { kind: &'static str, id: String },
    /// The tree is locked by unfinished work, or broken.
    Immutable { kind: ObjectKind, id: String },
    /// The load balancer itself cannot change now.
    InvalidState { status: Provisioning, id: String },
    /// A rule between several values is broken.
    Validation(String),
    /// One value is not acceptable.
    InvalidInput { attribute: String, value: Value, reason: String },
    /// An attribute that this API version, or this method, does not know.
    UnknownAttribute { argument: String, attribute: String },
    /// A value that does not go with the protocol.
    InvalidOption { value: String, option: String },
    /// The project may not have more of these.
    Quota(ObjectKind),
    /// Any other conflict.
    Conflict(String),
    /// Any other bad request.
    BadRequest(String),
    /// What the provider's driver does not do.
    NotImplemented(String),
    /// What a real Octavia did not expect either.
    Internal(String),
}

impl OctaviaFault {
    /// A validation failure.
    pub(crate) fn validation(detail: impl Into<String>) -> Self {
        Self::Validation(detail.into())
    }

    /// An object of a kind of Octavia's own that does not exist.
    pub(crate) fn not_found(kind: ObjectKind, id: &str) -> Self {
        Self::NotFound { kind: kind.title(), id: id.to_owned() }
    }

    /// A refusal of the VIP port by Neutron, as Octavia passes it on. Release 19 passes on conflicts, quota among them, and is
    /// surprised by everything else.
    pub(crate) fn refused_port(release: OctaviaRelease, fault: &NeutronFault, request_id: &str) -> Self {
        let is_conflict = fault.status == StatusCode::CONFLICT;
        match release {
            OctaviaRelease::V19 if is_conflict => {
                Self::Conflict(format!("The VIP IP address is already in use: {}", fault.message))
            }
            // They ask Neutron by its own client, whose errors quote the answer.
            OctaviaRelease::V10 | OctaviaRelease::V12 => Self::of_provider(&format!(
                "{}\nNeutron server returns request_ids: ['req-{request_id}']",
                fault.message
            )),
            OctaviaRelease::V14 | OctaviaRelease::V16 | OctaviaRelease::V19 if is_conflict => {
                Self::of_provider("ConflictException: 409")
            }
            OctaviaRelease::V14 | OctaviaRelease::V16 | OctaviaRelease::V19 => {
                Self::of_provider("BadRequestException: 400")
            }
        }
    }

    /// The subnet of an additional VIP does not exist.
    pub(crate) fn unknown_additional_subnet(release: OctaviaRelease, id: &str) -> Self {
        match release {
            OctaviaRelease::V19 => Self::validation(format!("Subnet {id} not found")),
            OctaviaRelease::V10 | OctaviaRelease::V12 | OctaviaRelease::V14 | OctaviaRelease::V16 => {
                Self::Internal(format!("subnet not found (subnet id: {id})."))
            }
        }
    }

    fn of_provider(text: &str) -> Self {
        Self::Internal(format!("Provider 'amphora' reports error: {text}"))
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Policy | Self::Quota(_) => StatusCode::FORBIDDEN,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::Immutable { .. } | Self::InvalidState { .. } | Self::Conflict(_) => StatusCode::CONFLICT,
            Self::InvalidReference { .. }
            | Self::Validation(_)
            | Self::InvalidInput { .. }
            | Self::UnknownAttribute { .. }
            | Self::InvalidOption { .. }
            | Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotImplemented(_) => StatusCode::NOT_IMPLEMENTED,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Policy => "Policy does not allow this request to be performed.".to_owned(),
            Self::NotFound { kind, id } | Self::InvalidReference { kind, id } => {
                format!("{kind} {id} not found.")
            }
            Self::Immutable { kind, id } => {
                format!("{} {id} is immutable and cannot be updated.", kind.title())
            }
            Self::InvalidState { status, id } => {
                format!("Invalid state {status} of loadbalancer resource {id}")
            }
            Self::Validation(detail) => format!("Validation failure: {detail}"),
            Self::InvalidInput { attribute, value, reason } => {
                format!(
                    "Invalid input for field/attribute {attribute}. Value: '{}'. {reason}",
                    python_str(value)
                )
            }
            Self::UnknownAttribute { argument, attribute } => {
                format!("Unknown attribute for argument {argument}: {attribute}")
            }
            Self::InvalidOption { value, option } => format!("{value} is not a valid option for {option}"),
            Self::Quota(kind) => format!("Quota has been met for resources: {}", kind.title()),
            Self::Conflict(text)
            | Self::BadRequest(text)
            | Self::NotImplemented(text)
            | Self::Internal(text) => text.clone(),
        }
    }
}

impl From<OctaviaFault> for Reply {
    fn from(fault: OctaviaFault) -> Self {
        let code = if fault.status().is_server_error() { "Server" } else { "Client" };
        Self::json(fault.status(), json!({"faultcode": code, "faultstring": fault.text(), "debuginfo": null}))
    }
}

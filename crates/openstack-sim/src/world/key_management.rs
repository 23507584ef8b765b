//! What Barbican keeps.

use std::collections::BTreeMap;

use serde_json::Value;

/// Barbican's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyManagement {
    /// Secrets by id.
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Containers by id.
    pub(crate) containers: BTreeMap<String, Container>,
}

#[derive(Debug, Clone)]
pub(crate) struct Secret {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) project_id: String,
    pub(crate) creator_id: String,
    pub(crate) payload_content_type: Option<String>,
    pub(crate) secret_type: String,
    pub(crate) expiration: Option<String>,
    pub(crate) created: String,
    pub(crate) acl: Value,
}

/// A container of references to secrets.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) project_id: String,
    pub(crate) creator_id: String,
    pub(crate) kind: String,
    pub(crate) secret_refs: Value,
    pub(crate) consumers: Vec<Value>,
    pub(crate) created: String,
    pub(crate) acl: Value,
}

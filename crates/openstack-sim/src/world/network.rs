//! What Neutron keeps: resources of eight kinds with tags and revision numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Neutron's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network {
    pub(crate) networks: Collection,
    pub(crate) subnets: Collection,
    pub(crate) ports: Collection,
    pub(crate) floating_ips: Collection,
    pub(crate) security_groups: Collection,
    pub(crate) security_group_rules: Collection,
    pub(crate) routers: Collection,
    pub(crate) trunks: Collection,
    /// Limits that differ from the default, by project and resource.
    pub(crate) quotas: BTreeMap<String, BTreeMap<String, i64>>,
    /// Aliases of API extensions that this deployment lacks.
    pub(crate) missing_extensions: BTreeSet<String>,
    /// The last `standard_attr_id` that was given out.
    pub(crate) standard_attribute_id: u64,
}

impl Network {
    /// Nothing yet, and the service plug-ins of the recorded deployment, which had none for trunks.
    pub(crate) fn without_trunks() -> Self {
        Self { missing_extensions: ["trunk", "trunk-details"].map(str::to_owned).into(), ..Self::default() }
    }
}

/// The resources of one kind by id.
pub(crate) type Collection = BTreeMap<String, Resource>;

/// One Neutron resource: what all kinds share, and the attributes of its kind as on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) revision_number: u64,
    pub(crate) standard_attribute_id: u64,
    pub(crate) attributes: Map<String, Value>,
}

impl Resource {
    /// A text attribute; empty when absent or null.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A Boolean attribute; false when absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.attributes.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list attribute; empty when absent or null.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.attributes.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Sets an attribute.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.attributes.insert(name.to_owned(), value.into());
    }

    /// The addresses of a port.
    pub(crate) fn fixed_ips(&self) -> Vec<FixedIp> {
        self.list("fixed_ips")
            .iter()
            .filter_map(|entry| {
                let field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
                Some(FixedIp { subnet_id: field("subnet_id")?, ip_address: field("ip_address")? })
            })
            .collect()
    }

    /// Counts a change.
    pub(crate) fn touch(&mut self, now: &str) {
        self.revision_number += 1;
        now.clone_into(&mut self.updated_at);
    }
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedIp {
    pub(crate) subnet_id: String,
    pub(crate) ip_address: String,
}

impl FixedIp {
    /// Whether the address is IPv4.
    pub(crate) fn is_ipv4(&self) -> bool {
        !self.ip_address.contains(':')
    }

    /// The address as on the wire.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::json!({"subnet_id": self.subnet_id, "ip_address": self.ip_address})
    }
}

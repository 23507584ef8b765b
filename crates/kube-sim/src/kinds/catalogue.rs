//! All resources with their fields.

use std::sync::LazyLock;

use super::{Rules, event, namespace, node, plain, service};
use crate::schema::{self, Schema};

/// How objects of a resource are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// As they are shown.
    Stored,
    /// As core v1 events, shown as events.k8s.io/v1.
    EventsGroup,
}

/// One resource of one API group.
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) namespaced: bool,
    /// Sub-resources that are served: `status`, `token`.
    pub(crate) subresources: &'static [&'static str],
    /// Name of the storage; two resources with one storage are two views of the same objects.
    pub(crate) storage: &'static str,
    pub(crate) view: View,
    pub(crate) schema: Schema,
    pub(crate) rules: &'static dyn Rules,
}

impl Resource {
    /// `v1` or `coordination.k8s.io/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }
}

const METADATA: &str = "apiVersion kind metadata!{name generateName namespace selfLink uid resourceVersion \
    generation:int creationTimestamp:time deletionTimestamp:time deletionGracePeriodSeconds*:int labels:map \
    annotations:map ownerReferences[uid]{apiVersion! kind! name! uid! controller*:flag blockOwnerDeletion*:flag} \
    finalizers[=] managedFields[]{manager operation apiVersion time:time fieldsType fieldsV1:any subresource}}";

/// The description of one resource before its fields are read.
struct Row {
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    subresources: &'static [&'static str],
    fields: &'static str,
    rules: &'static dyn Rules,
}

const ROWS: [Row; 10] = [
    Row {
        group: "",
        plural: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        short_names: &["cm"],
        namespaced: true,
        subresources: &[],
        fields: plain::CONFIG_MAP,
        rules: &plain::ConfigMap,
    },
    Row {
        group: "",
        plural: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        namespaced: true,
        subresources: &[],
        fields: event::CORE,
        rules: &event::CoreEvent,
    },
    Row {
        group: "",
        plural: "namespaces",
        singular: "namespace",
        kind: "Namespace",
        short_names: &["ns"],
        namespaced: false,
        subresources: &["status"],
        fields: namespace::FIELDS,
        rules: &namespace::Namespace,
    },
    Row {
        group: "",
        plural: "nodes",
        singular: "node",
        kind: "Node",
        short_names: &["no"],
        namespaced: false,
        subresources: &["status"],
        fields: node::FIELDS,
        rules: &node::Node,
    },
    Row {
        group: "",
        plural: "pods",
        singular: "pod",
        kind: "Pod",
        short_names: &["po"],
        namespaced: true,
        subresources: &["status"],
        fields: plain::POD,
        rules: &plain::Pod,
    },
    Row {
        group: "",
        plural: "serviceaccounts",
        singular: "serviceaccount",
        kind: "ServiceAccount",
        short_names: &["sa"],
        namespaced: true,
        subresources: &["token"],
        fields: plain::SERVICE_ACCOUNT,
        rules: &plain::ServiceAccount,
    },
    Row {
        group: "",
        plural: "services",
        singular: "service",
        kind: "Service",
        short_names: &["svc"],
        namespaced: true,
        subresources: &["status"],
        fields: service::FIELDS,
        rules: &service::Service,
    },
    Row {
        group: "coordination.k8s.io",
        plural: "leases",
        singular: "lease",
        kind: "Lease",
        short_names: &[],
        namespaced: true,
        subresources: &[],
        fields: plain::LEASE,
        rules: &plain::Lease,
    },
    Row {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        singular: "endpointslice",
        kind: "EndpointSlice",
        short_names: &[],
        namespaced: true,
        subresources: &[],
        fields: plain::ENDPOINT_SLICE,
        rules: &plain::EndpointSlice,
    },
    Row {
        group: "events.k8s.io",
        plural: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        namespaced: true,
        subresources: &[],
        fields: event::EVENTS_GROUP,
        rules: &event::GroupEvent,
    },
];

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| ROWS.iter().map(build).collect());

fn build(row: &Row) -> Resource {
    Resource {
        group: row.group,
        version: "v1",
        plural: row.plural,
        singular: row.singular,
        kind: row.kind,
        short_names: row.short_names,
        namespaced: row.namespaced,
        subresources: row.subresources,
        storage: row.plural,
        view: if row.group == "events.k8s.io" { View::EventsGroup } else { View::Stored },
        // The texts are constants; a test below reads each of them.
        schema: schema::parse(&format!("{METADATA} {}", row.fields)).unwrap_or(Schema::Anything),
        rules: row.rules,
    }
}

/// All resources, by group and name.
pub(crate) fn all() -> &'static [Resource] {
    &RESOURCES
}

/// The resource with this group, version and plural.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    all().iter().find(|one| one.group == group && one.version == version && one.plural == plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_every_kind_are_described() {
        for resource in all() {
            assert!(resource.schema.field("metadata").is_some(), "{}", resource.plural);
        }
    }
}

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
    pub(crate) kind: &'static str,
    pub(crate) short_name: Option<&'static str>,
    pub(crate) namespaced: bool,
    /// The sub-resource that is served: `status` or `token`.
    pub(crate) subresource: Option<&'static str>,
    /// Name of the storage; two resources with one storage are two views of the same objects.
    pub(crate) storage: &'static str,
    pub(crate) view: View,
    /// Somebody else's definition: a cluster need not have it, so discovery does not name it.
    pub(crate) custom: bool,
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
        self.subresource == Some("status")
    }

    /// A namespaced resource without a short name and without a sub-resource.
    fn new(
        group: &'static str,
        plural: &'static str,
        kind: &'static str,
        fields: &str,
        rules: &'static dyn Rules,
    ) -> Self {
        Self {
            group,
            version: "v1",
            plural,
            kind,
            short_name: None,
            namespaced: true,
            subresource: None,
            storage: plural,
            view: View::Stored,
            custom: false,
            // The texts are constants; a test below reads each of them.
            schema: schema::parse(&format!("{METADATA} {fields}")).unwrap_or(Schema::Anything),
            rules,
        }
    }

    fn short_name(self, name: &'static str) -> Self {
        Self { short_name: Some(name), ..self }
    }

    fn cluster_scoped(self) -> Self {
        Self { namespaced: false, ..self }
    }

    fn with_subresource(self, subresource: &'static str) -> Self {
        Self { subresource: Some(subresource), ..self }
    }

    /// A resource that a CustomResourceDefinition makes.
    fn custom(self, version: &'static str) -> Self {
        Self { version, custom: true, ..self }
    }

    fn viewed_as(self, view: View) -> Self {
        Self { view, ..self }
    }
}

const METADATA: &str = "apiVersion kind metadata!{name generateName namespace selfLink uid resourceVersion \
    generation:int creationTimestamp:time deletionTimestamp:time deletionGracePeriodSeconds*:int labels:map \
    annotations:map ownerReferences[uid]{apiVersion! kind! name! uid! controller*:flag blockOwnerDeletion*:flag} \
    finalizers[=] managedFields[]{manager operation apiVersion time:time fieldsType fieldsV1:any subresource}}";

static RESOURCES: LazyLock<[Resource; 19]> = LazyLock::new(|| {
    [
        Resource::new("", "configmaps", "ConfigMap", plain::CONFIG_MAP, &plain::ConfigMap).short_name("cm"),
        Resource::new("", "events", "Event", event::CORE, &event::Event::Core).short_name("ev"),
        Resource::new("", "namespaces", "Namespace", namespace::FIELDS, &namespace::Namespace)
            .short_name("ns")
            .cluster_scoped()
            .with_subresource("status"),
        Resource::new("", "nodes", "Node", node::FIELDS, &node::Node)
            .short_name("no")
            .cluster_scoped()
            .with_subresource("status"),
        Resource::new("", "pods", "Pod", plain::POD, &plain::Pod).short_name("po").with_subresource("status"),
        Resource::new("", "secrets", "Secret", plain::SECRET, &plain::Kept),
        Resource::new(
            "",
            "serviceaccounts",
            "ServiceAccount",
            plain::SERVICE_ACCOUNT,
            &plain::ServiceAccount,
        )
        .short_name("sa")
        .with_subresource("token"),
        Resource::new("", "services", "Service", service::FIELDS, &service::Service)
            .short_name("svc")
            .with_subresource("status"),
        Resource::new("apps", "daemonsets", "DaemonSet", plain::KEPT, &plain::Kept).short_name("ds"),
        Resource::new("apps", "deployments", "Deployment", plain::KEPT, &plain::Kept).short_name("deploy"),
        Resource::new("apps", "statefulsets", "StatefulSet", plain::KEPT, &plain::Kept).short_name("sts"),
        Resource::new("batch", "cronjobs", "CronJob", plain::KEPT, &plain::Kept).short_name("cj"),
        Resource::new("coordination.k8s.io", "leases", "Lease", plain::LEASE, &plain::Lease),
        Resource::new(
            "discovery.k8s.io",
            "endpointslices",
            "EndpointSlice",
            plain::ENDPOINT_SLICE,
            &plain::Kept,
        ),
        Resource::new("events.k8s.io", "events", "Event", event::EVENTS_GROUP, &event::Event::EventsGroup)
            .short_name("ev")
            .viewed_as(View::EventsGroup),
        Resource::new(
            "gateway.envoyproxy.io",
            "clienttrafficpolicies",
            "ClientTrafficPolicy",
            plain::KEPT,
            &plain::Kept,
        )
        .custom("v1alpha1"),
        Resource::new("gateway.networking.k8s.io", "gateways", "Gateway", plain::KEPT, &plain::Kept)
            .custom("v1"),
        Resource::new("networking.k8s.io", "ingresses", "Ingress", plain::KEPT, &plain::Kept)
            .short_name("ing")
            .with_subresource("status"),
        Resource::new("networking.k8s.io", "networkpolicies", "NetworkPolicy", plain::KEPT, &plain::Kept)
            .short_name("netpol"),
    ]
});

/// All resources, by group and name.
pub(crate) fn all() -> &'static [Resource] {
    &*RESOURCES
}

/// Those that every cluster has.
pub(crate) fn built_in() -> impl Iterator<Item = &'static Resource> {
    all().iter().filter(|one| !one.custom)
}

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

//! The calls to OpenStack, by purpose: required ones, and optional ones.

use crate::service::Service;

/// A part of a cloud's API that the program uses if it exists, but does not require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptionalPart {
    FloatingIpTags,
    FloatingIpDescription,
    LoadBalancerTags,
    Versions,
    StatusTree,
    AdditiveBatches,
    Filters,
    NetworkById,
    SecurityGroups,
    SecurityGroupTags,
    Providers,
    Quotas,
    Certificates,
}

impl OptionalPart {
    /// All optional parts.
    pub const ALL: [Self; 13] = [
        Self::FloatingIpTags,
        Self::FloatingIpDescription,
        Self::LoadBalancerTags,
        Self::Versions,
        Self::StatusTree,
        Self::AdditiveBatches,
        Self::Filters,
        Self::NetworkById,
        Self::SecurityGroups,
        Self::SecurityGroupTags,
        Self::Providers,
        Self::Quotas,
        Self::Certificates,
    ];

    /// Returns the row of this part.
    pub fn feature(self) -> &'static Feature {
        // A test ensures that each part has a row.
        FEATURES.iter().find(|feature| feature.part == Some(self)).unwrap_or(&FEATURES[0])
    }
}

/// A call, in the form of Keystone's access rules: `*` stands for one segment of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    pub service: Service,
    pub method: &'static str,
    pub path: &'static str,
}

impl Access {
    /// Returns all calls of the table.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        FEATURES.iter().flat_map(|feature| feature.calls)
    }

    /// Returns whether the rule allows a call.
    pub fn allows(&self, service: Service, method: &str, path: &str) -> bool {
        let (rule, path) = (self.path.split('/'), path.split('/'));
        self.service == service
            && self.method == method
            && rule.clone().count() == path.clone().count()
            && rule.zip(path).all(|(rule, part)| rule == part || (rule == "*" && !part.is_empty()))
    }

    /// Returns whether the call only reads.
    pub fn reads(&self) -> bool {
        self.method == "GET"
    }
}

/// The purpose of some calls.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The name, as a heading.
    pub name: &'static str,
    /// The optional part; absent where the controllers require the calls.
    pub part: Option<OptionalPart>,
    /// The extension or version of the API that has these calls.
    pub promised_by: &'static str,
    /// What the program does without an optional part; for required calls, who can do without them.
    pub without: &'static str,
    pub calls: &'static [Access],
}

const fn call(service: Service, method: &'static str, path: &'static str) -> Access {
    Access { service, method, path }
}

const fn octavia(method: &'static str, path: &'static str) -> Access {
    call(Service::LoadBalancer, method, path)
}

const fn neutron(method: &'static str, path: &'static str) -> Access {
    call(Service::Network, method, path)
}

const fn nova(path: &'static str) -> Access {
    call(Service::Compute, "GET", path)
}

/// All calls of the controllers, in the order of the documentation page.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "Load balancers",
        part: None,
        promised_by: "Octavia API 2.0",
        without: "needed by the service controller",
        calls: &[
            octavia("GET", "/v2.0/lbaas/loadbalancers"),
            octavia("POST", "/v2.0/lbaas/loadbalancers"),
            octavia("GET", "/v2.0/lbaas/loadbalancers/*"),
            octavia("PUT", "/v2.0/lbaas/loadbalancers/*"),
            octavia("DELETE", "/v2.0/lbaas/loadbalancers/*"),
            octavia("GET", "/v2.0/lbaas/loadbalancers/*/stats"),
            octavia("GET", "/v2.0/lbaas/listeners"),
            octavia("POST", "/v2.0/lbaas/listeners"),
            octavia("GET", "/v2.0/lbaas/listeners/*"),
            octavia("PUT", "/v2.0/lbaas/listeners/*"),
            octavia("DELETE", "/v2.0/lbaas/listeners/*"),
            octavia("GET", "/v2.0/lbaas/pools"),
            octavia("POST", "/v2.0/lbaas/pools"),
            octavia("GET", "/v2.0/lbaas/pools/*"),
            octavia("PUT", "/v2.0/lbaas/pools/*"),
            octavia("DELETE", "/v2.0/lbaas/pools/*"),
            octavia("GET", "/v2.0/lbaas/pools/*/members"),
            octavia("PUT", "/v2.0/lbaas/pools/*/members"),
            octavia("POST", "/v2.0/lbaas/pools/*/members"),
            octavia("PUT", "/v2.0/lbaas/pools/*/members/*"),
            octavia("DELETE", "/v2.0/lbaas/pools/*/members/*"),
            octavia("GET", "/v2.0/lbaas/healthmonitors/*"),
            octavia("POST", "/v2.0/lbaas/healthmonitors"),
            octavia("PUT", "/v2.0/lbaas/healthmonitors/*"),
            octavia("DELETE", "/v2.0/lbaas/healthmonitors/*"),
            neutron("GET", "/v2.0/subnets"),
            neutron("GET", "/v2.0/ports"),
            neutron("GET", "/v2.0/ports/*"),
        ],
    },
    Feature {
        name: "Floating IPs",
        part: None,
        promised_by: "router (Neutron)",
        without: "needed by external Services; internal ones need the GET only",
        calls: &[
            neutron("GET", "/v2.0/floatingips"),
            neutron("POST", "/v2.0/floatingips"),
            neutron("PUT", "/v2.0/floatingips/*"),
            neutron("DELETE", "/v2.0/floatingips/*"),
            neutron("GET", "/v2.0/networks"),
            neutron("GET", "/v2.0/routers/*"),
        ],
    },
    Feature {
        name: "Nodes",
        part: None,
        promised_by: "Nova API 2.1",
        without: "needed by the node controllers",
        calls: &[
            nova("/"),
            nova("/v2.1/servers/detail"),
            nova("/v2.1/servers/*"),
            nova("/v2.1/flavors"),
            nova("/v2.1/flavors/*"),
            neutron("GET", "/v2.0/ports"),
        ],
    },
    Feature {
        name: "Routes",
        part: None,
        promised_by: "extraroute (Neutron)",
        without: "needed by the route controller, which runs where router-id is set",
        calls: &[
            neutron("GET", "/v2.0/extensions"),
            neutron("GET", "/v2.0/routers/*"),
            neutron("PUT", "/v2.0/routers/*"),
            neutron("PUT", "/v2.0/routers/*/add_extraroutes"),
            neutron("PUT", "/v2.0/routers/*/remove_extraroutes"),
            neutron("GET", "/v2.0/ports"),
            neutron("PUT", "/v2.0/ports/*"),
        ],
    },
    Feature {
        name: "Failover of load balancers",
        part: None,
        promised_by: "Octavia's policy, role load-balancer_admin",
        without: "needed if failover is set in cloud.conf; a refusal is reported, and the load balancer is not changed",
        calls: &[octavia("PUT", "/v2.0/lbaas/loadbalancers/*/failover")],
    },
    Feature {
        name: "Deletion of ports",
        part: None,
        promised_by: "Neutron API 2.0",
        without: "needed only by `openstack-ccm orphans`",
        calls: &[neutron("DELETE", "/v2.0/ports/*")],
    },
    Feature {
        name: "Tags of floating IPs",
        part: Some(OptionalPart::FloatingIpTags),
        promised_by: "standard-attr-tag (Neutron)",
        without: "the description of a floating IP identifies its owner (OCCM's text, then the uids of the cluster and the Service); users' tags are not set on floating IPs",
        calls: &[neutron("PUT", "/v2.0/floatingips/*/tags")],
    },
    Feature {
        name: "Descriptions of floating IPs",
        part: Some(OptionalPart::FloatingIpDescription),
        promised_by: "standard-attr-description (Neutron)",
        without: "a floating IP belongs to its Service only while it is attached to the load balancer; an unattached floating IP is never deleted, and neither is one that has no tags either",
        calls: &[neutron("PUT", "/v2.0/floatingips/*")],
    },
    Feature {
        name: "Tags of load balancers",
        part: Some(OptionalPart::LoadBalancerTags),
        promised_by: "Octavia API 2.5",
        without: "names and descriptions identify the owner of a load balancer, as with OCCM; load balancers are not shared, and users' tags are not set",
        calls: &[octavia("POST", "/v2.0/lbaas/loadbalancers"), octavia("PUT", "/v2.0/lbaas/loadbalancers/*")],
    },
    Feature {
        name: "Versions of Octavia",
        part: Some(OptionalPart::Versions),
        promised_by: "Octavia",
        without: "the oldest supported API version is assumed: existing settings that need a newer version are not changed, and new ones are refused; to prevent this, set octavia-api-version in cloud.conf",
        calls: &[octavia("GET", "/")],
    },
    Feature {
        name: "Status tree",
        part: Some(OptionalPart::StatusTree),
        promised_by: "Octavia API 2.0, role load-balancer_observer",
        without: "listeners, pools and members are read one after another, which takes more calls",
        calls: &[octavia("GET", "/v2.0/lbaas/loadbalancers/*/status")],
    },
    Feature {
        name: "Batches that add members (`additive_only`)",
        part: Some(OptionalPart::AdditiveBatches),
        promised_by: "Octavia API 2.11",
        without: "a new member is sent together with all other members of its pool and the values that administrators have set on them",
        calls: &[octavia("PUT", "/v2.0/lbaas/pools/*/members")],
    },
    Feature {
        name: "Filters of lists",
        part: Some(OptionalPart::Filters),
        promised_by: "Octavia API 2.0 and Neutron API 2.0",
        without: "lists are read with the objects of everybody in the project and filtered by the program, which takes longer",
        calls: &[
            octavia("GET", "/v2.0/lbaas/loadbalancers"),
            octavia("GET", "/v2.0/lbaas/listeners"),
            octavia("GET", "/v2.0/lbaas/pools"),
            neutron("GET", "/v2.0/floatingips"),
            neutron("GET", "/v2.0/networks"),
            neutron("GET", "/v2.0/ports"),
            neutron("GET", "/v2.0/security-groups"),
            neutron("GET", "/v2.0/subnets"),
        ],
    },
    Feature {
        name: "Networks by id",
        part: Some(OptionalPart::NetworkById),
        promised_by: "Neutron API 2.0",
        without: "floating-network-id and network-id are used without a check that the networks exist",
        calls: &[neutron("GET", "/v2.0/networks/*")],
    },
    Feature {
        name: "Security groups",
        part: Some(OptionalPart::SecurityGroups),
        promised_by: "security-group (Neutron)",
        without: "if manage-security-groups is set, node ports are not opened and existing groups are not removed; otherwise only groups that were created earlier are not removed",
        calls: &[
            neutron("GET", "/v2.0/security-groups"),
            neutron("POST", "/v2.0/security-groups"),
            neutron("DELETE", "/v2.0/security-groups/*"),
            neutron("POST", "/v2.0/security-group-rules"),
            neutron("DELETE", "/v2.0/security-group-rules/*"),
            neutron("PUT", "/v2.0/ports/*"),
            neutron("PUT", "/v2.0/ports/*/tags"),
            neutron("DELETE", "/v2.0/ports/*/tags/*"),
        ],
    },
    Feature {
        name: "Tags of security groups",
        part: Some(OptionalPart::SecurityGroupTags),
        promised_by: "standard-attr-tag (Neutron)",
        without: "the name and the description of a security group identify its owner",
        calls: &[neutron("PUT", "/v2.0/security-groups/*/tags")],
    },
    Feature {
        name: "Providers, flavors and availability zones",
        part: Some(OptionalPart::Providers),
        promised_by: "Octavia API 2.6 and 2.14",
        without: "what a provider supports is derived from its name, or from Octavia's refusals; flavor-id and availability-zone are sent without a check",
        calls: &[
            octavia("GET", "/v2.0/lbaas/providers"),
            octavia("GET", "/v2.0/lbaas/providers/*/flavor_capabilities"),
            octavia("GET", "/v2.0/lbaas/flavors/*"),
            octavia("GET", "/v2.0/lbaas/availabilityzones"),
        ],
    },
    Feature {
        name: "Quotas",
        part: Some(OptionalPart::Quotas),
        promised_by: "Octavia API 2.0",
        without: "`check-config --online` does not say how many load balancers the project may have; a listener is replaced by one of another protocol without a check that the quota has room for the new one",
        calls: &[octavia("GET", "/v2.0/lbaas/quotas/*")],
    },
    Feature {
        name: "Certificates",
        part: Some(OptionalPart::Certificates),
        promised_by: "Barbican",
        without: "a listener keeps its certificate, and a certificate that could not be checked is not set; container-store in cloud.conf switches the check off",
        calls: &[
            call(Service::KeyManager, "GET", "/v1/containers/*"),
            call(Service::KeyManager, "GET", "/v1/secrets/*"),
        ],
    },
];

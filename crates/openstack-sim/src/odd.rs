//! Clouds that answer otherwise than the newest release: older ones, ones with fewer extensions or stricter policies, and ones behind
//! a gateway of their own.

use http::Method;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::front_end::Rewrite;
use crate::lacks::{Lack, refused_by_octavia};
use crate::sim::Sim;

/// A cloud that differs in more than one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddCloud {
    /// Octavia with `allow_filtering = False`: each list is that of the whole project (octavia/api/common/pagination.py).
    OctaviaWithoutFilters,
    /// Neutron without `standard-attr-tag` and `filter-validation`: the path of tags is unknown, `tags` in a query has no effect.
    NeutronWithoutTags,
    /// Neutron without `standard-attr-tag`, with `filter_validation = True`: it refuses `tags` in a query (neutron/api/api_common.py).
    StrictNeutronWithoutTags,
    /// Neutron without `standard-attr-tag` and `standard-attr-description`: it knows neither in a body, in a query or in an answer
    /// (`verify_attributes` in neutron_lib/api/attributes.py).
    NeutronWithoutDescriptions,
    /// Octavia whose types have no `tags`, and that says it were newer: `wsme` refuses them in a body, and the pagination in a query.
    OctaviaWithoutTags,
    /// The policy `get_network` hides networks from their users; Neutron then answers as for a path that it does not have
    /// (neutron/pecan_wsgi/hooks/policy_enforcement.py).
    HiddenNetworks,
    /// A gateway that forwards neither Octavia's root nor the status tree.
    GatewayWithFewPaths,
    /// An application credential whose access rules were made for OCCM (keystonemiddleware/auth_token).
    AccessRules,
    /// A gateway that forwards lists without their filters.
    GatewayWithoutQueries,
    /// Octavia before 2.11 with a provider that shows no status tree, and a policy for its quotas.
    OldOctavia,
}

const NO_PATH: &str = "The resource could not be found.";

impl OddCloud {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::OctaviaWithoutFilters,
        Self::NeutronWithoutTags,
        Self::StrictNeutronWithoutTags,
        Self::NeutronWithoutDescriptions,
        Self::OctaviaWithoutTags,
        Self::HiddenNetworks,
        Self::GatewayWithFewPaths,
        Self::AccessRules,
        Self::GatewayWithoutQueries,
        Self::OldOctavia,
    ];

    fn lacks(self) -> &'static [Lack] {
        match self {
            Self::NeutronWithoutTags | Self::StrictNeutronWithoutTags | Self::NeutronWithoutDescriptions => {
                &[Lack::FloatingIpTags]
            }
            Self::GatewayWithFewPaths => &[Lack::Versions],
            Self::AccessRules => {
                &[Lack::NetworkById, Lack::SecurityGroups, Lack::Quotas, Lack::Certificates, Lack::Providers]
            }
            Self::OldOctavia => &[Lack::AdditiveBatches, Lack::StatusTree],
            Self::OctaviaWithoutFilters
            | Self::OctaviaWithoutTags
            | Self::HiddenNetworks
            | Self::GatewayWithoutQueries => &[],
        }
    }

    fn faults(self) -> Vec<Fault> {
        let no_filter = |name: &str, path: &str| {
            let text = format!("['{name}'] is invalid attribute for filtering");
            neutron(Method::GET, path).answer(400, refused_by_neutron("HTTPBadRequest", &text))
        };
        match self {
            Self::StrictNeutronWithoutTags => vec![no_filter("tags", r"/floatingips\?(.*&)?tags=")],
            Self::NeutronWithoutDescriptions => {
                let body = || refused_by_neutron("HTTPBadRequest", "Unrecognized attribute(s) 'description'");
                let unknown = |fault: Fault| fault.with_body("\"description\":").answer(400, body());
                vec![
                    unknown(neutron(Method::POST, "/floatingips$")),
                    unknown(neutron(Method::PUT, "/floatingips/[^/]+$")),
                    no_filter("description", r"/floatingips\?(.*&)?description="),
                    no_filter("tags", r"/floatingips\?(.*&)?tags="),
                ]
            }
            Self::OctaviaWithoutTags => {
                let unknown = |path, argument: &str| {
                    let text = format!("Unknown attribute for argument {argument}: tags");
                    let refused = move |method| {
                        octavia(method, path).with_body("\"tags\":").answer(400, refused_by_octavia(&text))
                    };
                    [Method::POST, Method::PUT].map(refused)
                };
                let kinds = [
                    unknown(r"/loadbalancers(/[^/]+)?$", "load_balancer.loadbalancer"),
                    unknown(r"/listeners(/[^/]+)?$", "listener_.listener"),
                    unknown(r"/pools(/[^/]+)?$", "pool_.pool"),
                ];
                let text = "One or more arguments are either duplicate or invalid";
                let filter = octavia(Method::GET, r"\?(.*&)?tags=").answer(400, refused_by_octavia(text));
                kinds.into_iter().flatten().chain([filter]).collect()
            }
            Self::HiddenNetworks => {
                let body = refused_by_neutron("HTTPNotFound", NO_PATH);
                vec![neutron(Method::GET, "^/v2.0/networks/[^/]+$").answer(404, body)]
            }
            Self::GatewayWithFewPaths => {
                let page = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>";
                vec![octavia(Method::GET, "/status$").page(404, page)]
            }
            Self::AccessRules => vec![
                neutron(Method::PUT, "/floatingips/[^/]+/tags$").unauthorized(),
                octavia(Method::GET, "/status$").unauthorized(),
            ],
            Self::OldOctavia => {
                let text = "Policy does not allow this request to be performed.";
                vec![octavia(Method::GET, "/quotas/").answer(403, refused_by_octavia(text))]
            }
            Self::OctaviaWithoutFilters | Self::NeutronWithoutTags | Self::GatewayWithoutQueries => {
                Vec::new()
            }
        }
    }

    fn rewrites(self) -> Vec<Rewrite> {
        let unfiltered = |service, path| Rewrite::IgnoresFilters { service, path, names: &[] };
        let of_octavia = || {
            let lists = ["/loadbalancers", "/listeners", "/pools", "/healthmonitors"];
            lists.map(|path| unfiltered("load-balancer", path))
        };
        let hidden = |service, places: &[&'static str]| {
            places.iter().map(|place| Rewrite::Hides { service, place }).collect()
        };
        match self {
            Self::OctaviaWithoutFilters => of_octavia().into(),
            Self::GatewayWithoutQueries => {
                let lists = ["/floatingips", "/ports", "/subnets", "/networks", "/security-groups"];
                let of_neutron = lists.map(|path| unfiltered("network", path));
                of_octavia().into_iter().chain(of_neutron).collect()
            }
            Self::NeutronWithoutDescriptions => {
                hidden("network", &["floatingip.description", "floatingips[].description"])
            }
            Self::OctaviaWithoutTags => {
                let places = [
                    "loadbalancer.tags",
                    "loadbalancers[].tags",
                    "listener.tags",
                    "listeners[].tags",
                    "pool.tags",
                    "pools[].tags",
                ];
                hidden("load-balancer", &places)
            }
            _ => Vec::new(),
        }
    }
}

fn neutron(method: Method, path: &str) -> Fault {
    Fault::new().service("network").method(method).path(path)
}

fn octavia(method: Method, path: &str) -> Fault {
    Fault::new().service("load-balancer").method(method).path(path)
}

fn refused_by_neutron(kind: &str, text: &str) -> Value {
    json!({"NeutronError": {"type": kind, "message": text, "detail": ""}})
}

impl Sim {
    /// Has the cloud answer like this one from here on.
    pub fn become_odd(&self, odd: OddCloud) {
        odd.lacks().iter().for_each(|lack| self.lack(*lack));
        if odd == OddCloud::NeutronWithoutDescriptions {
            self.remove_extension("standard-attr-description");
        }
        for fault in odd.faults() {
            self.faults().add(fault);
        }
        odd.rewrites().into_iter().for_each(|rule| self.rewrite(rule));
    }
}

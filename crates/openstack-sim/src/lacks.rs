//! Optional parts of the APIs that a cloud can lack, and what the real services answer then.

use http::Method;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::sim::Sim;

/// A part that this cloud does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Neutron's extension `standard-attr-tag`: no tags in answers, `tags` in a query has no effect, and there is no such path.
    /// OpenSDN under Neutron 2023.2 (OpenSDN-io/community#124).
    FloatingIpTags,
    /// Neither tags nor a `description` that could be changed: Contrail (kubernetes/cloud-provider-openstack#1088).
    FloatingIpMarks,
    /// Tags of load balancers, in an Octavia that says it had them: `wsme` refuses attributes that a type does not have (octavia/api/common/types.py).
    LoadBalancerTags,
    /// The root of Octavia, behind a gateway that forwards `/v2*` only (openshift/kuryr-kubernetes#348).
    Versions,
    /// The status tree: opentelekomcloud-infra/octavia-proxy has no such path; a provider may answer 501.
    StatusTree,
    /// `additive_only`, as an Octavia before 2.11 answers it: `wsme` knows no such argument (wsme/exc.py).
    AdditiveBatches,
    /// Networks by id, for an application credential with access rules (k-orc/openstack-resource-controller#596). The middleware of
    /// Keystone answers for what no rule allows (keystonemiddleware/auth_token).
    NetworkById,
    /// Security groups, for the same credential.
    SecurityGroups,
    /// The list of providers, which a policy forbids.
    Providers,
    /// The quotas of Octavia, for the same credential.
    Quotas,
    /// Barbican, for the same credential.
    Certificates,
}

impl Lack {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::FloatingIpTags,
        Self::FloatingIpMarks,
        Self::LoadBalancerTags,
        Self::Versions,
        Self::StatusTree,
        Self::AdditiveBatches,
        Self::NetworkById,
        Self::SecurityGroups,
        Self::Providers,
        Self::Quotas,
        Self::Certificates,
    ];

    fn faults(self) -> Vec<Fault> {
        const NOT_FOUND: &str = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>";
        let neutron = |method, path| Fault::new().service("network").method(method).path(path);
        let octavia = |method, path| Fault::new().service("load-balancer").method(method).path(path);
        match self {
            Self::FloatingIpTags => Vec::new(),
            Self::FloatingIpMarks => {
                let body = json!({"NeutronError": {
                    "type": "HTTPBadRequest", "message": "Unrecognized attribute(s) 'description'", "detail": "",
                }});
                let change = neutron(Method::PUT, "^/v2.0/floatingips/[^/]+$").with_body("\"description\"");
                vec![change.answer(400, body)]
            }
            Self::LoadBalancerTags => {
                let text = "Unknown attribute for argument load_balancer.loadbalancer: tags";
                let unknown =
                    |fault: Fault| fault.with_body("\"tags\"").answer(400, refused_by_octavia(text));
                let (create, change) =
                    (octavia(Method::POST, "/loadbalancers$"), octavia(Method::PUT, "/loadbalancers/[^/]+$"));
                vec![unknown(create), unknown(change)]
            }
            Self::Versions => vec![octavia(Method::GET, "^/$").page(404, NOT_FOUND)],
            Self::StatusTree => {
                let body =
                    json!({"faultcode": "Server", "faultstring": "not implemented", "debuginfo": null});
                vec![octavia(Method::GET, "/status$").answer(501, body)]
            }
            Self::AdditiveBatches => {
                let text = "Unknown argument: \"additive_only\"";
                vec![octavia(Method::PUT, "additive_only").answer(400, refused_by_octavia(text))]
            }
            Self::NetworkById => vec![neutron(Method::GET, "^/v2.0/networks/[^/]+$").unauthorized()],
            Self::SecurityGroups => vec![neutron(Method::GET, "^/v2.0/security-groups").unauthorized()],
            Self::Providers => {
                let text = "Policy does not allow this request to be performed.";
                vec![octavia(Method::GET, "/providers$").answer(403, refused_by_octavia(text))]
            }
            Self::Quotas => vec![octavia(Method::GET, "/quotas/").unauthorized()],
            Self::Certificates => {
                vec![Fault::new().service("key-manager").method(Method::GET).path("^/v1/").unauthorized()]
            }
        }
    }
}

/// How Octavia refuses a request.
pub(crate) fn refused_by_octavia(text: &str) -> Value {
    json!({"faultcode": "Client", "faultstring": text, "debuginfo": null})
}

impl Sim {
    /// Takes an optional part away.
    pub fn lack(&self, lack: Lack) {
        if matches!(lack, Lack::FloatingIpTags | Lack::FloatingIpMarks) {
            self.remove_extension("standard-attr-tag");
        }
        for fault in lack.faults() {
            self.faults().add(fault);
        }
    }
}

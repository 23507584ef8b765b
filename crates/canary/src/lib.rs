//! The canary: whether the service proxy of each node honours `ipMode: Proxy`, measured and not guessed.
//!
//! Two Services of type LoadBalancer without a load balancer get addresses for documentation (RFC 5737, RFC 3849) in
//! their status: [`CONTROL`] with `ipMode: VIP`, [`SUBJECT`] with `ipMode: Proxy`. A pod on every node dials both, and the
//! ClusterIP of the first. A service proxy that honours the mode sends the first connection to a canary pod and leaves the
//! second alone, so that nothing answers it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`addresses`] | the addresses of both Services, for each family |
//! | [`verdict`] | what the results of three dials mean |
//! | [`steady`] | from looks to a verdict: equal looks, patience before a node is fit again, lapse |
//! | [`pod`] | the program in the pods |
//! | [`carried`] | the verdict in the status of a pod |
//! | [`observed_pod`] | the fields of a pod that are read |
//! | [`ledger`] | the verdicts of all nodes over time |
//! | [`objects`] | the objects that make a canary |
//!
//! The pods have no token and no rights. Their verdict leaves them by the readiness of two containers, which the kubelet
//! reports (docs/adr/0037).

pub mod addresses;
pub mod carried;
pub mod ledger;
pub mod objects;
pub mod observed_pod;
pub mod pod;
pub mod steady;
pub mod verdict;

/// Namespace of the permanent canary.
pub const NAMESPACE: &str = "openstack-ccm-canary";
/// Names of the DaemonSet of the permanent canary: with openstack-ccm, and with the overlay.
pub const DAEMON_SETS: [&str; 2] = ["openstack-ccm-canary", "ip-mode-overlay-canary"];
/// Name of the Service whose address nodes may short-circuit.
pub const CONTROL: &str = "control";
/// Name of the Service whose address nodes must leave alone.
pub const SUBJECT: &str = "subject";
/// `loadBalancerClass` of both Services, which no controller serves.
pub const CLASS: &str = "openstack-ccm.io/canary";
/// The label that selects the pods, and its value.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/name", "openstack-ccm-canary");
/// Container that answers and dials. It is ready while it has a verdict.
pub const CONCLUSIVE: &str = "conclusive";
/// Container that does nothing. It is ready while the verdict is that the node is fit.
pub const FIT: &str = "fit";
/// Port of the token, in pods and Services.
pub const PORT: u16 = 8080;
/// Port at which the kubelet asks for the readiness of both containers.
pub(crate) const READINESS_PORT: u16 = 8081;

//! The canary: whether the service proxy of each node honours `ipMode: Proxy`, measured and not guessed.
//!
//! Two Services of type LoadBalancer that no load balancer stands behind get addresses for documentation (RFC 5737,
//! RFC 3849) in their status: [`CONTROL`] one with `ipMode: VIP`, [`SUBJECT`] one with `ipMode: Proxy`. A pod on every node
//! dials both, and the ClusterIP of the first. A service proxy that honours the mode takes the first connection to a canary
//! pod and leaves the second alone, so that nobody answers it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`addresses`] | the addresses of both Services, for each family |
//! | [`look`] | what three dials mean: the table |
//! | [`steady`] | from looks to a verdict: equal looks, patience before a node is fit again, lapse |
//! | [`pod`] | the program in the pods |
//! | [`carried`] | the verdict as the status of a pod carries it |
//! | [`observed_pod`] | a pod, with what is read of it |
//! | [`ledger`] | the verdicts of all nodes over time |
//! | [`objects`] | the objects that make a canary |
//!
//! The pods have no token and no rights. Their verdict leaves them by the readiness of two containers, which the kubelet
//! reports (docs/adr/0037).

pub mod addresses;
pub mod carried;
pub mod ledger;
pub mod look;
pub mod objects;
pub mod observed_pod;
pub mod pod;
pub mod steady;

/// Namespace of the canary that a cluster keeps.
pub const NAMESPACE: &str = "openstack-ccm-canary";
/// Names of the DaemonSet of the canary that a cluster keeps: with openstack-ccm, and with the overlay.
pub const DAEMON_SETS: [&str; 2] = ["openstack-ccm-canary", "ip-mode-overlay-canary"];
/// Name of the Service whose address nodes may short-circuit.
pub const CONTROL: &str = "control";
/// Name of the Service whose address nodes must leave alone.
pub const SUBJECT: &str = "subject";
/// `loadBalancerClass` of both Services, which no controller serves.
pub const CLASS: &str = "openstack-ccm.io/canary";
/// The label that selects the pods, and its value.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/name", "openstack-ccm-canary");
/// Container that answers and looks. It is ready while it has a verdict.
pub const CONCLUSIVE: &str = "conclusive";
/// Container that does nothing. It is ready while the verdict is that the node is fit.
pub const FIT: &str = "fit";
/// Port of the token, in pods and Services.
pub const PORT: u16 = 8080;
/// Port at which the kubelet asks for the readiness of both containers.
pub(crate) const READINESS_PORT: u16 = 8081;

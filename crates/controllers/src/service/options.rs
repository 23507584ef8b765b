//! An operator's settings of the service controller.

use std::time::Duration;

use openstack_ccm_advertise::canary::CanaryOptions;

/// Settings of a [`ServiceController`](super::ServiceController).
#[derive(Clone, Debug)]
pub struct ServiceControllerOptions {
    /// Services that are worked on at the same time; at least 1.
    pub concurrency: usize,
    /// Serve Services of this `loadBalancerClass` and no others; absent: Services without a class.
    pub load_balancer_class: Option<String>,
    /// `--feature-gates=LoadBalancerIPMode=...`: the operator's setting, which replaces the detection.
    pub ip_mode_gate: Option<bool>,
    /// The canary, whose verdicts on nodes outweigh guesses; absent if there is none.
    pub canary: Option<CanaryOptions>,
    /// Port at which kube-proxies are asked for their feature gates at the addresses of nodes; absent: no requests.
    pub kube_proxy_metrics_port: Option<u16>,
    /// Annotation of a Service that selects nodes by labels (a comma list of `key=value` or `key`). A changed label
    /// of a node leads to a reconciliation of the Services that select by it.
    pub node_selector_annotation: Option<String>,
    /// The selection for Services without that annotation, in the same form.
    pub node_selector: Option<String>,
    /// Delay after a successful reconciliation until the cloud is compared again, to find manual changes there. Absent: never. A
    /// random part of up to a fifth is added. At the same interval, load balancers are looked for whose Service is gone.
    pub resync: Option<Duration>,
    /// Changes of nodes within this time lead to one reconciliation of all Services.
    pub node_change_delay: Duration,
    /// Time between two such reconciliations: changes in between are in the next one.
    pub node_change_interval: Duration,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
    /// How often the API server is asked whether it keeps `ipMode`, while nothing points at a change.
    pub probe_interval: Duration,
    /// How often the version of the API server is read.
    pub version_interval: Duration,
    /// Time that running reconciliations have to end when the controller is stopped; then they are dropped, which is safe.
    pub shutdown_grace: Duration,
}

impl Default for ServiceControllerOptions {
    fn default() -> Self {
        Self {
            concurrency: 32,
            load_balancer_class: None,
            ip_mode_gate: None,
            canary: None,
            kube_proxy_metrics_port: None,
            node_selector_annotation: None,
            node_selector: None,
            resync: Some(Duration::from_secs(1800)),
            node_change_delay: Duration::from_millis(100),
            node_change_interval: Duration::from_secs(1),
            call_timeout: Duration::from_secs(30),
            probe_interval: Duration::from_secs(600),
            version_interval: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

//! What decides what the controllers do, whether they run or are planned.

use clap::Args;

use super::feature_gates::FeatureGates;
use super::{ConfigArgs, RouteArgs, ServiceProxyArgs};

/// The flags that a plan has to be made with too.
#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Name of the cluster; part of the name of every cloud object.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", default_value = "kubernetes")]
    pub cluster_name: String,
    /// Controllers to run: `*`, `name`, `-name`; aliases such as `service` are understood.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_value = "*")]
    pub controllers: Vec<String>,
    /// Serve only Services of this `loadBalancerClass`; by default those that name no class.
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Option<String>,
    /// Feature gates as name=true|false; `LoadBalancerIPMode` replaces the detection of the cluster's support.
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<FeatureGates>,
    /// Flags of the route controller.
    #[command(flatten)]
    pub route: RouteArgs,
    /// What is known of the service proxies on nodes.
    #[command(flatten)]
    pub service_proxies: ServiceProxyArgs,
}

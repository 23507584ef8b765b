//! Flags of the controllers. What decides what they do is a group of its own, with which a plan has to be made too.

use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use openstack_ccm_advertise::canary::CanaryOptions;
use openstack_ccm_canary::addresses::Addresses;

use openstack_ccm_core::cloud::DEFAULT_CLUSTER_NAME;

use super::feature_gates::FeatureGates;
use super::{ConfigArgs, duration, value};

/// The flags that a plan has to be made with too.
#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Name of the cluster; part of the name of every cloud object.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", default_value = DEFAULT_CLUSTER_NAME)]
    pub cluster_name: String,
    /// Controllers to run: `*`, `name`, `-name`; aliases such as `service` are understood.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_value = "*")]
    pub controllers: Vec<String>,
    /// Serve only Services of this `loadBalancerClass`; by default those that name no class.
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Option<String>,
    /// Feature gates as name=true|false; `LoadBalancerIPMode` overrides the detection of the cluster's support.
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<FeatureGates>,
    /// Flags of the route controller.
    #[command(flatten)]
    pub route: RouteArgs,
    /// What is known of the service proxies on nodes.
    #[command(flatten)]
    pub service_proxies: ServiceProxyArgs,
}

/// Flags about what is known of the service proxies on nodes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service proxies on nodes")]
pub struct ServiceProxyArgs {
    /// Where the canary is.
    #[command(flatten)]
    pub canary: CanaryPlaceArgs,
    /// Port at which kube-proxy serves its metrics on the address of each node, usually 10249; the metrics show whether
    /// kube-proxy honours ipMode. 0 switches this off.
    #[arg(long, value_name = "PORT", default_value_t = 0, allow_negative_numbers = true, value_parser = value::port)]
    pub kube_proxy_metrics_port: u16,
}

/// Flags that say where the canary is.
#[derive(Clone, Debug, Args)]
pub struct CanaryPlaceArgs {
    /// Namespace of the canary, whose verdicts on nodes override what versions and images suggest; empty for none.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub canary_namespace: String,
    /// Addresses of the canary's Services, two for each family; nothing else may use them.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::permanent())]
    pub canary_addresses: Addresses,
}

impl CanaryPlaceArgs {
    /// Returns the options of the canary with Services of this class, if there is one.
    pub(crate) fn options(&self, class: &'static str) -> Option<CanaryOptions> {
        let namespace = Some(self.canary_namespace.clone()).filter(|namespace| !namespace.is_empty())?;
        Some(CanaryOptions { namespace, addresses: self.canary_addresses.clone(), class })
    }
}

/// Flags of the node controller and the node lifecycle controller.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Node controllers")]
pub struct NodeArgs {
    /// New nodes that are initialised at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..),
        allow_negative_numbers = true)]
    pub concurrent_node_syncs: u16,
    /// Nodes whose addresses are written at once; 0 is the number of --concurrent-node-syncs.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub concurrent_node_status_updates: u16,
    /// Time between two comparisons of all nodes with their servers.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub node_status_update_frequency: Duration,
    /// Nodes that are not ready and that are asked about a last time, or given a taint, at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..),
        allow_negative_numbers = true)]
    pub concurrent_node_lifecycle_syncs: u16,
    /// Time between two checks of nodes that are not ready.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub node_monitor_period: Duration,
    /// How long the server of a Node has to be gone before the Node is deleted. While it lasts, the Node is as it was; a restart begins
    /// anew.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub node_deletion_delay: Duration,
}

impl NodeArgs {
    /// Returns how many nodes are written at once, at least 1.
    pub fn status_updates(&self) -> u16 {
        match self.concurrent_node_status_updates {
            0 => self.concurrent_node_syncs,
            given => given,
        }
    }
}

/// Flags of the route controller.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Route controller")]
pub struct RouteArgs {
    /// Write a route for the pods of each node, where the cloud is configured for it (`[Route] router-id`).
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = value::boolean)]
    pub configure_cloud_routes: bool,
    /// Address range of the pods; for dual-stack one IPv4 and one IPv6 range, separated by a comma. Routes outside of
    /// it are left alone.
    #[arg(long, value_name = "CIDR", default_value = "")]
    pub cluster_cidr: String,
    /// Longest time between two comparisons of the routes with the nodes.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub route_reconciliation_period: Duration,
}

/// A `--cluster-cidr` with which routes cannot be kept.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClusterCidrError {
    /// The flag is not given.
    #[error(
        "--cluster-cidr is missing: the route controller manages routes only within the pods' address range; set it, for example \
         --cluster-cidr=10.244.0.0/16, or disable routes with --configure-cloud-routes=false"
    )]
    Missing,
    /// A text that is not a range.
    #[error("--cluster-cidr={0}: this is not an address range; write a CIDR such as 10.244.0.0/16")]
    NotARange(String),
    /// More than two ranges, or two of one family.
    #[error("--cluster-cidr={0}: specify one range, or one IPv4 range and one IPv6 range")]
    Families(String),
}

impl RouteArgs {
    /// Returns the ranges of `--cluster-cidr`, for the controller that needs them.
    ///
    /// # Errors
    /// None given, more than one of a family, or a text that is not a range.
    pub fn cluster_cidrs(&self) -> Result<Vec<IpNet>, ClusterCidrError> {
        let mut ranges: Vec<IpNet> = Vec::new();
        for text in self.cluster_cidr.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let range: IpNet = text.parse().map_err(|_| ClusterCidrError::NotARange(text.to_owned()))?;
            ranges.push(range.trunc());
        }
        match ranges.as_slice() {
            [] => Err(ClusterCidrError::Missing),
            [_] => Ok(ranges),
            [IpNet::V4(_), IpNet::V6(_)] | [IpNet::V6(_), IpNet::V4(_)] => Ok(ranges),
            [_, _, ..] => Err(ClusterCidrError::Families(self.cluster_cidr.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Result<Vec<String>, ClusterCidrError> {
        let arguments = RouteArgs {
            configure_cloud_routes: true,
            cluster_cidr: text.to_owned(),
            route_reconciliation_period: Duration::from_secs(10),
        };
        Ok(arguments.cluster_cidrs()?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn one_range_or_one_of_each_family_is_read() {
        assert_eq!(ranges("10.244.3.0/16"), Ok(vec!["10.244.0.0/16".to_owned()]));
        assert_eq!(ranges("fd00::/48, 10.244.0.0/16").map(|ranges| ranges.len()), Ok(2));
    }

    #[test]
    fn everything_else_names_the_flag() {
        assert_eq!(ranges(""), Err(ClusterCidrError::Missing));
        assert_eq!(ranges("10.244.0.0"), Err(ClusterCidrError::NotARange("10.244.0.0".to_owned())));
        let two = "10.0.0.0/16,10.1.0.0/16";
        assert_eq!(ranges(two), Err(ClusterCidrError::Families(two.to_owned())));
    }
}

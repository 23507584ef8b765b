//! Flags about what is known of the service proxies on nodes.

use clap::Args;
use openstack_ccm_advertise::canary::CanaryOptions;
use openstack_ccm_canary::CLASS;
use openstack_ccm_canary::addresses::Addresses;

/// Flags about what is known of the service proxies on nodes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service proxies on nodes")]
pub struct ServiceProxyArgs {
    /// Namespace of the canary, whose verdicts on nodes override what versions and images suggest; empty for none.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub canary_namespace: String,
    /// Addresses of the canary's Services, two for each family; nothing else may use them.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::permanent())]
    pub canary_addresses: Addresses,
    /// Port at which kube-proxy serves its metrics on the address of each node, usually 10249; the metrics show whether
    /// kube-proxy honours ipMode. 0 switches this off.
    #[arg(long, value_name = "PORT", default_value_t = 0, allow_negative_numbers = true)]
    pub kube_proxy_metrics_port: u16,
}

impl ServiceProxyArgs {
    /// Where the canary is, if there is one.
    pub(crate) fn canary(&self) -> Option<CanaryOptions> {
        let namespace = Some(self.canary_namespace.clone()).filter(|namespace| !namespace.is_empty())?;
        Some(CanaryOptions { namespace, addresses: self.canary_addresses.clone(), class: CLASS })
    }
}

//! What a provider shows of itself, read from it when somebody looks.

use std::fmt;
use std::sync::Arc;

use openstack_ccm_core::provider::{Gauge, LoadBalancers};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Shows the gauges of a provider.
struct ProviderMetrics(Arc<dyn LoadBalancers>);

/// Shows the gauges of a provider in `registry`.
pub(crate) fn register(load_balancers: &Arc<dyn LoadBalancers>, registry: &mut Registry) {
    registry.register_collector(Box::new(ProviderMetrics(Arc::clone(load_balancers))));
}

impl fmt::Debug for ProviderMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProviderMetrics").finish_non_exhaustive()
    }
}

impl Collector for ProviderMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Gauge { name, help, value } in self.0.gauges() {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            // The encoder of the registry ends help texts so.
            let help = format!("{help}.");
            gauge.encode(encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

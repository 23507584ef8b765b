//! Metrics of the creations of load balancers, read from the provider when somebody looks.

use std::fmt;

use openstack_ccm_provider_openstack::load_balancer::creations::Creations;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Shows the counts of a provider.
#[derive(Debug)]
struct CreationMetrics(Creations);

/// Shows the creations of a provider in `registry`.
pub(crate) fn register(creations: &Creations, registry: &mut Registry) {
    registry.register_collector(Box::new(CreationMetrics(creations.clone())));
}

impl Collector for CreationMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.counts();
        let gauges = [
            (
                "openstack_ccm_load_balancer_creations_waiting",
                "Services whose load balancer is not created yet, because Octavia is busy with others",
                counts.waiting,
            ),
            (
                "openstack_ccm_load_balancer_creations",
                "Load balancers that are being created",
                counts.under_way,
            ),
            (
                "openstack_ccm_load_balancer_creations_limit",
                "Maximum number of load balancers that are created at once; it depends on how fast Octavia finishes them",
                counts.limit,
            ),
        ];
        for (name, help, count) in gauges {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            // The encoder of the registry ends help texts so.
            let help = format!("{help}.");
            gauge.encode(encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

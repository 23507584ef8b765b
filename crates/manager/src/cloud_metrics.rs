//! Metrics of the cloud: calls, with OCCM's buckets, and the gauges of a provider, read at each scrape.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::cloud::CallObserver;
use openstack_ccm_core::provider::{Gauge, LoadBalancers};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of the durations, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// `request`: the name of the call; a closed set of the typed calls.
type Labels = [(&'static str, &'static str); 1];

/// Counts calls and their durations.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    durations: Family<Labels, Histogram>,
    requests: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl CallMetrics {
    /// Creates metrics that `registry` shows, under names with the provider's prefix.
    pub fn register(registry: &mut Registry, prefix: &str) -> Arc<Self> {
        let metrics = Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            requests: Family::default(),
            errors: Family::default(),
        };
        registry.register(
            format!("{prefix}_request_duration_seconds"),
            "Latency of a cloud API call",
            metrics.durations.clone(),
        );
        registry.register(
            format!("{prefix}_requests"),
            "Total number of cloud API calls",
            metrics.requests.clone(),
        );
        registry.register(
            format!("{prefix}_request_errors"),
            "Total number of errors for a cloud API call",
            metrics.errors.clone(),
        );
        Arc::new(metrics)
    }
}

impl CallObserver for CallMetrics {
    fn observe(&self, call: &'static str, duration: Duration, succeeded: bool) {
        let labels = [("request", call)];
        self.durations.get_or_create(&labels).observe(duration.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
        if !succeeded {
            self.errors.get_or_create(&labels).inc();
        }
    }
}

/// Shows the gauges of a provider.
struct ProviderMetrics(Arc<dyn LoadBalancers>);

/// Shows the gauges of a provider in `registry`.
pub(crate) fn show_gauges(load_balancers: &Arc<dyn LoadBalancers>, registry: &mut Registry) {
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
            // The encoder of the registry ends help texts with a full stop.
            let help = format!("{help}.");
            gauge.encode(encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_under_the_names_that_dashboards_know() {
        let mut registry = Registry::default();
        let metrics = CallMetrics::register(&mut registry, "openstack_api");
        metrics.observe("loadbalancer_create", Duration::from_millis(30), true);
        metrics.observe("loadbalancer_create", Duration::from_millis(30), false);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains("openstack_api_requests_total{request=\"loadbalancer_create\"} 2"), "{text}");
        assert!(
            text.contains("openstack_api_request_errors_total{request=\"loadbalancer_create\"} 1"),
            "{text}"
        );
        assert!(
            text.contains("openstack_api_request_duration_seconds_bucket{le=\"0.05\",request="),
            "{text}"
        );
    }
}

//! Helpers for the metrics of all controllers.

use openstack_ccm_core::failure::FailureClass;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

/// Labels with their values.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Creates a metric and makes it visible in `registry`. Clones share the value.
pub fn metric<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    shown(registry, name, help, M::default())
}

/// Makes a metric that has no default visible in `registry`.
pub fn shown<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Sets a gauge to how many there are of something.
pub fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Counts an item under other labels than before; `None`: under no labels.
pub fn count_anew<const N: usize>(
    gauges: &Family<Labels<N>, Gauge>,
    before: Option<Labels<N>>,
    now: Option<Labels<N>>,
) {
    if let Some(before) = before {
        gauges.get_or_create(&before).dec();
    }
    if let Some(now) = now {
        gauges.get_or_create(&now).inc();
    }
}

/// Failures, by class.
#[derive(Clone, Debug)]
pub struct FailureCounts(Family<Labels<1>, Counter>);

impl FailureCounts {
    /// Creates counts in `registry`, with each class from the start.
    pub fn registered(registry: &mut Registry, name: &str, help: &str) -> Self {
        let counts: Family<Labels<1>, Counter> = metric(registry, name, help);
        for class in FailureClass::ALL {
            drop(counts.get_or_create(&[("class", class.as_str())]));
        }
        Self(counts)
    }

    /// Counts a failure.
    pub fn count(&self, class: FailureClass) {
        self.0.get_or_create(&[("class", class.as_str())]).inc();
    }
}

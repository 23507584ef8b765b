//! The metrics of this program besides those of the published entries and of what the cluster honours.

use openstack_ccm_core::failure::FailureClass;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Label = [(&'static str, &'static str); 1];

/// The metrics of one controller. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    refused: Family<Label, Gauge>,
    contested: Gauge,
    failures: Family<Label, Counter>,
}

impl Metrics {
    /// Creates the metrics and makes them visible in `registry`, which prefixes their names.
    pub(crate) fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "services_refused",
            "Services that a rule selects but whose status is not changed, by reason",
            metrics.refused.clone(),
        );
        registry.register(
            "services_contested",
            "Services whose status another controller keeps overwriting, so this controller stops writing \
             it for a while",
            metrics.contested.clone(),
        );
        registry.register(
            "service_failures",
            "Failed reconciliations of Services, by class of failure",
            metrics.failures.clone(),
        );
        for class in FailureClass::ALL {
            drop(metrics.failures.get_or_create(&[("class", class.as_str())]));
        }
        metrics
    }

    /// Moves a Service from one refusal reason to another; absent: the Service is not refused.
    pub(crate) fn refusal_changed(&self, before: Option<&'static str>, now: Option<&'static str>) {
        for (reason, change) in [(before, -1), (now, 1)] {
            if let Some(reason) = reason {
                self.refused.get_or_create(&[("reason", reason)]).inc_by(change);
            }
        }
    }

    /// Records that another manager began or stopped rewriting a status.
    pub(crate) fn contest_changed(&self, before: bool, now: bool) {
        self.contested.inc_by(i64::from(now) - i64::from(before));
    }

    /// Counts a failed reconciliation.
    pub(crate) fn failed(&self, class: FailureClass) {
        self.failures.get_or_create(&[("class", class.as_str())]).inc();
    }
}

//! The `workqueue_*` metrics that dashboards know from the framework, for the queue named `service`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Reads, at scrape time, how many Services are ready and how long each running pass has run.
pub(super) type Source = Arc<dyn Fn() -> (usize, Vec<Duration>) + Send + Sync>;

/// What the queue counts.
#[derive(Debug)]
pub(super) struct QueueMetrics {
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        // From 10 ns to 10 s, as the framework has them, and two more: one pass may take minutes.
        let buckets = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self { adds: Counter::default(), retries: Counter::default(), waited: buckets(), worked: buckets() }
    }
}

impl QueueMetrics {
    pub(super) fn register(&self, registry: &mut Registry, source: &Source) {
        let registry = registry.sub_registry_with_label(("name".into(), "service".into()));
        registry.register("workqueue_adds", "Services added to the queue", self.adds.clone());
        registry.register("workqueue_retries", "Failed passes that are tried again", self.retries.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "Seconds that a Service waited in the queue",
            self.waited.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Seconds that one pass took",
            self.worked.clone(),
        );
        registry.register_collector(Box::new(Now(Arc::clone(source))));
    }

    pub(super) fn added(&self) {
        self.adds.inc();
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }

    pub(super) fn taken(&self, waited: Duration) {
        self.waited.observe(waited.as_secs_f64());
    }

    pub(super) fn worked(&self, worked: Duration) {
        self.worked.observe(worked.as_secs_f64());
    }
}

/// The metrics that only have a value at the moment of the scrape.
struct Now(Source);

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now")
    }
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let (depth, working) = (self.0)();
        let unfinished: Duration = working.iter().sum();
        let longest = working.iter().max().copied().unwrap_or_default();
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        let mut gauge = |name: &str, help: &str, value: &dyn EncodeMetric| {
            value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)
        };
        gauge("workqueue_depth", "Services that are ready to be worked on", &ConstGauge::new(depth))?;
        gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds that the running passes have run, together",
            &ConstGauge::new(unfinished.as_secs_f64()),
        )?;
        gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest running pass has run",
            &ConstGauge::new(longest.as_secs_f64()),
        )
    }
}

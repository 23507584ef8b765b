//! The `workqueue_*` metrics that dashboards know from the framework.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Reads, at scrape time, how many entries are ready and how long each running pass has run.
pub(crate) type Source = Arc<dyn Fn() -> (usize, Vec<Duration>) + Send + Sync>;

/// What the queue counts.
#[derive(Debug)]
pub(crate) struct QueueMetrics {
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
    /// Makes the metrics visible, with the framework's name of the queue as label.
    pub(crate) fn register(&self, registry: &mut Registry, queue: &'static str, source: &Source) {
        let registry = registry.sub_registry_with_label(("name".into(), queue.into()));
        registry.register("workqueue_adds", "Entries added to the queue", self.adds.clone());
        registry.register("workqueue_retries", "Failed passes that are tried again", self.retries.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "Seconds that an entry waited in the queue",
            self.waited.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Seconds that one pass took",
            self.worked.clone(),
        );
        registry.register_collector(Box::new(Now(Arc::clone(source))));
    }

    /// An entry was queued.
    pub(crate) fn added(&self) {
        self.adds.inc();
    }

    /// A failed pass will be repeated.
    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    /// An entry was taken after this time in the queue.
    pub(crate) fn taken(&self, waited: Duration) {
        self.waited.observe(waited.as_secs_f64());
    }

    /// A pass ended after this time.
    pub(crate) fn worked(&self, worked: Duration) {
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
        gauge("workqueue_depth", "Entries that are ready to be worked on", &ConstGauge::new(depth))?;
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

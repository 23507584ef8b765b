//! The `workqueue_*` metrics that dashboards know from the framework.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use openstack_ccm_core::lock::lock;

/// Reads, at scrape time, how many entries are ready and how long each running reconciliation has run.
pub(crate) type Source = Arc<dyn Fn() -> (usize, Vec<Duration>) + Send + Sync>;

/// The counts of a queue. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        // From 10 ns to 10 s, as the framework has them, and two more: one reconciliation may take minutes.
        let buckets = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self { adds: Counter::default(), retries: Counter::default(), waited: buckets(), worked: buckets() }
    }
}

impl QueueMetrics {
    /// Counts a queued entry.
    pub(crate) fn added(&self) {
        self.adds.inc();
    }

    /// Counts a failed reconciliation that will be repeated.
    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    /// Records how long an entry waited in the queue.
    pub(crate) fn taken(&self, waited: Duration) {
        self.waited.observe(waited.as_secs_f64());
    }

    /// Records how long a reconciliation took.
    pub(crate) fn worked(&self, worked: Duration) {
        self.worked.observe(worked.as_secs_f64());
    }
}

/// The work queues of a process, shown together: a family must appear once on a page of metrics, however many queues it
/// has. Clones share the queues.
#[derive(Clone, Debug, Default)]
pub struct WorkQueues {
    queues: Arc<Mutex<Vec<Queue>>>,
}

impl WorkQueues {
    /// Creates an empty set; queues that are added later appear in `registry`.
    pub fn registered(registry: &mut Registry) -> Self {
        let queues = Self::default();
        registry.register_collector(Box::new(queues.clone()));
        queues
    }

    /// Shows a queue under its name in the framework. It replaces an earlier queue of that name.
    pub(crate) fn add(&self, name: &'static str, metrics: &QueueMetrics, source: Source) {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.name != name);
        queues.push(Queue { name, metrics: metrics.clone(), source });
    }
}

/// One queue and where its values come from.
struct Queue {
    name: &'static str,
    metrics: QueueMetrics,
    source: Source,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.name).finish()
    }
}

/// Names and help texts, in the order of [`Queue::values`].
const FAMILIES: [(&str, &str); 7] = [
    ("workqueue_adds", "Entries added to the queue"),
    ("workqueue_retries", "Failed attempts that are retried"),
    ("workqueue_queue_duration_seconds", "Seconds that an entry waited in the queue"),
    ("workqueue_work_duration_seconds", "Seconds that the work on an entry took"),
    ("workqueue_depth", "Entries that are ready to be worked on"),
    ("workqueue_unfinished_work_seconds", "Seconds that the work in progress has taken so far, added up"),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds that the longest work in progress has taken so far",
    ),
];

impl Queue {
    /// Returns the counts, the number of ready entries, and the seconds that the running reconciliations have run: their sum
    /// and the longest.
    fn values(&self) -> [Box<dyn EncodeMetric>; FAMILIES.len()] {
        let QueueMetrics { adds, retries, waited, worked } = self.metrics.clone();
        let (depth, working) = (self.source)();
        let longest = working.iter().max().copied().unwrap_or_default();
        [
            Box::new(adds),
            Box::new(retries),
            Box::new(waited),
            Box::new(worked),
            Box::new(ConstGauge::new(i64::try_from(depth).unwrap_or(i64::MAX))),
            Box::new(ConstGauge::new(working.iter().sum::<Duration>().as_secs_f64())),
            Box::new(ConstGauge::new(longest.as_secs_f64())),
        ]
    }
}

impl Collector for WorkQueues {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let values: Vec<_> = lock(&self.queues).iter().map(|queue| (queue.name, queue.values())).collect();
        let Some((_, first)) = values.first() else { return Ok(()) };
        for (index, (name, help)) in FAMILIES.iter().enumerate() {
            // The encoder of the registry ends help texts with a full stop.
            let help = format!("{help}.");
            let mut family = encoder.encode_descriptor(name, &help, None, first[index].metric_type())?;
            for (queue, values) in &values {
                values[index].encode(family.encode_family(&[("name", *queue)])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_appears_once_with_a_sample_for_each_queue() {
        let mut registry = Registry::default();
        let queues = WorkQueues::registered(&mut registry);
        let (service, node) = (QueueMetrics::default(), QueueMetrics::default());
        service.added();
        queues.add(
            "service",
            &service,
            Arc::new(|| (2, vec![Duration::from_secs(3), Duration::from_secs(4)])),
        );
        queues.add("Nodes", &node, Arc::new(|| (0, Vec::new())));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(families.len(), 7, "{text}");
        for line in [
            "workqueue_adds_total{name=\"service\"} 1",
            "workqueue_adds_total{name=\"Nodes\"} 0",
            "workqueue_depth{name=\"service\"} 2",
            "workqueue_unfinished_work_seconds{name=\"service\"} 7.0",
            "workqueue_longest_running_processor_seconds{name=\"service\"} 4.0",
            "workqueue_work_duration_seconds_count{name=\"Nodes\"} 0",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_queue_that_is_registered_again_takes_the_place_of_the_earlier_one() {
        let mut registry = Registry::default();
        let queues = WorkQueues::registered(&mut registry);
        for depth in [1, 5] {
            queues.add("service", &QueueMetrics::default(), Arc::new(move || (depth, Vec::new())));
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let depths: Vec<&str> = text.lines().filter(|line| line.starts_with("workqueue_depth")).collect();
        assert_eq!(depths, ["workqueue_depth{name=\"service\"} 5"]);
    }
}

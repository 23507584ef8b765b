//! Metrics of requests to the API server, with client-go's names and buckets.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets in seconds, as client-go has them.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

type RequestLabels = Vec<(&'static str, String)>;

/// Counts requests. Clones share the counts.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RequestLabels, Histogram>,
    waits: Family<RequestLabels, Histogram>,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        let histogram = || Histogram::new(BUCKETS);
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(histogram),
            waits: Family::new_with_constructor(histogram),
        }
    }
}

impl RequestMetrics {
    /// Creates metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "rest_client_requests",
            "Requests to the Kubernetes API, by status code, method and host; code <error> stands for no answer",
            metrics.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Seconds until the Kubernetes API answered, by verb and host; for a watch, until it began",
            metrics.durations.clone(),
        );
        registry.register(
            "rest_client_rate_limiter_duration_seconds",
            "Seconds that a request waited for --kube-api-qps, by verb and host",
            metrics.waits.clone(),
        );
        metrics
    }

    /// Records how long a request waited for the rate limit.
    pub fn waited(&self, method: &http::Method, host: &str, waited: Duration) {
        let labels = vec![("verb", verb(method)), ("host", host.to_owned())];
        self.waits.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// Counts a request that ended after `elapsed`; `code` is absent if there was no answer.
    pub fn ended(&self, method: &http::Method, host: &str, code: Option<u16>, elapsed: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let (verb, host) = (verb(method), host.to_owned());
        let labels = vec![("verb", verb.clone()), ("host", host.clone())];
        self.durations.get_or_create(&labels).observe(elapsed.as_secs_f64());
        self.requests.get_or_create(&vec![("code", code), ("method", verb), ("host", host)]).inc();
    }
}

/// Returns the label of a method; unused methods share one, so that it is bounded.
fn verb(method: &http::Method) -> String {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    known.into_iter().find(|known| method == known).unwrap_or("other").to_owned()
}

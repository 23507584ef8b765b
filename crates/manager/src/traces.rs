//! Traces for an OpenTelemetry collector: a span for each reconciliation of a controller, and in it one for each call to OpenStack.
//!
//! Where they go, and what else is special about them, is said by the standard variables
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>); without an endpoint nothing is recorded. They are sent
//! as protobuf over HTTP, by the HTTP client that the calls to OpenStack are made with.

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::Registry;

/// What this program is called, unless a variable says otherwise.
const NAME: &str = "openstack-ccm";
/// Spans and records of this program, and of nobody else, are exported: the names of our crates begin so.
const OURS: &str = "openstack_ccm";

/// Spans on their way to a collector.
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// The way to the collector that the variables name, if they do. Spans are sent on `runtime`.
    ///
    /// # Errors
    /// Variables that do not make sense.
    pub fn from_environment(runtime: &Handle) -> anyhow::Result<Option<Self>> {
        if !is_wanted(|name| std::env::var(name).ok()) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient { runtime: runtime.clone(), client: reqwest::Client::new() })
            .build()
            .context("traces cannot be sent as the variables OTEL_EXPORTER_OTLP_... say")?;
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
        Ok(Some(Self { provider }))
    }

    /// What turns spans and records into traces.
    pub fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        let wanted = Targets::new().with_target(OURS, LevelFilter::DEBUG);
        let layer = tracing_opentelemetry::layer().with_tracer(self.provider.tracer(NAME));
        layer.with_location(false).with_threads(false).with_filter(wanted).boxed()
    }

    /// Sends what is left. It waits for that, so it is called where no task has to go on.
    pub fn finish(self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Whether there is an endpoint, and nothing is switched off.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_off = given("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || given("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    !is_off && crate::logging::ENDPOINTS.into_iter().any(|name| given(name).is_some())
}

fn resource() -> Resource {
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let is_named = std::env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty());
    if is_named { builder.build() } else { builder.with_service_name(NAME).build() }
}

/// The way to the collector. Spans are exported from a thread of their own, which has no runtime.
#[derive(Clone, Debug)]
struct CollectorClient {
    runtime: Handle,
    client: reqwest::Client,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = self.runtime.spawn(async move {
            let answer = client.execute(request.try_into()?).await?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            Ok::<_, reqwest::Error>((response, answer.bytes().await?))
        });
        let (response, body) = exchange.await??;
        Ok(response.body(body)?)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(&[], false)]
    #[case::endpoint(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")], true)]
    #[case::endpoint_of_traces(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318/v1/traces")], true)]
    #[case::empty(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], false)]
    #[case::disabled(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_SDK_DISABLED", "True")], false)]
    #[case::other_exporter(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_TRACES_EXPORTER", "none")], false)]
    fn traces_are_sent_where_a_variable_names_an_endpoint(
        #[case] variables: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(is_wanted(variable), expected);
    }
}

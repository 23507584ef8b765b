//! Traces, at a collector over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use bytes::Bytes;
use tokio::net::TcpListener;

use crate::process::Process;
use crate::secrets::{Credentials, TOKEN, reveals};
use crate::stage::{Stage, free_port, until};

/// A collector that keeps what it is sent.
#[derive(Clone, Default)]
struct Collector {
    received: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    /// Starts it; answers where it is.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(Self::take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        endpoint
    }

    async fn take(State(collector): State<Self>, headers: HeaderMap, body: Bytes) {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        collector.received.lock().unwrap().extend_from_slice(&body);
    }

    /// All that came. Texts are readable in protobuf; what is between them is not.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reconciliations_and_calls_arrive_at_the_collector_without_a_secret() {
    let (stage, collector) = (Stage::new().await, Collector::default());
    let secret = Credentials::ApplicationCredential.configure(&stage);
    let endpoint = collector.start().await;
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let mut process = Process::start_with(&stage, "ccm", &[], &variables);
    stage.create_service("web");
    stage.until_published("web").await;
    for text in [
        "service.name",
        "openstack-ccm",
        "reconcile",
        "default/web",
        "loadbalancer_create",
        "http.request.method",
    ] {
        until(&format!("the collector has {text}"), || collector.text().contains(text)).await;
    }
    stage.kube.delete("services", "default", "web").unwrap();
    stage.until_gone("web").await;
    process.terminate();
    assert_eq!(process.end().await.code(), Some(0));
    let text = collector.text();
    assert!(text.contains("loadbalancer_delete"), "the last spans are sent as well");
    assert!(!text.contains(TOKEN) && !reveals(&text, secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_holds_up_nothing() {
    let stage = Stage::new().await;
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let mut process = Process::start_with(&stage, "ccm", &[], &variables);
    stage.create_service("web");
    stage.until_published("web").await;
    process.terminate();
    assert_eq!(process.end().await.code(), Some(0));
}

//! The page of metrics, in the OpenMetrics format, which Prometheus and compatible scrapers read.

use std::sync::Mutex;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use openstack_ccm_core::lock::lock;
use prometheus_client::registry::Registry;

/// <https://prometheus.io/docs/specs/om/open_metrics_spec/>
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the answer to a scraper.
pub(crate) fn page(registry: &Mutex<Registry>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &lock(registry)) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

//! Sends calls: the one place for retries, metrics, logging, error statuses and paging.

mod answer;
mod call;
mod clock;
mod filter;
mod lacking;
mod observer;
mod paging;
mod parts;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use jiff::Timestamp;
use openstack_ccm_core::cloud::CallObserver;
use openstack_ccm_core::permit::{Gate, Target};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

pub use observer::NoObserver;
pub use retry::RetryPolicy;

pub(crate) use answer::{Answer, read};
pub(crate) use call::{Call, Paths};
pub(crate) use filter::Filters;

use crate::error::{ApiError, DecodeError, Fault};
use crate::transport::{Request, Response, Service, Transport, TransportError};
use clock::ServiceClock;
use lacking::Parts;

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The observer of every HTTP exchange.
    pub observer: Arc<dyn CallObserver>,
    /// Which requests the client itself repeats.
    pub retry: RetryPolicy,
    /// The time after which a missing optional part of the API is requested again.
    pub lacking_for: Duration,
    /// The API version of Octavia, if the configuration states it.
    pub octavia_api_version: Option<(u32, u32)>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            observer: Arc::new(NoObserver),
            retry: RetryPolicy::default(),
            lacking_for: Duration::from_secs(1800),
            octavia_api_version: None,
        }
    }
}

/// Sends calls over a [`Transport`]. Clones share all state.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    /// The gate that each writing call passes.
    gate: Gate,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    observer: Arc<dyn CallObserver>,
    retry: RetryPolicy,
    parts: Parts,
    octavia_api_version: Option<(u32, u32)>,
    octavia_clock: ServiceClock,
}

impl Client {
    /// Creates a client over `transport`.
    pub fn new(transport: Arc<dyn Transport>, settings: ClientSettings) -> Self {
        let ClientSettings { observer, retry, lacking_for, octavia_api_version } = settings;
        let shared = Shared {
            transport,
            observer,
            retry,
            parts: Parts::new(lacking_for),
            octavia_api_version,
            octavia_clock: ServiceClock::default(),
        };
        Self { shared: Arc::new(shared), gate: Gate::open() }
    }

    /// Returns the same client, with its writes passing `gate`.
    #[must_use]
    pub fn behind(&self, gate: &Gate) -> Self {
        Self { shared: Arc::clone(&self.shared), gate: gate.clone() }
    }

    /// Creates a client with default settings, for tests.
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self::new(Arc::new(transport), ClientSettings::default())
    }

    /// Sends a call and returns the answer if its status is a success.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response, ApiError> {
        let name = call.name();
        let request = call.request()?;
        let repeated = self.shared.retry.run(&request.method, || self.exchange(name, request.clone()));
        // Boxed: otherwise the future of every caller would contain it, several times for several calls.
        Box::pin(repeated).await
    }

    /// Makes one HTTP exchange, observed and logged. A request without permission is not sent and not observed.
    async fn exchange(&self, call: &'static str, mut request: Request) -> Result<Response, ApiError> {
        if request.writes() {
            let permit = self.gate.permit(Target::Cloud).await;
            let permit =
                permit.map_err(|why| ApiError::from_transport(call, TransportError::NotPermitted(why)))?;
            request.permit = Some(permit);
        }
        observer::request(call, &request);
        let (start, service) = (Instant::now(), request.service);
        let sent = format!("{} {}", request.method, request.path);
        let result = match self.shared.transport.send(request).await {
            Ok(response) => {
                if service == Service::LoadBalancer {
                    self.shared.octavia_clock.note(&response.headers);
                }
                let well = response.status != StatusCode::UNAUTHORIZED && !response.status.is_server_error();
                let others_well = self.shared.parts.answered(service, call, well);
                check_status(call, sent, others_well, response)
            }
            Err(error) => Err(ApiError::from_transport(call, error)),
        };
        let duration = start.elapsed();
        observer::answer(call, duration, &result);
        self.shared.observer.observe(call, duration, result.is_ok());
        result
    }

    /// Returns the API version of Octavia that the configuration states.
    pub(crate) fn octavia_api_version(&self) -> Option<(u32, u32)> {
        self.shared.octavia_api_version
    }

    /// Returns the present time by Octavia's clock.
    pub(crate) fn octavia_time(&self) -> Timestamp {
        self.shared.octavia_clock.now()
    }

    /// Sends a call and drops the answer.
    pub(crate) async fn execute(&self, call: &Call) -> Result<(), ApiError> {
        self.send(call).await.map(drop)
    }

    /// Sends a call and reads the object named `root` in the answer.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: &Call, root: &str) -> Result<T, ApiError> {
        let response = self.send(call).await?;
        below(call, root, &response, read(root, &response.body)).map(|(value, _)| value)
    }

    /// Sends a call and reads one page of the list named `root` into a collection. Returns the filter that an object did not match,
    /// and the links to other pages.
    async fn fetch_page<T: DeserializeOwned, C: Extend<T>>(
        &self,
        call: &Call,
        root: &str,
        filters: &Filters,
        items: &mut C,
    ) -> Result<(Option<String>, Value), ApiError> {
        let response = self.send(call).await?;
        below(call, root, &response, answer::read_list(root, &response.body, filters, items))
    }

    /// Sends a call and reads the whole answer.
    pub(crate) async fn fetch_all<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ApiError> {
        let response = self.send(call).await?;
        decode(call, &response)
    }
}

fn below<T>(
    call: &Call,
    root: &str,
    response: &Response,
    answer: Result<Answer<T>, serde_json::Error>,
) -> Result<(T, Value), ApiError> {
    let Answer { value, links } = answer.map_err(|error| unreadable(call, response, error))?;
    let value = value.ok_or_else(|| call.undecodable(DecodeError::MissingRoot(root.to_owned())))?;
    Ok((value, links))
}

fn decode<T: DeserializeOwned>(call: &Call, response: &Response) -> Result<T, ApiError> {
    serde_json::from_slice(&response.body).map_err(|error| unreadable(call, response, error))
}

fn unreadable(call: &Call, response: &Response, error: serde_json::Error) -> ApiError {
    let is_page = response.body.trim_ascii_start().starts_with(b"<");
    call.undecodable(if is_page { DecodeError::Html } else { error.into() })
}

/// Returns an error for a bad status. Success is every 2xx, and 300, with which services answer with a list of their versions.
fn check_status(
    call: &'static str,
    sent: String,
    others_well: bool,
    response: Response,
) -> Result<Response, ApiError> {
    let Response { status, headers, body } = &response;
    if status.is_success() || *status == StatusCode::MULTIPLE_CHOICES {
        return Ok(response);
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut fault = Fault::from_body(body);
    if status.is_redirection() {
        let target = text("location").unwrap_or_else(|| "an unnamed place".to_owned());
        fault.message = format!(
            "the endpoint redirects to {target}; redirects are not followed: correct the endpoint in Keystone's catalog"
        );
    }
    Err(ApiError::Status {
        call,
        sent,
        others_well,
        status: *status,
        fault: Box::new(fault),
        request_id: text("x-openstack-request-id").or_else(|| text("x-compute-request-id")),
        retry_after: retry_after(headers),
    })
}

/// Parses `Retry-After` as seconds. Its other form, a date, comes from front ends whose clock may differ, and counts as absent.
pub(crate) fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

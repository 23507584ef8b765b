//! The endpoints for probes, scrapers and operators, over HTTPS as upstream serves them: `/healthz`, `/livez`,
//! `/readyz`, each also for one check, `/metrics` and `/configz`.
//!
//! The API server decides who the bearer of a token is and what callers may do, apart from the paths that are open to all.
//!
//! | module | holds |
//! | --- | --- |
//! | `server`, `certificate` | sockets and TLS |
//! | `gate` | the access control of the pages |
//! | `authentication` | who the caller is |
//! | `review` | callers, and the API server's reviews of them |
//! | `configz` | the settings in effect |
//! | `exposition` | the page of metrics |

mod authentication;
mod certificate;
mod configz;
mod exposition;
mod gate;
mod review;
pub(crate) mod server;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get};
use axum::{Json, Router, middleware};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use configz::page as configuration_page;

use crate::args::value::given;
use crate::args::{AuthenticationArgs, AuthorizationArgs, RunArgs, ServingArgs};
use crate::health::{Health, Probe};
use crate::kubernetes::{Connection, RequestLimit};
use authentication::Authentication;
use certificate::Certificate;
use gate::{Authorization, Gate};

/// Rate and burst of reviews: many may come at once, and answers are remembered.
const REVIEW_RATE: (f64, u32) = (200.0, 400);

/// What the endpoints show.
#[derive(Clone)]
pub struct Pages {
    /// The checks.
    pub health: Health,
    pub metrics: Arc<Mutex<Registry>>,
    /// The settings in effect.
    pub configuration: Arc<Value>,
}

/// Serves the endpoints, if there is a port for them, until `stop` is cancelled.
///
/// # Errors
/// An address that is taken, a certificate or kubeconfig that cannot be used.
pub async fn start(
    arguments: &RunArgs,
    connection: &Connection,
    pages: Pages,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let RunArgs { serving, authentication, authorization, .. } = arguments;
    let flags = EndpointFlags { serving, authentication, authorization };
    start_router(flags, connection, |gate| pages.router(gate), stop).await
}

/// Serves the metrics and nothing else, if there is a port for them, until `stop` is cancelled.
///
/// # Errors
/// An address that is taken, a certificate or kubeconfig that cannot be used.
pub async fn start_metrics(
    flags: EndpointFlags<'_>,
    connection: &Connection,
    metrics: Arc<Mutex<Registry>>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let page = Router::new().route("/metrics", get(async move || exposition::page(&metrics)));
    start_router(flags, connection, |gate| guarded(page, gate), stop).await
}

/// The flags that say where the endpoints are, and who may read them.
#[derive(Clone, Copy, Debug)]
pub struct EndpointFlags<'a> {
    /// Where and how they are served.
    pub serving: &'a ServingArgs,
    /// How callers are known.
    pub authentication: &'a AuthenticationArgs,
    /// What callers may do.
    pub authorization: &'a AuthorizationArgs,
}

async fn start_router(
    flags: EndpointFlags<'_>,
    connection: &Connection,
    router: impl FnOnce(Arc<Gate>) -> Router,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let serving = flags.serving;
    if serving.secure_port == 0 {
        return Ok(());
    }
    let certificate = Arc::new(Certificate::new(serving)?);
    let tls = server::tls(serving, Arc::clone(&certificate))?;
    let listener = server::bind(serving)?;
    let router = router(Arc::new(gate(flags, connection).await?));
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move { certificate.follow_files().await }));
    tokio::spawn(server::serve(listener, tls, router, stop.clone()));
    Ok(())
}

/// Adds the access control to the pages of a router, and 404 for all other paths.
fn guarded(router: Router, gate: Arc<Gate>) -> Router {
    router
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(middleware::from_fn_with_state(gate, gate::pass))
}

async fn gate(flags: EndpointFlags<'_>, connection: &Connection) -> anyhow::Result<Gate> {
    let EndpointFlags { authentication, authorization, .. } = flags;
    let limit = RequestLimit::new(REVIEW_RATE.0, REVIEW_RATE.1);
    let kubeconfig = given(authentication.authentication_kubeconfig.as_ref());
    let tokens = connection.to("--authentication-kubeconfig", kubeconfig).await?;
    let tokens = tokens.client("authentication", limit.clone())?;
    let kubeconfig = given(authorization.authorization_kubeconfig.as_ref());
    let access = connection.to("--authorization-kubeconfig", kubeconfig).await?;
    let access = access.client("authorization", limit)?;
    Ok(Gate {
        authentication: Authentication::new(tokens, authentication.authentication_token_webhook_cache_ttl),
        authorization: Authorization::new(
            access,
            authorization.authorization_always_allow_paths.clone(),
            authorization.authorization_webhook_cache_authorized_ttl,
            authorization.authorization_webhook_cache_unauthorized_ttl,
        ),
    })
}

impl Pages {
    fn router(self, gate: Arc<Gate>) -> Router {
        let metrics = get(async |State(pages): State<Self>| exposition::page(&pages.metrics));
        let configuration =
            get(async |State(pages): State<Self>| Json(&*pages.configuration).into_response());
        let pages = Router::new()
            .route("/healthz", checks(Probe::Liveness))
            .route("/livez", checks(Probe::Liveness))
            .route("/readyz", checks(Probe::Readiness))
            .route("/healthz/{check}", one_check(Probe::Liveness))
            .route("/livez/{check}", one_check(Probe::Liveness))
            .route("/readyz/{check}", one_check(Probe::Readiness))
            .route("/metrics", metrics)
            .route("/configz", configuration)
            .with_state(self);
        guarded(pages, gate)
    }
}

fn checks(endpoint: Probe) -> MethodRouter<Pages> {
    get(async move |State(pages): State<Pages>, Query(query): Query<Vec<(String, String)>>| {
        let excluded: Vec<String> =
            query.iter().filter(|(key, _)| key == "exclude").map(|(_, name)| name.clone()).collect();
        let verbose = query.iter().any(|(key, _)| key == "verbose");
        let page = match endpoint {
            Probe::Liveness => "healthz",
            Probe::Readiness => "readyz",
        };
        match pages.health.report(endpoint, &excluded) {
            (true, lines) if verbose => format!("{lines}{page} check passed\n").into_response(),
            (true, _) => "ok".into_response(),
            (false, lines) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{page} check failed\n")).into_response()
            }
        }
    })
}

fn one_check(endpoint: Probe) -> MethodRouter<Pages> {
    get(async move |State(pages): State<Pages>, Path(name): Path<String>| {
        match pages.health.check(endpoint, &name) {
            None => StatusCode::NOT_FOUND.into_response(),
            Some(None) => "ok".into_response(),
            Some(Some(problem)) => {
                let text = format!("internal server error: {problem}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    })
}

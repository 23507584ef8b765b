//! `ip-mode-overlay run`: from the command line to the working controller, with probes over HTTP, and metrics over HTTPS for callers
//! whom the API server lets read them.

pub mod args;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get};
use openstack_ccm_core::permit::Fence;
use openstack_ccm_overlay::controller::{Overlay, OverlayOptions};
use openstack_ccm_overlay::names::PROGRAM;
use openstack_ccm_runtime::election::{ElectionMetrics, ElectionOptions, LeaseAnnotations};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, EndpointFlags, server};
use crate::args::feature_gates::FeatureGates;
use crate::health::{Health, Probe};
use crate::kubernetes::{Connection, RequestLimit, RequestMetrics, while_leading};
use crate::leadership::{self, Leadership};
use crate::logging;
use crate::signals::stop_on_signals;
use args::OverlayRunArgs;

/// Start of the overlay's User-Agent.
pub const AGENT: &str = concat!("ip-mode-overlay/", env!("CARGO_PKG_VERSION"));
/// Lease duration, renew deadline and retry period.
const LEASE: (Duration, Duration, Duration) =
    (Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2));
/// How long a reconciliation may take to end after a stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(6);

/// Runs until a signal stops it or the leadership is lost.
///
/// # Errors
/// Flags that cannot work, an address that is taken, a lost leadership, or a part of the controller that ended.
pub async fn run(arguments: Box<OverlayRunArgs>) -> anyhow::Result<()> {
    logging::start_without_modules(&arguments.logging);
    if let Some(warning) = FeatureGates::merged(&arguments.rules.feature_gates).warning() {
        tracing::warn!("{warning}");
    }
    let options = OverlayOptions { concurrency: arguments.concurrent_syncs, ..arguments.rules.options()? };
    let stop = stop_on_signals()?;
    let health = Health::default();
    let mut registry = Registry::default();
    let election_metrics = ElectionMetrics::register(&mut registry);
    let metrics = RequestMetrics::register(&mut registry);
    let connection = Connection::new(arguments.kubeconfig.as_ref(), None, AGENT, metrics).await?;
    let client = connection
        .client("controller", RequestLimit::new(arguments.kube_api_qps, arguments.kube_api_burst))?;
    let lead: Arc<OnceLock<Fence>> = Arc::default();
    let asked = Arc::clone(&lead);
    let fence = Fence::new(move |target| asked.get().is_some_and(|fence| fence.holds(target)));
    let overlay = Overlay::new(while_leading(&client, fence), options, &mut registry);
    serve(arguments.listen, health.clone(), stop.clone()).await?;
    let OverlayRunArgs { serving, authentication, authorization, .. } = &*arguments;
    let flags = EndpointFlags { serving, authentication, authorization };
    admin::start_metrics(flags, &connection, Arc::new(Mutex::new(registry)), &stop).await?;
    let client = connection.client("leader-election", RequestLimit::none())?;
    let leadership = Leadership::new(election(&arguments), SHUTDOWN_GRACE, client, election_metrics, &health);
    hold_lead(leadership, overlay, &lead, health, stop).await
}

fn election(arguments: &OverlayRunArgs) -> ElectionOptions {
    let (lease_duration, renew_deadline, retry_period) = LEASE;
    ElectionOptions {
        namespace: arguments.lease_namespace.clone(),
        name: arguments.lease_name.clone(),
        identity: leadership::identity(),
        lease_duration,
        renew_deadline,
        retry_period,
        annotations: LeaseAnnotations::default(),
        component: PROGRAM,
    }
}

async fn hold_lead(
    leadership: Leadership,
    overlay: Overlay,
    lead: &OnceLock<Fence>,
    health: Health,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut ended = Ok(());
    let led = leadership.lead(stop, async |leading: CancellationToken, fence: Fence| {
        lead.get_or_init(|| fence);
        let mut listed = overlay.listed();
        health.set("services", Probe::Readiness, Some("the Services have not been listed yet".to_owned()));
        let healthy = async {
            if listed.wait_for(|listed| *listed).await.is_ok() {
                health.set("services", Probe::Readiness, None);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            result = overlay.run(leading) => ended = result,
            () = healthy => {}
        }
    });
    let led = led.await;
    ended?;
    led.map_err(|_| anyhow::anyhow!("leadership was lost; the process exits and has to be restarted"))
}

/// Serves probes until `stop`.
async fn serve(address: SocketAddr, health: Health, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--listen={address}: the address cannot be used"))?;
    let router = Router::new()
        .route("/livez", probe(&health, Probe::Liveness))
        .route("/readyz", probe(&health, Probe::Readiness));
    tokio::spawn(server::accept(listener, stop, move |stream| server::answer(stream, router.clone())));
    Ok(())
}

fn probe(health: &Health, probe: Probe) -> MethodRouter {
    let health = health.clone();
    get(async move || match health.report(probe, &[]) {
        (true, _) => "ok".into_response(),
        (false, lines) => (StatusCode::SERVICE_UNAVAILABLE, lines).into_response(),
    })
}

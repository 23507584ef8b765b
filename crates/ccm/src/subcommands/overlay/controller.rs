//! `ip-mode-overlay run`: from the command line to the working controller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_overlay::controller::{Overlay, OverlayOptions};
use openstack_ccm_overlay::names::PROGRAM;
use openstack_ccm_runtime::election::{ElectionMetrics, ElectionOptions, Elector, Ended, Heartbeat};
use openstack_ccm_runtime::lock::lock;
use openstack_ccm_runtime::parts::ControllerError;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::args::OverlayRunArgs;
use super::{AGENT, endpoints};
use crate::args::KubernetesArgs;
use crate::health::{Health, Probe};
use crate::kubernetes::{Connection, RequestLimit, RequestMetrics};
use crate::logging;
use crate::signals::stop_on_signals;

/// How long others wait after the last renewal before they take over, how long the leader tries to renew, and how often.
const LEASE: (Duration, Duration, Duration) =
    (Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2));
/// How long a reconciliation may take to end after a stop.
const GRACE: Duration = Duration::from_secs(6);
/// How much longer than a lease lasts a leader may be without a renewal before it counts as stuck.
const STUCK: Duration = Duration::from_secs(20);

/// Runs until a signal stops it or the leadership is lost.
///
/// # Errors
/// Flags that cannot work, an address that is taken, a lost leadership, or a part of the controller that ended.
pub(super) async fn run(arguments: Box<OverlayRunArgs>) -> anyhow::Result<()> {
    logging::start_without_modules(&arguments.logging);
    let options = OverlayOptions { concurrency: arguments.concurrent_syncs, ..arguments.rules.options()? };
    let stop = stop_on_signals()?;
    let health = Health::default();
    let mut registry = Registry::default();
    let election_metrics = ElectionMetrics::register(&mut registry);
    let connection = Connection::new(&server(&arguments), RequestMetrics::register(&mut registry)).await?;
    let connection = connection.in_the_name_of(AGENT);
    let client = connection
        .client("controller", RequestLimit::new(arguments.kube_api_qps, arguments.kube_api_burst))?;
    let overlay = Overlay::new(client, options, &mut registry);
    endpoints::start(arguments.listen, health.clone(), Arc::new(Mutex::new(registry)), stop.clone()).await?;
    let elector =
        Elector::new(connection.client("leader-election", RequestLimit::none())?, election(&arguments));
    let elector = elector.counted_in(election_metrics);
    watch(&health, elector.heartbeat());
    lead(elector, overlay, health, stop).await
}

fn server(arguments: &OverlayRunArgs) -> KubernetesArgs {
    KubernetesArgs {
        kubeconfig: arguments.kubeconfig.clone(),
        master: None,
        kube_api_qps: arguments.kube_api_qps,
        kube_api_burst: arguments.kube_api_burst,
        use_service_account_credentials: false,
    }
}

fn election(arguments: &OverlayRunArgs) -> ElectionOptions {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (lease_duration, renew_deadline, retry_period) = LEASE;
    ElectionOptions {
        namespace: arguments.lease_namespace.clone(),
        name: arguments.lease_name.clone(),
        identity: format!("{}_{}", hostname.trim(), uuid::Uuid::new_v4()),
        lease_duration,
        renew_deadline,
        retry_period,
        annotations: BTreeMap::new(),
        component: PROGRAM,
    }
}

/// A process that leads and does not renew its lease is stuck.
fn watch(health: &Health, heartbeat: Heartbeat) {
    health.ask("leaderElection", Probe::Liveness, move || {
        let age = heartbeat.age().filter(|age| *age > LEASE.0 + STUCK)?;
        Some(format!("this process leads and has not renewed its lease for {} s", age.as_secs()))
    });
}

async fn lead(
    elector: Elector,
    overlay: Overlay,
    health: Health,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let ended: Arc<Mutex<Option<ControllerError>>> = Arc::default();
    let noted = Arc::clone(&ended);
    let outcome = elector
        .lead(stop, GRACE, async |leading: CancellationToken| {
            let mut listed = overlay.listed();
            health.set("services", Probe::Readiness, Some("the Services are not listed yet".to_owned()));
            let healthy = async {
                if listed.wait_for(|listed| *listed).await.is_ok() {
                    health.set("services", Probe::Readiness, None);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                result = overlay.run(leading) => {
                    *lock(&noted) = result.err();
                }
                () = healthy => {}
            }
        })
        .await;
    let failure = lock(&ended).take();
    match (failure, outcome) {
        (Some(error), _) => Err(error.into()),
        (None, Ended::Lost) => {
            anyhow::bail!("the leadership was lost; the process ends so that it starts afresh")
        }
        (None, Ended::Stopped | Ended::WorkEnded) => Ok(()),
    }
}

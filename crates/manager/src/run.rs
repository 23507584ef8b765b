//! From the command line to running controllers: check, serve the endpoints, log in, become the leader, work, stop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_core::cloud::{Cloud, Entry, LoginRequest};
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::permit::Fence;
use openstack_ccm_runtime::election::ElectionMetrics;
use prometheus_client::registry::Registry;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Pages};
use crate::args::RunArgs;
use crate::args::feature_gates::FeatureGates;
use crate::backoff::until_it_works;
use crate::cloud_metrics::CallMetrics;
use crate::health::{Health, Probe};
use crate::kubernetes::{AGENT, Connection, ControllerClients, RequestLimit, RequestMetrics, cluster_uid};
use crate::leader_migration::Migration;
use crate::leadership::{self, LeaderRecord, Leadership};
use crate::logging;
use crate::process_metrics;
use crate::program::{Program, ProgramOptions};
use crate::signals::stop_on_signals;
use crate::version::version;
use crate::wiring;

/// How long all work may take to end after a stop, until the lease is given back: reconciliations and the last events.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(16);

/// Starts the log, and runs over one of the providers until a signal stops it or the leadership is lost.
///
/// # Errors
/// Those of [`run`].
pub fn start(runtime: &Runtime, arguments: RunArgs, providers: &[Entry]) -> anyhow::Result<()> {
    logging::start(&arguments.logging);
    runtime.block_on(run(arguments, providers))
}

/// Runs over one of the providers until a signal stops it or the leadership is lost.
///
/// # Errors
/// Flags or configuration that cannot work, an address that is taken, or a lost leadership.
pub async fn run(arguments: RunArgs, providers: &[Entry]) -> anyhow::Result<()> {
    let (entry, selection) = arguments.validate(providers)?;
    warn_of_flags_without_effect(&arguments);
    let provider =
        (entry.load)(&arguments.controller.config.cloud_config).map_err(anyhow::Error::from_boxed)?;
    let provider = provider.as_ref();
    let route = wiring::options::route(&arguments.controller.route, &selection, provider)?;
    tracing::info!(version = version(), cluster = %arguments.controller.cluster_name, "openstack-ccm starts");

    let stop = stop_on_signals()?;
    let health = Health::default();
    let mut registry = Registry::default();
    let gates = FeatureGates::merged(&arguments.controller.feature_gates);
    process_metrics::register(&mut registry, &health, &gates);
    let call_metrics = CallMetrics::register(&mut registry, entry.call_metric_prefix);
    let election_metrics = ElectionMetrics::register(&mut registry);
    let work_queues = WorkQueues::registered(&mut registry);
    let (kubeconfig, master) = (&arguments.kubernetes.kubeconfig, &arguments.kubernetes.master);
    let metrics = RequestMetrics::register(&mut registry);
    let connection = Connection::new(kubeconfig.as_ref(), master.as_deref(), AGENT, metrics).await?;
    let registry = Arc::new(Mutex::new(registry));
    let configuration = Arc::new(admin::configuration_page(&arguments, &selection));
    let pages = Pages { health: health.clone(), metrics: Arc::clone(&registry), configuration };
    admin::start(&arguments, &connection, pages, &stop).await?;

    let rate = (arguments.kubernetes.kube_api_qps, arguments.kubernetes.kube_api_burst);
    let own_accounts = arguments.kubernetes.use_service_account_credentials;
    let clients = ControllerClients::new(&connection, rate, own_accounts)?;
    if !wiring::options::serves_load_balancers(&selection, provider) {
        tracing::warn!("the service controller is disabled");
    }
    let login = LoginRequest { observer: call_metrics, user_agent: user_agent(&arguments.user_agent) };
    let log_in = || async {
        let cloud = provider.log_in(login.clone()).await?;
        let options =
            wiring::options::choose(&arguments, &selection, provider, cloud.as_ref(), route.clone())?;
        Ok((cloud, options))
    };
    // Before the election: an instance that cannot work must not keep the lease from one that can.
    let (cloud, cluster_uid) = tokio::join!(
        until_it_works(entry.name, &health, &stop, log_in),
        until_it_works("kubernetes", &health, &stop, || cluster_uid(clients.shared().clone())),
    );
    let (Some((cloud, options)), Some(cluster_uid)) = (cloud, cluster_uid) else { return Ok(()) };
    if arguments.leader_election.enable_leader_migration {
        let ask = || Migration::beside(clients.shared());
        match until_it_works("kubernetes", &health, &stop, ask).await {
            None => return Ok(()),
            Some(Migration::Refused(why)) => anyhow::bail!(why),
            Some(Migration::NothingToShare) => tracing::warn!(
                "--enable-leader-migration has no effect: Kubernetes has had no in-tree cloud provider since 1.26; remove the flag"
            ),
        }
    }
    let logged_in = Arc::clone(&cloud);
    health.ask(entry.name, Probe::Readiness, move || logged_in.problem());
    let asked = Arc::clone(&cloud);
    let parts = ProgramParts { clients, cloud, cluster_uid, health: health.clone(), registry, work_queues };
    if !arguments.leader_election.leader_elect {
        parts.run(options, Fence::always(), stop).await;
        return Ok(());
    }
    let client = connection.client("leader-election", RequestLimit::none())?;
    let record = LeaderRecord::of_this_process(
        options.names(),
        &arguments.controller.cluster_name,
        arguments.controller.load_balancer_class.clone(),
        provider.location(),
    );
    let election = leadership::options(&arguments.leader_election, record, asked);
    let leadership = Leadership::new(election, SHUTDOWN_GRACE, client, election_metrics, &health);
    leadership.lead(stop, |leading, fence| parts.run(options, fence, leading)).await?;
    Ok(())
}

/// What the controllers are made of, and where they report.
struct ProgramParts {
    clients: ControllerClients,
    cloud: Arc<dyn Cloud>,
    /// The uid of the namespace kube-system.
    cluster_uid: String,
    health: Health,
    registry: Arc<Mutex<Registry>>,
    work_queues: WorkQueues,
}

impl ProgramParts {
    /// Runs controllers until `stop`, whose writes ask `fence` whether the lead is held.
    async fn run(&self, options: ProgramOptions, fence: Fence, stop: CancellationToken) {
        let program = Program::new(
            &self.clients,
            self.cloud.as_ref(),
            self.cluster_uid.clone(),
            options,
            fence,
            &mut lock(&self.registry),
            &self.work_queues,
        );
        program.run(&self.health, stop).await;
    }
}

/// The parts of the User-Agent header: the last flag first, then the program.
fn user_agent(flags: &[String]) -> Vec<String> {
    let program = format!("openstack-ccm/{}", env!("CARGO_PKG_VERSION"));
    flags.iter().rev().cloned().chain([program]).collect()
}

fn warn_of_flags_without_effect(arguments: &RunArgs) {
    for flag in arguments.accepted.unfulfilled() {
        tracing::warn!("--{} is accepted for compatibility and has no effect: {}", flag.name, flag.reason);
    }
    if let Some(warning) = FeatureGates::merged(&arguments.controller.feature_gates).warning() {
        tracing::warn!("{warning}");
    }
}

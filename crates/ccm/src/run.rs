//! From the command line to running controllers: check, serve the endpoints, log in, become the leader, work, stop.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use openstack_ccm_controllers::election::{ElectionOptions, Elector, Ended};
use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::identity::AuthOptions;
use openstack_ccm_openstack_api::{ErrorKind, OpenStack};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Admin};
use crate::args::feature_gates::FeatureGates;
use crate::args::path::given;
use crate::args::{ArgumentError, LeaderElectionArgs, RunArgs};
use crate::backoff::until_it_works;
use crate::call_metrics::CallMetrics;
use crate::check_config;
use crate::health::{Health, Kind};
use crate::kubernetes::{client, cluster_uid};
use crate::program::{Program, ProgramOptions};
use crate::wiring;

/// How long all work may take to end after a stop, until the lease is given back: passes and the last events.
const WORK_GRACE: Duration = Duration::from_secs(16);

/// Keystone has one answer for everything that may be wrong.
const WRONG_LOGIN: &str = "; Keystone does not say what is wrong: check in [Global] of cloud.conf the user, the password, \
                           the project and their domains, or the application credential";

/// Runs until a signal stops it or the leadership is lost.
///
/// # Errors
/// Flags or configuration that cannot work, an address that is taken, or a lost leadership.
pub async fn run(arguments: RunArgs) -> anyhow::Result<()> {
    let selection = arguments.validate().map_err(|errors| anyhow::anyhow!("{}", one_line_each(&errors)))?;
    warn_of_flags_without_effect(&arguments);
    let loaded = check_config::load(&arguments.config.cloud_config)?;
    let route = wiring::route::options(&arguments.route, &selection, &loaded.config)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), cluster = %arguments.cluster_name, "openstack-ccm starts");

    let stop = stop_on_signals()?;
    let health = Health::default();
    let mut registry = Registry::default();
    let call_metrics = CallMetrics::register(&mut registry);
    let registry = Arc::new(Mutex::new(registry));
    serve_endpoints(&arguments, &health, &registry, &stop).await?;

    let client = client(&arguments.kubernetes).await?;
    let mut login = loaded.auth_options;
    login.user_agent = user_agent(&arguments.user_agent);
    // Before the election: an instance that cannot log in must not keep the lease from one that can.
    let settings = || ClientSettings { observer: call_metrics.clone(), ..ClientSettings::default() };
    let Some(openstack) = until_it_works("openstack", &health, &stop, || connect(&login, settings())).await
    else {
        return Ok(());
    };
    let options = ProgramOptions {
        route,
        ..wiring::options::choose(&arguments, &selection, &loaded.config, &openstack)
    };
    let config = Arc::new(loaded.config);
    let (kubernetes, status) = (client.clone(), health.clone());
    let work = |leading: CancellationToken| async move {
        let uid = until_it_works("kubernetes", &status, &leading, || cluster_uid(kubernetes.clone())).await;
        if let Some(uid) = uid {
            let program = Program::new(kubernetes, openstack, config, uid, options, &registry);
            program.run(&status, leading).await;
        }
    };
    lead(&arguments.leader_election, client, &health, stop, work).await
}

async fn lead<Work>(
    arguments: &LeaderElectionArgs,
    client: Client,
    health: &Health,
    stop: CancellationToken,
    work: impl FnOnce(CancellationToken) -> Work,
) -> anyhow::Result<()>
where
    Work: Future<Output = ()>,
{
    if !arguments.leader_elect {
        work(stop).await;
        return Ok(());
    }
    let elector = Elector::new(client, election_options(arguments));
    health.set("leaderElection", Kind::Liveness, None);
    match elector.lead(stop, WORK_GRACE, work).await {
        Ended::Stopped | Ended::WorkEnded => Ok(()),
        Ended::Lost => anyhow::bail!("the leadership was lost; the process ends so that it starts afresh"),
    }
}

fn election_options(arguments: &LeaderElectionArgs) -> ElectionOptions {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    ElectionOptions {
        namespace: arguments.leader_elect_resource_namespace.clone(),
        name: arguments.leader_elect_resource_name.clone(),
        identity: format!("{}_{}", hostname.trim(), uuid::Uuid::new_v4()),
        lease_duration: arguments.leader_elect_lease_duration,
        renew_deadline: arguments.leader_elect_renew_deadline,
        retry_period: arguments.leader_elect_retry_period,
    }
}

async fn connect(login: &AuthOptions, settings: ClientSettings) -> anyhow::Result<OpenStack> {
    // The error is shared between all who wait for one log-in, so its chain is written out here.
    openstack_ccm_openstack_api::connect(login, settings).await.map_err(|error| {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&*error);
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        if error.kind() == ErrorKind::Unauthorized {
            message.push_str(WRONG_LOGIN);
        }
        anyhow::anyhow!("OpenStack cannot be used yet: {message}")
    })
}

async fn serve_endpoints(
    arguments: &RunArgs,
    health: &Health,
    registry: &Arc<Mutex<Registry>>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if arguments.serving.secure_port == 0 {
        return Ok(());
    }
    let (certificate, key) = (&arguments.serving.tls_cert_file, &arguments.serving.tls_private_key_file);
    let tls = admin::tls_config(given(certificate.as_ref()).zip(given(key.as_ref())))?;
    let listener =
        admin::bind(SocketAddr::new(arguments.serving.bind_address, arguments.serving.secure_port)).await?;
    let named =
        arguments.authorization.authorization_always_allow_paths.iter().any(|path| path == "/metrics");
    let admin = Admin {
        health: health.clone(),
        metrics: Arc::clone(registry),
        metrics_open: named || arguments.serving.bind_address.is_loopback(),
    };
    tokio::spawn(admin::serve(listener, tls, admin, stop.clone()));
    Ok(())
}

/// A token that SIGTERM and SIGINT cancel.
fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::info!("stop asked for");
        token.cancel();
    });
    Ok(stop)
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
    let gates = FeatureGates::merged(&arguments.feature_gates).without_effect;
    if !gates.is_empty() {
        tracing::warn!("feature gates without effect: {}", gates.join(", "));
    }
}

fn one_line_each(errors: &[ArgumentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

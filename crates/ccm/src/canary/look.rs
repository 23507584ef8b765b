//! The roles in the pods.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::look::{Finding, Verdict};
use openstack_ccm_canary::pod::{self, PodOptions, Said};
use openstack_ccm_canary::steady::Patience;
use openstack_ccm_canary::{CONTROL, FIT};
use serde_json::json;

use crate::args::{LoggingArgs, duration};
use crate::{logging, run};

/// Flags of a pod that looks.
#[derive(Clone, Debug, Args)]
pub struct LookArgs {
    /// What all pods of a rollout answer with, and no other pod.
    #[arg(long, value_name = "TEXT")]
    token: String,
    /// The pod's own addresses: each family that it has is looked at.
    #[arg(long, value_name = "IP,...", value_delimiter = ',', required = true)]
    pod_ips: Vec<IpAddr>,
    /// The Service whose address nodes may short-circuit, by name or by its ClusterIPs.
    #[arg(long, value_name = "NAME|IP,...", value_delimiter = ',', default_value = CONTROL)]
    control: Vec<String>,
    /// Addresses of the Services, two for each family.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::kept())]
    addresses: Addresses,
    /// Time between two checks while nothing changes; a tenth of it before there is a verdict.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    period: Duration,
    /// Longest wait for an answer.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    dial_timeout: Duration,
    /// How long a node that was unfit has to look fit before it is.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    fit_again_after: Duration,
    /// How long a verdict stands that no look renews.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    lapse_after: Duration,
    /// Logging.
    #[command(flatten)]
    logging: LoggingArgs,
}

/// Answers and looks until a signal ends it.
pub(super) async fn look(arguments: LookArgs) -> anyhow::Result<()> {
    anyhow::ensure!(!arguments.token.is_empty(), "--token is empty: any server could stand for a canary");
    anyhow::ensure!(!arguments.period.is_zero(), "--period is 0: write a duration such as 30s");
    logging::start(&arguments.logging, None);
    let stop = run::stop_on_signals()?;
    let options = PodOptions {
        token: arguments.token,
        pod_ips: arguments.pod_ips,
        control: arguments.control,
        addresses: arguments.addresses,
        period: arguments.period,
        dial_timeout: arguments.dial_timeout,
        patience: Patience { fit_again_after: arguments.fit_again_after, lapse_after: arguments.lapse_after },
    };
    pod::run(options, stop, tell).await.context("the ports of the canary cannot be served")
}

/// One line of JSON on standard output: it is read by whoever may read the log of the pod.
fn tell(said: Said) {
    let finding = said.held.or(said.last);
    let verdict = said.held.map_or(Verdict::Unknown, Finding::verdict);
    let line = json!({"verdict": verdict, FINDING: finding, "because": finding.map(Finding::text)});
    // Standard output may be closed; readiness says the same.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The key under which a line of the log has its finding.
pub(super) const FINDING: &str = "finding";

/// Waits for a signal: the readiness of the container `fit` is served by the other one.
pub(super) async fn idle() -> anyhow::Result<()> {
    run::stop_on_signals().with_context(|| format!("the container {FIT} cannot wait"))?.cancelled().await;
    Ok(())
}

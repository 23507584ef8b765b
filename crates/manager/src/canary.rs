//! The pods of the canary: what they do, with its flags.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::pod::{self, Findings, PodOptions};
use openstack_ccm_canary::steady::Patience;
use openstack_ccm_canary::verdict::{Finding, Verdict};
use openstack_ccm_canary::{CONTROL, FIT};
use serde_json::json;

use crate::args::{LoggingArgs, duration};
use crate::{logging, signals};

/// The key of the finding in a log line.
pub const FINDING: &str = "finding";

/// What a pod of the canary does.
#[derive(Clone, Debug, Subcommand)]
pub enum Role {
    /// Run in a pod: answer other pods, measure, and show the verdict by readiness (container `conclusive`).
    Look(LookArgs),
    /// Run in a pod: do nothing until stopped (container `fit`, of which only the readiness matters).
    Idle,
}

/// Flags of a pod that looks.
#[derive(Clone, Debug, Args)]
pub struct LookArgs {
    /// What the pods of one rollout know, and no others; it never leaves them.
    #[arg(long, value_name = "TEXT")]
    token: String,
    /// The pod's own addresses: each of its families is measured.
    #[arg(long, value_name = "IP,...", value_delimiter = ',', required = true)]
    pod_ips: Vec<IpAddr>,
    /// The Service whose address nodes may short-circuit, by name or by its ClusterIPs.
    #[arg(long, value_name = "NAME|IP,...", value_delimiter = ',', default_value = CONTROL)]
    control: Vec<String>,
    /// Addresses of the Services, two for each family.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::permanent())]
    addresses: Addresses,
    /// Time between two checks while nothing changes; a tenth of it before there is a verdict.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    period: Duration,
    /// Longest time to wait for an answer.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    dial_timeout: Duration,
    /// How long an unfit node has to measure as fit before it counts as fit.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    fit_again_after: Duration,
    /// How long a verdict counts without being renewed.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    lapse_after: Duration,
    /// Logging.
    #[command(flatten)]
    logging: LoggingArgs,
}

impl Role {
    /// Runs the role until a signal ends it.
    ///
    /// # Errors
    /// Flags that cannot work, or ports that cannot be served.
    pub async fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Look(arguments) => look(arguments).await,
            Self::Idle => idle().await,
        }
    }
}

/// Answers and looks until a signal ends it.
async fn look(arguments: LookArgs) -> anyhow::Result<()> {
    anyhow::ensure!(
        !arguments.token.is_empty(),
        "--token is empty: any server could pass for a canary; set --token"
    );
    anyhow::ensure!(!arguments.period.is_zero(), "--period is 0: write a duration such as 30s");
    logging::start(&arguments.logging);
    let stop = signals::stop_on_signals()?;
    let options = PodOptions {
        token: arguments.token,
        pod_ips: arguments.pod_ips,
        control: arguments.control,
        addresses: arguments.addresses,
        period: arguments.period,
        dial_timeout: arguments.dial_timeout,
        patience: Patience { fit_again_after: arguments.fit_again_after, lapse_after: arguments.lapse_after },
    };
    pod::run(options, stop, report).await.context("the canary cannot listen on its ports")
}

/// Writes one line of JSON to standard output, for readers of the pod's log.
fn report(findings: Findings) {
    let finding = findings.held.or(findings.last);
    let verdict = findings.held.map_or(Verdict::Unknown, Finding::verdict);
    let line = json!({"verdict": verdict, FINDING: finding, "because": finding.map(Finding::text)});
    // Standard output may be closed; readiness says the same.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Waits for a signal: the other container serves the readiness of `fit`.
async fn idle() -> anyhow::Result<()> {
    signals::stop_on_signals().with_context(|| format!("the container {FIT} cannot wait"))?.cancelled().await;
    Ok(())
}

//! `openstack-ccm canary`: whether the service proxy of each node honours `ipMode: Proxy`, measured.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `once` | the same from a laptop: makes a canary, waits for its verdicts, and cleans up |
//! | `rows` | what is said of each node, and the exit code |

pub mod args;
mod once;
mod rows;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use openstack_ccm_canary::FIT;
use openstack_ccm_canary::look::{Finding, Verdict};
use openstack_ccm_canary::pod::{self, Findings, PodOptions};
use openstack_ccm_canary::steady::Patience;
use serde_json::json;

use crate::{logging, signals};
use args::{CanaryArgs, LookArgs, Role};
pub(crate) use once::{PERIOD, excuse, image_in_use};

/// The key under which a line of the log has its finding.
const FINDING: &str = "finding";

impl Role {
    /// Does it until a signal ends it.
    pub(crate) async fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Look(arguments) => look(arguments).await,
            Self::Idle => idle().await,
        }
    }
}

/// Does what the flags say.
///
/// # Errors
/// It could not be done.
pub async fn run(arguments: CanaryArgs) -> anyhow::Result<ExitCode> {
    match arguments.role {
        None => anyhow::ensure!(arguments.once, "--once is missing"),
        Some(role) => return role.play().await.map(|()| ExitCode::SUCCESS),
    }
    once::look(&arguments.flags).await
}

/// Answers and looks until a signal ends it.
async fn look(arguments: LookArgs) -> anyhow::Result<()> {
    anyhow::ensure!(!arguments.token.is_empty(), "--token is empty: any server could stand for a canary");
    anyhow::ensure!(!arguments.period.is_zero(), "--period is 0: write a duration such as 30s");
    logging::start(&arguments.logging, None);
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
    pod::run(options, stop, report).await.context("the ports of the canary cannot be served")
}

/// One line of JSON on standard output: it is read by whoever may read the log of the pod.
fn report(findings: Findings) {
    let finding = findings.held.or(findings.last);
    let verdict = findings.held.map_or(Verdict::Unknown, Finding::verdict);
    let line = json!({"verdict": verdict, FINDING: finding, "because": finding.map(Finding::text)});
    // Standard output may be closed; readiness says the same.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Waits for a signal: the readiness of the container `fit` is served by the other one.
async fn idle() -> anyhow::Result<()> {
    signals::stop_on_signals().with_context(|| format!("the container {FIT} cannot wait"))?.cancelled().await;
    Ok(())
}

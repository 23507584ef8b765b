//! The roles in the pods.

use std::io::Write as _;

use anyhow::Context as _;
use openstack_ccm_canary::FIT;
use openstack_ccm_canary::look::{Finding, Verdict};
use openstack_ccm_canary::pod::{self, Findings, PodOptions};
use openstack_ccm_canary::steady::Patience;
use serde_json::json;

use super::args::LookArgs;
use crate::{logging, signals};

/// Answers and looks until a signal ends it.
pub(super) async fn look(arguments: LookArgs) -> anyhow::Result<()> {
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
    pod::run(options, stop, tell).await.context("the ports of the canary cannot be served")
}

/// One line of JSON on standard output: it is read by whoever may read the log of the pod.
fn tell(findings: Findings) {
    let finding = findings.held.or(findings.last);
    let verdict = findings.held.map_or(Verdict::Unknown, Finding::verdict);
    let line = json!({"verdict": verdict, FINDING: finding, "because": finding.map(Finding::text)});
    // Standard output may be closed; readiness says the same.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The key under which a line of the log has its finding.
pub(super) const FINDING: &str = "finding";

/// Waits for a signal: the readiness of the container `fit` is served by the other one.
pub(super) async fn idle() -> anyhow::Result<()> {
    signals::stop_on_signals().with_context(|| format!("the container {FIT} cannot wait"))?.cancelled().await;
    Ok(())
}

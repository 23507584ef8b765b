//! Runs `openstack-ccm doctor` on a world.

use clap::{Args as _, FromArgMatches as _};
use openstack_ccm_doctor::code::{Code, Severity};
use openstack_ccm_doctor::facts::Host;
use openstack_ccm_doctor::output::Outcome;
use openstack_ccm_doctor::report::Report;
use openstack_ccm_tools::doctor::{self, args::WalkArgs};

use super::world::{SERVICE, World};

/// Returns the outcome of doctor.
///
/// # Errors
/// Doctor failed.
pub(super) async fn look(world: &World) -> anyhow::Result<Outcome> {
    let file = |name: &str| world.files().join(name).display().to_string();
    let words = [
        "doctor".to_owned(),
        format!("default/{SERVICE}"),
        format!("--cloud-config={}", file("cloud.conf")),
        format!("--cloud-config={}", file("hostname.conf")),
        format!("--kubeconfig={}", file("kubeconfig")),
        "--cluster-name=demo".to_owned(),
    ];
    let command = WalkArgs::augment_args(clap::Command::new("doctor"));
    let arguments = WalkArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
    // The demonstration has no DNS server: each hostname contains the address that it leads to.
    let resolve = |name: &str| {
        let labels: Vec<&str> = name.splitn(5, '.').take(4).collect();
        labels.join(".").parse().ok().map(|address| Host::Is(vec![address]))
    };
    doctor::look_knowing(&arguments, &resolve).await
}

/// Returns the codes of the outcome's errors.
pub(super) fn errors(outcome: &Outcome) -> Vec<Code> {
    let findings = outcome.reports.iter().flat_map(Report::findings);
    let codes = findings.filter(|(_, finding)| finding.severity() == Severity::Error);
    codes.map(|(_, finding)| finding.code).collect()
}

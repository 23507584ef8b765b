//! A release of Helm that is upgraded, rolled back, tested and uninstalled, as the pages say.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};

use super::SCENARIO;
use super::proxy::works;
use super::quickstart::all_ready;
use super::site::Site;
use crate::kubernetes::audit::{Claim, LEASE};
use crate::machine::wait::soon;
use crate::programs::guide;
use crate::scenario::steps;
use crate::scenario::untouched::Untouched;
use crate::stage::Stage;

const PAGE: &str = "guides/upgrade-and-uninstall.md";
/// Longest time without a leader while pods are replaced.
const HAND_OVER: f64 = 5.0;
/// The pods of `helm test`, which Helm leaves there.
const TESTS: [&str; 2] = [
    "Pod kube-system openstack-cloud-controller-manager-check-config",
    "Pod kube-system openstack-cloud-controller-manager-status",
];
/// Every object but Events, by kind, namespace and name.
const EVERYTHING: &str = "kinds=$(kubectl api-resources --verbs=list -o name | grep -v '^events' | paste -sd,); \
     kubectl get \"$kinds\" --all-namespaces --ignore-not-found --no-headers \
     -o custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name";

/// The commands of the page in the order in which it has them.
fn command(beginning: &str) -> Result<String> {
    let all = guide::commands(PAGE)?;
    let found = all.into_iter().find(|command| command.starts_with(beginning));
    found.with_context(|| format!("{PAGE} has no {beginning}"))
}

/// What is in the cluster now, but for what kube-controller-manager and kubelets write in their own time.
pub(super) fn everything(site: &Site) -> Result<BTreeSet<String>> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_of_cluster = |object: &String| {
        // kube-controller-manager makes an account for each of its controllers and each namespace; the chart has one.
        let account = object.starts_with("ServiceAccount ") && !object.ends_with(" cloud-controller-manager");
        account || object.ends_with(" kube-root-ca.crt") || object.starts_with("Lease kube-node-lease ")
    };
    let objects = site.operator.types(EVERYTHING)?;
    Ok(objects.lines().map(words).filter(|object| !is_of_cluster(object)).collect())
}

/// The cases with a Service that is served.
pub(super) fn upgrade(stage: &mut Stage, site: &Site) {
    stage.check(
        SCENARIO,
        "helm upgrade to another image: nothing is written, and somebody leads all the time",
        |stage| replaced(stage, site, &to_next(&command("helm upgrade")?)?),
    );
    stage.check(SCENARIO, "helm rollback: nothing is written, and somebody leads all the time", |stage| {
        replaced(stage, site, &command("helm rollback")?)
    });
    stage.check(
        SCENARIO,
        "helm test: pods of the chart log in, look up what cloud.conf names, and say who leads",
        |_| {
            let said = site.operator.types("helm test openstack-ccm --namespace kube-system --logs")?;
            let succeeded = said.matches("Succeeded").count();
            ensure!(
                succeeded == TESTS.len() && said.contains("cloud.conf is valid") && said.contains("Leader"),
                "{said}"
            );
            Ok(format!("{succeeded} pods succeeded, and their logs are shown"))
        },
    );
}

/// The page's command with the tag that there is here: the page has that of the last release.
fn to_next(upgrade: &str) -> Result<String> {
    let (before, rest) = upgrade.split_once("--set image.tag=").context("the command sets no tag")?;
    let after = rest.find(char::is_whitespace).map_or("", |end| &rest[end..]);
    Ok(format!("{before}--set image.tag={}{after}", super::site::NEXT))
}

/// After this only the Lease is there that was not there before the installation.
pub(super) fn uninstall(stage: &mut Stage, site: &Site, before: &BTreeSet<String>) {
    stage.check(
        SCENARIO,
        "the Services are deleted while openstack-ccm runs: nothing is left in the cloud",
        |stage| {
            site.operator.types("kubectl delete --filename ingress.yaml")?;
            steps::nothing_left(stage)
        },
    );
    stage.check(SCENARIO, "helm uninstall: the Lease stays, the pods of helm test, and nothing else", |_| {
        site.operator.types(&command("helm uninstall")?)?;
        soon("what was installed is gone", || {
            let after = everything(site)?;
            let left: Vec<&str> = after.difference(before).map(String::as_str).collect();
            ensure!(left == [&*format!("Lease kube-system {LEASE}"), TESTS[0], TESTS[1]], "left: {left:?}");
            Ok(())
        })?;
        Ok(format!("{} objects as before, the Lease, and the pods of helm test", before.len()))
    });
}

/// Types a command that replaces the pods, while a Service is served.
fn replaced(stage: &Stage, site: &Site, command: &str) -> Result<String> {
    let untouched = Untouched::from_now(stage)?;
    let known = site.audit.claims()?.len();
    site.operator.types(command)?;
    all_ready(site)?;
    let seen = works(stage, site)?;
    let claims = site.audit.claims()?;
    let gaps = hand_overs(&claims[known.saturating_sub(1)..]);
    ensure!(!gaps.is_empty(), "nobody handed the lead over: no pod was replaced");
    for (from, to, seconds) in &gaps {
        ensure!(*seconds <= HAND_OVER, "{to} followed {from} after {seconds:.2} s");
    }
    untouched.until_now()?;
    let gaps: Vec<String> = gaps.iter().map(|(_, _, seconds)| format!("{seconds:.2} s")).collect();
    Ok(format!(
        "no write in the cloud, no Event of a Service, lead handed over in {}; {seen}",
        gaps.join(" and ")
    ))
}

/// From whom to whom the lead went, and the seconds between the last word of one and the first of the other.
pub(super) fn hand_overs(claims: &[Claim]) -> Vec<(String, String, f64)> {
    let pairs = claims.windows(2).filter_map(|pair| match pair {
        [last, first] if last.pod != first.pod => {
            let seconds = first.answered.duration_since(last.answered).as_secs_f64();
            Some((last.pod.clone(), first.pod.clone(), seconds))
        }
        _ => None,
    });
    pairs.collect()
}

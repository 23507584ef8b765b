//! Two replicas: one leads, and the other goes on where it ends.

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;

use super::balance::{change, has_changed, works};
use super::callers::metric;
use super::{Deployment, SCENARIO};
use crate::kubernetes::audit::Claim;
use crate::stage::Stage;

/// All cases.
pub(super) fn run(stage: &mut Stage, cluster: &mut Deployment) {
    stage.check(SCENARIO, "of two replicas one leads", |_| one_leads(cluster));
    for (round, timeout) in [("first", 61_000), ("second", 62_000)] {
        let case = format!("the leader gets SIGTERM, {round} time: the other one goes on at once");
        stage.check(SCENARIO, &case, |stage| terminated(stage, cluster, timeout));
    }
    stage.check(SCENARIO, "the leader is killed: the other one waits until the lease has run out", |stage| {
        killed(stage, cluster)
    });
}

fn one_leads(cluster: &Deployment) -> Result<String> {
    let leader = cluster.leader()?;
    for (index, pod) in cluster.pods.iter().enumerate() {
        let leads = metric(cluster, pod, "leader_election_master_status")?;
        ensure!(leads == u64::from(index == leader), "{}: leader_election_master_status {leads}", pod.name);
    }
    Ok(format!("{} leads, the other one waits", cluster.pods[leader].name))
}

/// The last claims of the leader and the first one after them.
fn change_of_hands(cluster: &Deployment, former: &str, next: &str) -> Result<(Vec<Claim>, Claim)> {
    let claims = cluster.audit.claims()?;
    let last = claims.iter().rposition(|claim| claim.pod == former).context("the former leader never led")?;
    let first = claims.get(last + 1).with_context(|| format!("nobody followed {former}"))?;
    ensure!(first.pod == next && !first.holder.is_empty(), "{former} was followed by {:?}", first.pod);
    Ok((claims[..=last].to_vec(), first.clone()))
}

fn terminated(stage: &Stage, cluster: &mut Deployment, timeout: u32) -> Result<String> {
    let (leader, holder) = (cluster.leader()?, cluster.holder()?);
    let (former, next) = (cluster.pods[leader].name.clone(), cluster.pods[1 - leader].name.clone());
    let asked = Timestamp::now();
    cluster.pods[leader].terminate()?;
    change(&cluster.api, timeout)?;
    cluster.until_followed(&holder)?;
    cluster.pods[leader].stop()?;
    let (before, taken) = change_of_hands(cluster, &former, &next)?;
    let released = before.last().context("no release")?;
    ensure!(
        released.holder.is_empty() && released.seconds == 1,
        "the lease was not given back: {released:?}"
    );
    ensure!(taken.transitions == released.transitions + 1, "{} transitions", taken.transitions);
    has_changed(stage, timeout)?;
    let seen = works(stage)?;
    cluster.pods[leader].start()?;
    cluster.pods[leader].ready()?;
    Ok(format!(
        "{next} holds the lease {:.2} s after SIGTERM, {:.2} s after {former} gave it back; the Service changed meanwhile \
         is served; {seen}",
        taken.answered.duration_since(asked).as_secs_f64(),
        taken.answered.duration_since(released.answered).as_secs_f64(),
    ))
}

fn killed(stage: &Stage, cluster: &mut Deployment) -> Result<String> {
    let (leader, holder) = (cluster.leader()?, cluster.holder()?);
    let (former, next) = (cluster.pods[leader].name.clone(), cluster.pods[1 - leader].name.clone());
    cluster.pods[leader].kill()?;
    change(&cluster.api, 63_000)?;
    cluster.until_followed(&holder)?;
    let (before, taken) = change_of_hands(cluster, &former, &next)?;
    let last = before.last().context("no renewal")?;
    let waited = lapsed(last, &taken)?;
    ensure!(taken.transitions == last.transitions + 1, "{} transitions", taken.transitions);
    has_changed(stage, 63_000)?;
    let seen = works(stage)?;
    cluster.pods[leader].start()?;
    cluster.pods[leader].ready()?;
    Ok(format!("{next} took the lease {waited:.2} s after its last renewal; {seen}"))
}

/// The lease was taken when it had run out and not before. Returns the seconds between.
pub(super) fn lapsed(last: &Claim, taken: &Claim) -> Result<f64> {
    let waited = taken.received.duration_since(last.received).as_secs_f64();
    let lasts = f64::from(u32::try_from(last.seconds)?);
    ensure!(waited >= lasts, "taken after {waited:.2} s, and the lease lasts {lasts} s");
    Ok(waited)
}

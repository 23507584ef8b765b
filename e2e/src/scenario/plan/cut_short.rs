//! The program is killed in the middle of a creation, and the Service is removed behind its back: `orphans` names exactly what is
//! left, deletes it, and does so also when the cluster is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::wait::{soon, until};
use crate::network::{NODES, NodePlace};
use crate::openstack::writes::Writes;
use crate::programs::terminal::Terminal;
use crate::scenario::steps::{self, Reach, client_outside, green, published_through};
use crate::stage::Stage;

const SCENARIO: &str = "23 orphans";
const SERVICE: &str = "cut-short";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// After so many answered calls of the creation the program is killed: from the security group to what follows the floating IP.
const KILLS: [usize; 6] = [1, 2, 4, 6, 8, 9];
/// A request that Octavia has accepted is answered within this time.
const ON_ITS_WAY: Duration = Duration::from_secs(4);
/// What was left a moment ago is listed, too.
const FLAGS: [&str; 3] = ["orphans", "--cluster-name=e2e", "--older-than=0s"];

/// All of it on the present cluster, which is gone afterwards.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    let launch = &mut stage.cluster()?.launch;
    launch.load_balancer_settings(&networks, "manage-security-groups = true")?;
    // Without the lease a new program works at once.
    launch.flags = vec!["--leader-elect=false".into()];
    let operator = super::operator(stage)?;
    stage.check(SCENARIO, "killed while Octavia makes the load balancer", |stage| {
        cut_short(stage, |writes| {
            let octavias = writes.so_far()?.len() > writes.by_this_program()?.len();
            ensure!(octavias, "Octavia has not begun");
            Ok(())
        })?;
        names_what_is_left(stage, &operator, &[])
    });
    for calls in KILLS {
        stage.check(SCENARIO, &format!("killed after {calls} calls"), |stage| {
            cut_short(stage, |writes| {
                let made = writes.by_this_program()?.len();
                ensure!(made >= calls, "{made} calls");
                Ok(())
            })?;
            names_what_is_left(stage, &operator, &[])
        });
    }
    stage.check(SCENARIO, "what serves is not listed, and not deleted by id", |stage| {
        serves(stage, &operator)
    });
    gone(stage, &operator)?;
    stage.check(SCENARIO, "clean-up", |stage| steps::nothing_left(stage));
    Ok(())
}

/// Begins a creation, ends it when the logs say so, and takes the Service away without its finalizer.
fn cut_short(stage: &mut Stage, moment: impl Fn(&Writes) -> Result<()>) -> Result<()> {
    let api = stage.api()?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    ServiceSketch::proxy(SERVICE, "v1", false).create(&api, &PLACES)?;
    let controller = stage.cluster()?.launch.start_at_once()?;
    until("the moment has come", Duration::from_secs(120), || moment(&writes))?;
    controller.kill()?;
    let path = Kubernetes::service_path(SERVICE);
    api.patch(&path, &json!({"metadata": {"finalizers": null}}))?;
    delete_service(&api, SERVICE)?;
    api.gone(&path)?;
    at_rest(stage)
}

/// Octavia is at rest, and what was on its way has arrived: of a request whose sender is gone nobody can ask the end, so two looks
/// have to agree.
fn at_rest(stage: &Stage) -> Result<()> {
    soon("Octavia is at rest", || {
        let before = left(stage)?;
        std::thread::sleep(ON_ITS_WAY);
        let after = left(stage)?;
        ensure!(before == after, "still coming: {after:?}");
        let balancers = stage.cloud.user.load_balancers()?;
        let is_busy =
            |one: &&Value| one["provisioning_status"].as_str().is_none_or(|text| text.starts_with("PENDING"));
        let busy = balancers.iter().find(is_busy);
        ensure!(busy.is_none(), "{busy:?}");
        Ok(())
    })
}

/// The list is what is there, and nothing is there when it was deleted. What was made and not tagged yet, because Neutron takes tags
/// in a call of its own, is listed with `--occm-names` only.
fn names_what_is_left(stage: &Stage, terminal: &Terminal, more: &[&str]) -> Result<String> {
    let left = left(stage)?;
    let tagged: BTreeSet<String> =
        left.iter().filter(|(_, tagged)| **tagged).map(|(id, _)| id.clone()).collect();
    let all: BTreeSet<String> = left.into_keys().collect();
    let mut flags = [&FLAGS[..], more].concat();
    if tagged != all {
        let code = if tagged.is_empty() { 0 } else { 2 };
        let listed = terminal.types(&[&flags[..], &["-o", "json"]].concat())?.json(&[code])?;
        ensure!(ids(&listed)? == tagged, "listed {listed}, left with tags {tagged:?}");
        flags.push("--occm-names");
    }
    let listed = terminal.types(&[&flags[..], &["-o", "json"]].concat())?.json(&[2])?;
    let rows = listed["orphans"].as_array().context("no list")?;
    let ids = ids(&listed)?;
    ensure!(ids == all, "listed {ids:?}, left {all:?}");
    let refused: Vec<&Value> = rows.iter().filter(|row| !row["refused"].is_null()).collect();
    ensure!(refused.is_empty(), "{refused:?}");
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    terminal.types(&[&flags[..], &["--yes", "--delete"], &ids].concat())?.with_code(&[0])?;
    soon("nothing is left", || {
        let left = self::left(stage)?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })?;
    let again = terminal.types(&flags)?.with_code(&[0])?;
    let kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    let by_name = if tagged == all { "" } else { ", some by --occm-names" };
    Ok(format!("{}{by_name}; after --delete: {}", kinds.join(", "), again.trim_end()))
}

fn ids(listed: &Value) -> Result<BTreeSet<String>> {
    let rows = listed["orphans"].as_array().context("no list")?;
    Ok(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
}

/// Load balancers, floating IPs and security groups by id, each with whether it has tags.
fn left(stage: &Stage) -> Result<BTreeMap<String, bool>> {
    let cloud = &stage.cloud.user;
    let mut all = cloud.load_balancers()?;
    all.extend(cloud.list("network", "/v2.0/floatingips", "floatingips")?);
    let groups = cloud.list("network", "/v2.0/security-groups", "security_groups")?;
    all.extend(groups.into_iter().filter(|group| group["name"] != "default"));
    let tagged = |one: &Value| one["tags"].as_array().is_some_and(|tags| !tags.is_empty());
    Ok(all.iter().filter_map(|one| Some((one["id"].as_str()?.to_owned(), tagged(one)))).collect())
}

fn serves(stage: &mut Stage, operator: &Terminal) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v1", false).create(&api, &PLACES)?;
    stage.start_controller()?;
    let address = published_through(&api, SERVICE)?;
    let listed = operator.types(&FLAGS)?.with_code(&[0])?;
    let balancer = stage.cloud.user.load_balancer(SERVICE)?;
    let id = balancer["id"].as_str().context("no id")?;
    ensure!(!listed.contains(id), "it is listed: {listed}");
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let said = operator.types(&[&FLAGS[..], &["--yes", "--delete", id]].concat())?;
    ensure!(said.code == 1, "exit code {}: {}{}", said.code, said.text, said.error);
    ensure!(said.error.contains(id) && said.error.contains("is not orphaned"), "{}", said.error);
    writes.none()?;
    let seen = green(&address, &[client_outside(Reach::Floating)])?;
    Ok(format!("{}; {}; {seen}", listed.trim_end(), said.error.trim_end()))
}

/// A cluster that is taken down with its Services still there.
fn gone(stage: &mut Stage, operator: &Terminal) -> Result<()> {
    let api = stage.api()?;
    let namespace = api.get("/api/v1/namespaces/kube-system")?;
    let uid = namespace["metadata"]["uid"].as_str().context("kube-system has no uid")?.to_owned();
    let flag = format!("--cluster-uid={uid}");
    stage.check(SCENARIO, "--cluster-uid is refused while the cluster answers", |_| {
        let said = operator.types(&[&FLAGS[..], &[flag.as_str()]].concat())?;
        ensure!(said.code == 1, "exit code {}: {}{}", said.code, said.text, said.error);
        let refused = format!("the cluster with uid {uid} still exists and answers");
        ensure!(said.error.contains(&refused), "it ends for another reason: {}", said.error);
        Ok(said.error.trim_end().to_owned())
    });
    stage.end_cluster()?;
    stage.check(SCENARIO, "--cluster-uid when the cluster is gone", |stage| {
        names_what_is_left(stage, operator, &[&flag])
    });
    Ok(())
}

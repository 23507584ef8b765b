//! The Secret with cloud.conf gets another credential while the pods run.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::SCENARIO;
use super::proxy::{SERVICE, works};
use super::site::{Credential, Site};
use crate::machine::wait::until;
use crate::openstack::access::{AccessLog, Request};
use crate::openstack::tree::Tree;
use crate::scenario::steps::annotate;
use crate::stage::Stage;

const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/cloud-config";
/// A kubelet writes a changed Secret into the volumes of pods within two minutes, and services remember a token for five.
const LOGS_IN: Duration = Duration::from_secs(600);
/// Longest time until a change reaches Octavia.
const FOLLOWS: Duration = Duration::from_secs(240);

/// All cases.
pub(super) fn run(stage: &mut Stage, site: &Site) {
    stage.check(
        SCENARIO,
        "the credential in the Secret is replaced and the former one revoked: no restart is needed",
        |stage| {
            let (leader, place) = site.leader()?;
            let before = processes(site);
            let user = &stage.cloud.user;
            let next = Credential::make(user, "next")?;
            let text = next.configuration(stage, &site.front);
            site.api.patch(SECRET, &json!({"data": {"cloud.conf": STANDARD.encode(&text)}}))?;
            site.operator.saves("cloud.conf", &text)?;
            let keystone = AccessLog::from_now(&stage.cloud.folders, "keystone")?;
            site.credential.revoke(user)?;
            // Services take the former token until they ask Keystone about it again.
            until("openstack-ccm logs in with the next credential", LOGS_IN, || {
                let logs_in = |request: &Request| request.is_of_controller() && request.status == 201;
                let all = keystone.so_far()?;
                let login = all.iter().find(|one| logs_in(one) && one.what.contains("/auth/tokens"));
                login.map(drop).context("it has not logged in")
            })?;
            annotate(&site.api, SERVICE, &[("timeout-client-data", json!("61000"))])?;
            until("the change reaches Octavia", FOLLOWS, || {
                let tree = Tree::of(user, SERVICE)?;
                let listener = tree.listeners.first().context("there is no listener")?;
                ensure!(listener["timeout_client_data"] == 61_000, "{}", listener["timeout_client_data"]);
                tree.settled()
            })?;
            ensure!(processes(site) == before, "a process was started anew");
            ensure!(site.leader()? == (leader, place), "another one leads");
            Ok(format!("the same processes; {}", works(stage, site)?))
        },
    );
}

/// Those of the program under test on all nodes.
pub(super) fn processes(site: &Site) -> Vec<i32> {
    site.nodes.iter().flat_map(|node| node.processes("/bin/openstack-ccm")).collect()
}

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
use crate::openstack::tree::Tree;
use crate::scenario::steps::annotate;
use crate::stage::Stage;

const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/cloud-config";
/// A kubelet writes a changed Secret into the volumes of pods within two minutes.
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
            site.credential.revoke(user)?;
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

//! The simulators are held to the truth: the same conversations with a real API and with our simulator of it, compared.
//!
//! A conversation is a file in `e2e/conversations`. What a real service answers is kept in `e2e/recorded`, so that the
//! simulators are held to it also where no real service can be started: then the tests of this module compare with that.

pub(crate) mod script;
pub(crate) mod side;
pub(crate) mod simulated;
pub(crate) mod transcript;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::artifacts::release::Release;
use crate::artifacts::source;
use crate::kubernetes::server::{ControlPlane, ServerKind};
use crate::stage::Stage;
use script::Api;
use side::Side;
use simulated::Simulated;
use transcript::{Entry, Transcript};

const SCENARIO: &str = "10 truth";
/// Octavia with this provider.
const OVN: &str = "ovn";

/// What was said in the conversations with one API, by title.
type Recording = BTreeMap<String, Transcript>;

/// Where the answers of a real API are kept: `openstack`, an older release such as `openstack 2024.1`, or a version of Kubernetes.
pub(crate) fn recorded_file(name: &str) -> PathBuf {
    source("recorded").join(format!("{}.json", name.replace(' ', "-")))
}

/// All conversations with OpenStack.
pub(crate) fn openstack(stage: &mut Stage) -> Result<()> {
    let folders = stage.cloud.folders.clone();
    let mut real = Side::openstack(&stage.cloud.user, &stage.cloud.networks, &folders)?;
    let release = folders.release;
    let name = if release == Release::NEWEST {
        "openstack".to_owned()
    } else {
        format!("openstack {}", release.name())
    };
    compare(stage, Api::OpenStack, &name, &mut real)
}

/// All conversations with Nova, which must run.
pub(crate) fn compute(stage: &mut Stage) -> Result<()> {
    let folders = stage.cloud.folders.clone();
    let real = Side::openstack(&stage.cloud.user, &stage.cloud.networks, &folders)?;
    compare(stage, Api::Compute, "compute", &mut real.with_servers(&stage.cloud.user)?)
}

/// All conversations with Octavia's provider ovn, which must run.
pub(crate) fn ovn(stage: &mut Stage) -> Result<()> {
    let folders = stage.cloud.folders.clone();
    let mut real = Side::openstack(&stage.cloud.user, &stage.cloud.networks, &folders)?;
    compare(stage, Api::Ovn, OVN, &mut real)
}

/// All conversations with Kubernetes, with a fresh API server of each kind.
pub(crate) fn kubernetes(stage: &mut Stage, kinds: &[ServerKind]) -> Result<()> {
    stage.end_cluster()?;
    for kind in kinds {
        let folder = stage.folder().join(format!("truth-{}", kind.text().replace(' ', "-")));
        let plane = ControlPlane::start(&folder, &stage.artifacts, *kind)?;
        let mut real = Side::kubernetes(&plane.pki)?;
        compare(stage, Api::Kubernetes, &kind.text(), &mut real)?;
    }
    Ok(())
}

fn compare(stage: &mut Stage, api: Api, name: &str, real: &mut Side) -> Result<()> {
    let mut recording = Recording::new();
    for conversation in script::all(api, name)? {
        let mut spoken = None;
        stage.check(SCENARIO, &format!("{name}: {}", conversation.title), |_| {
            let truth = conversation.play(real).context("with the real service")?;
            let simulated = Simulated::start(api, name)?.play(&conversation).context("with the simulator");
            let seen = spoken.insert(truth);
            agreement(seen, &simulated?)
        });
        recording.extend(spoken.map(|transcript| (conversation.title.clone(), transcript)));
    }
    let text = serde_json::to_string_pretty(&recording)? + "\n";
    Ok(std::fs::write(stage.folder().join(format!("recorded-{}.json", name.replace(' ', "-"))), text)?)
}

/// Both sides answered alike, call by call.
fn agreement(real: &[Entry], simulated: &[Entry]) -> Result<String> {
    let differences: Vec<String> =
        real.iter().zip(simulated).filter_map(|(real, simulated)| real.difference(simulated)).collect();
    ensure!(
        differences.is_empty(),
        "{} of {} calls differ:\n{}",
        differences.len(),
        real.len(),
        differences.join("\n")
    );
    ensure!(real.len() == simulated.len(), "{} calls and {} calls", real.len(), simulated.len());
    Ok(format!("{} calls: same status, texts, keys and values", real.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each simulator against what the real service answered when it was last asked.
    fn holds(api: Api, name: &str) {
        let text = std::fs::read_to_string(recorded_file(name)).unwrap();
        let recording: Recording = serde_json::from_str(&text).unwrap();
        let mut failures = Vec::new();
        for conversation in script::all(api, name).unwrap() {
            let real = &recording[&conversation.title];
            let simulated = Simulated::start(api, name).unwrap().play(&conversation).unwrap();
            if let Err(error) = agreement(real, &simulated) {
                failures.push(format!("{}: {error}", conversation.title));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn the_simulated_openstack_answers_as_the_real_one() {
        holds(Api::OpenStack, "openstack");
    }

    #[test]
    fn the_simulated_openstack_2025_1_answers_as_the_real_one() {
        holds(Api::OpenStack, "openstack 2025.1");
    }

    #[test]
    fn the_simulated_openstack_2024_1_answers_as_the_real_one() {
        holds(Api::OpenStack, "openstack 2024.1");
    }

    #[test]
    fn the_simulated_openstack_2023_1_answers_as_the_real_one() {
        holds(Api::OpenStack, "openstack 2023.1");
    }

    #[test]
    fn the_simulated_openstack_yoga_answers_as_the_real_one() {
        holds(Api::OpenStack, "openstack yoga");
    }

    #[test]
    fn the_simulated_nova_answers_as_the_real_one() {
        holds(Api::Compute, "compute");
    }

    #[test]
    fn the_simulated_provider_ovn_answers_as_the_real_one() {
        holds(Api::Ovn, OVN);
    }

    #[test]
    fn the_simulated_kubernetes_1_36_answers_as_the_real_one() {
        holds(Api::Kubernetes, "1.36");
    }

    #[test]
    fn the_simulated_kubernetes_1_29_with_the_gate_on_answers_as_the_real_one() {
        holds(Api::Kubernetes, "1.29 gate on");
    }

    #[test]
    fn the_simulated_kubernetes_1_29_with_the_gate_off_answers_as_the_real_one() {
        holds(Api::Kubernetes, "1.29 gate off");
    }

    #[test]
    fn the_simulated_kubernetes_1_28_answers_as_the_real_one() {
        holds(Api::Kubernetes, "1.28");
    }
}

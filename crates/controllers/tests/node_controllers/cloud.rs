//! A scripted cloud: what it says of the machine of each node, and how often it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::instance::address::{AddressType, InstanceAddress};
use openstack_ccm_core::instance::{Description, Instance, Instances, NodeIdentity, Presence};

#[derive(Default)]
pub(crate) struct Cloud {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    presences: BTreeMap<String, Presence>,
    descriptions: BTreeMap<String, Description>,
    /// Machines that lists lack although they are there.
    missing_in_lists: BTreeSet<String>,
    failure: Option<Failure>,
    questions: Vec<String>,
}

impl Cloud {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn set_presence(&self, node: &str, presence: Presence) {
        self.state().presences.insert(node.to_owned(), presence);
    }

    pub(crate) fn describe_as(&self, node: &str, description: Description) {
        self.state().descriptions.insert(node.to_owned(), description);
    }

    pub(crate) fn found(&self, node: &str, instance: Instance) {
        self.describe_as(node, Description::Found(Box::new(instance)));
    }

    pub(crate) fn hide_from_lists(&self, node: &str) {
        self.state().missing_in_lists.insert(node.to_owned());
    }

    /// Answers nothing from now on, or again.
    pub(crate) fn set_away(&self, away: bool) {
        self.state().failure = away.then(|| Failure::new(FailureClass::Unavailable, "the cloud is away"));
    }

    /// Answers nothing from now on, and asks to be left alone for so many seconds (`Retry-After`).
    pub(crate) fn ask_for_a_pause(&self, seconds: u64) {
        let mut failure = Failure::new(FailureClass::Unavailable, "the cloud is away");
        failure.retry_after = Some(std::time::Duration::from_secs(seconds));
        self.state().failure = Some(failure);
    }

    /// Questions since the last time: `describe 3`, `presence 1`.
    pub(crate) fn questions(&self) -> Vec<String> {
        std::mem::take(&mut self.state().questions)
    }

    fn ask(&self, question: &str, nodes: usize) -> Result<MutexGuard<'_, State>, Failure> {
        let mut state = self.state();
        state.questions.push(format!("{question} {nodes}"));
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(state),
        }
    }
}

#[async_trait]
impl Instances for Cloud {
    async fn presence(&self, nodes: &[NodeIdentity]) -> Result<Vec<Presence>, Failure> {
        let state = self.ask("presence", nodes.len())?;
        let presence = |node: &NodeIdentity| {
            if nodes.len() > 1 && state.missing_in_lists.contains(&node.name) {
                return Presence::Gone;
            }
            state.presences.get(&node.name).cloned().unwrap_or(match node.provider_id {
                Some(_) => Presence::Exists,
                None => Presence::Unknown(Failure::user_input("no server of this name")),
            })
        };
        Ok(nodes.iter().map(presence).collect())
    }

    async fn describe(&self, nodes: &[NodeIdentity]) -> Result<Vec<Description>, Failure> {
        let state = self.ask("describe", nodes.len())?;
        let unknown = || Description::Unknown(Failure::user_input("no server of this name"));
        Ok(nodes
            .iter()
            .map(|node| state.descriptions.get(&node.name).cloned().unwrap_or_else(unknown))
            .collect())
    }
}

/// A machine with everything.
pub(crate) fn machine() -> Instance {
    Instance {
        provider_id: Some("example:///id-1".to_owned()),
        instance_type: Some("m1.small".to_owned()),
        zone: Some("zone-1".to_owned()),
        region: Some("R1".to_owned()),
        addresses: addresses("InternalIP 10.0.0.11, ExternalIP 203.0.113.9"),
        labels: BTreeMap::new(),
    }
}

/// `InternalIP 10.0.0.11, Hostname h`
pub(crate) fn addresses(text: &str) -> Vec<InstanceAddress> {
    let entries = text.split(", ").filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (kind, address) = entry.split_once(' ').unwrap();
            let kind = match kind {
                "InternalIP" => AddressType::InternalIp,
                "ExternalIP" => AddressType::ExternalIp,
                "Hostname" => AddressType::Hostname,
                other => panic!("{other}"),
            };
            InstanceAddress::new(kind, address)
        })
        .collect()
}

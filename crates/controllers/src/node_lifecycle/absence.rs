//! In how many rounds in a row each node's machine was missing.

use std::collections::{HashMap, HashSet};

use openstack_ccm_core::instance::missing::ROUNDS;

use crate::nodes::NodeObject;

/// Rounds by the uid of the Node: one that is registered again starts over.
#[derive(Debug, Default)]
pub(super) struct Absences {
    rounds: HashMap<String, u32>,
}

impl Absences {
    /// The machine of the node is missing. Answers whether that has been so for long enough.
    pub(super) fn missing(&mut self, node: &NodeObject) -> bool {
        let rounds = self.rounds.entry(node.uid.clone()).or_default();
        *rounds = rounds.saturating_add(1);
        *rounds >= ROUNDS
    }

    /// Whether a machine was missing in the last round.
    pub(super) fn any(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Forgets every node that is not among the missing ones of this round.
    pub(super) fn keep_only<'a>(&mut self, missing: impl Iterator<Item = &'a NodeObject>) {
        let missing: HashSet<&str> = missing.map(|node| node.uid.as_str()).collect();
        self.rounds.retain(|uid, _| missing.contains(uid.as_str()));
    }
}

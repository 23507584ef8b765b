//! Which nodes become members: the annotation `node-selector`.

use std::collections::BTreeMap;

use openstack_ccm_core::node::Node;

/// Labels that a node must have, all of them. Empty, every node matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelector {
    /// Values by key; absent, any value will do.
    requirements: BTreeMap<String, Option<String>>,
}

/// A pair without a label key, which no node could match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pair:?} has no label key")]
pub struct MissingLabelKey {
    /// The pair as written.
    pub pair: String,
}

impl NodeSelector {
    /// Reads `key=value` pairs separated by commas, as OCCM does. Blanks around a pair do not matter, those around `=` do.
    /// A pair without `=` or without a value asks for the label only. Empty pairs are dropped; of several pairs with one
    /// key the last one counts. What is empty selects every node.
    ///
    /// # Errors
    /// A pair with a value and no key.
    pub fn parse(text: &str) -> Result<Self, MissingLabelKey> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let requirements = pairs.map(requirement);
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// Whether every node matches.
    pub fn selects_all(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether a node has all the labels.
    pub fn matches(&self, node: &Node) -> bool {
        self.requirements.iter().all(|(key, wanted)| {
            node.labels.get(key).is_some_and(|label| wanted.as_ref().is_none_or(|wanted| wanted == label))
        })
    }
}

fn requirement(pair: &str) -> Result<(String, Option<String>), MissingLabelKey> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    if key.is_empty() {
        return Err(MissingLabelKey { pair: pair.to_owned() });
    }
    let value = Some(value).filter(|value| !value.is_empty());
    Ok((key.to_owned(), value.map(str::to_owned)))
}

//! Which nodes become members: the annotation `node-selector`.

use openstack_ccm_core::node::Node;

/// Labels that a node must have, all of them. Empty, every node matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelector {
    requirements: Vec<Requirement>,
}

/// One label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    /// Absent, any value will do.
    value: Option<String>,
}

/// A pair without a label key, which no node could match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pair:?} has no label key")]
pub struct MissingLabelKey {
    /// The pair as written.
    pub pair: String,
}

impl NodeSelector {
    /// Reads `key=value` pairs separated by commas. Blanks around a pair do not matter, those around `=` do. A pair
    /// without `=` or without a value asks for the label only. The empty text selects every node.
    ///
    /// # Errors
    /// A pair without a key, as the empty pair of a doubled comma is one.
    pub fn parse(text: &str) -> Result<Self, MissingLabelKey> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements = text.split(',').map(str::trim).map(Requirement::parse);
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// Whether every node matches.
    pub fn selects_all(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether a node has all the labels.
    pub fn matches(&self, node: &Node) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(node))
    }
}

impl Requirement {
    fn parse(pair: &str) -> Result<Self, MissingLabelKey> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key.is_empty() {
            return Err(MissingLabelKey { pair: pair.to_owned() });
        }
        let value = Some(value).filter(|value| !value.is_empty());
        Ok(Self { key: key.to_owned(), value: value.map(str::to_owned) })
    }

    fn matches(&self, node: &Node) -> bool {
        node.labels.get(&self.key).is_some_and(|label| self.value.as_ref().is_none_or(|value| value == label))
    }
}

//! Which nodes take the traffic of a Service, by their labels.

use std::collections::BTreeMap;

use crate::instance::label::is_value;
use crate::node::Node;

/// Labels that a node must all have. An empty selector matches every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelector {
    /// Required value by label key; `None` matches any.
    requirements: BTreeMap<String, Option<String>>,
}

/// A pair that is not a valid label, so that no node could match it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pair:?} is not a label, such as pool=edge or example.org/pool")]
pub struct NoLabel {
    /// The pair as written.
    pub pair: String,
}

impl NodeSelector {
    /// Parses `key=value` pairs separated by commas, as OCCM does. Blanks around a pair do not matter.
    /// A pair without `=` or without a value requires only the key. Empty pairs are dropped; of several pairs with one key the
    /// last one counts. An empty text selects every node.
    ///
    /// # Errors
    /// A pair whose key or value is not valid in a label.
    pub fn parse(text: &str) -> Result<Self, NoLabel> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let requirements = pairs.map(requirement);
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// Returns the keys of the required labels.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.keys().map(String::as_str)
    }

    /// Whether a node has all the required labels.
    pub fn matches(&self, node: &Node) -> bool {
        self.requirements.iter().all(|(key, wanted)| {
            node.labels.get(key).is_some_and(|label| wanted.as_ref().is_none_or(|wanted| wanted == label))
        })
    }
}

fn requirement(pair: &str) -> Result<(String, Option<String>), NoLabel> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("a", key));
    if !is_prefix(prefix) || !is_name(name) || !is_value(value) {
        return Err(NoLabel { pair: pair.to_owned() });
    }
    let value = Some(value).filter(|value| !value.is_empty());
    Ok((key.to_owned(), value.map(str::to_owned)))
}

/// Whether a text can be the name in a label's key
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>).
fn is_name(text: &str) -> bool {
    !text.is_empty() && is_value(text)
}

/// Whether a text can be the DNS subdomain before the `/` of a label's key.
fn is_prefix(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| !part.contains('_') && is_name(part))
}

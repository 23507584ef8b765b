//! Conversations as they are written down: calls with placeholders for what earlier answers held.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use super::side::{Call, Side};
use super::transcript::{Entry, Transcript};
use crate::artifacts::source;

/// What is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// Keystone, Neutron, Octavia, Barbican.
    OpenStack,
    /// Nova, with ports of Neutron.
    Compute,
    /// Octavia with its provider ovn.
    Ovn,
    /// The API server.
    Kubernetes,
}

/// A sequence of calls that belong together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conversation {
    /// What it is about.
    #[serde(rename = "conversation")]
    pub title: String,
    /// Names of those who cannot hold it.
    #[serde(default)]
    except: Vec<String>,
    steps: Vec<Step>,
}

/// One line of a conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Step {
    Call(Box<Call>),
    /// Waits until the load balancer or the server at this path has no work before it any more.
    Settle {
        settle: String,
    },
    /// Waits until there is nothing at this path any more.
    Gone {
        gone: String,
    },
    /// Something in the worker of Octavia goes wrong from now on: `hold`, `fail-create`, `fail-batch`, `none`.
    Fault {
        fault: String,
    },
}

/// All conversations with an API of that name, in the order of their files.
pub(crate) fn all(api: Api, name: &str) -> Result<Vec<Conversation>> {
    let folder = source("conversations").join(match api {
        Api::OpenStack => "openstack",
        Api::Compute => "compute",
        Api::Ovn => "ovn",
        Api::Kubernetes => "kubernetes",
    });
    let mut files: Vec<_> =
        std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut conversations = Vec::new();
    for file in files {
        let mut conversation = read(&file).with_context(|| file.display().to_string())?;
        if conversation.except.iter().any(|one| one == name) {
            continue;
        }
        let excepted = |call: &Call| call.except.iter().any(|one| one == name);
        conversation.steps.retain(|step| !matches!(step, Step::Call(call) if excepted(call)));
        conversations.push(conversation);
    }
    Ok(conversations)
}

fn read(file: &Path) -> Result<Conversation> {
    let value: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    Ok(serde_json::from_value(value)?)
}

impl Conversation {
    /// Holds the conversation with one side.
    pub(crate) fn play(&self, side: &mut Side) -> Result<Transcript> {
        let mut known = side.constants.clone();
        let mut transcript = Transcript::new();
        for step in &self.steps {
            match step {
                Step::Settle { settle } => side.settle(&filled(settle, &known))?,
                Step::Gone { gone } => side.gone(&filled(gone, &known))?,
                Step::Fault { fault } => side.fault(fault)?,
                Step::Call(call) => transcript.push(call.make(side, &mut known)?),
            }
        }
        Ok(transcript)
    }
}

impl Call {
    fn make(&self, side: &Side, known: &mut BTreeMap<String, String>) -> Result<Entry> {
        let fill = |text: &String| filled(text, known);
        let ready = Self {
            call: fill(&self.call),
            who: self.who.as_ref().map(fill),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            body: self.body.as_ref().map(|body| filled_value(body, known)),
            ..self.clone()
        };
        let answer = side.send(&ready).with_context(|| ready.call.clone())?;
        let mut shown: BTreeMap<String, Value> = self
            .show
            .iter()
            .map(|pointer| (pointer.clone(), answer.body.pointer(pointer).cloned().unwrap_or_default()))
            .collect();
        for (pointer, wanted) in &self.same {
            let same = answer.body.pointer(pointer).and_then(Value::as_str) == Some(&filled(wanted, known));
            shown.insert(pointer.clone(), Value::from(if same { "as before" } else { "another" }));
        }
        for (name, pointer) in &self.keep {
            let value = answer.body.pointer(pointer).and_then(Value::as_str);
            let value = value.with_context(|| format!("{}: {} has no {pointer}", ready.call, answer.body))?;
            known.insert(name.clone(), value.to_owned());
        }
        Ok(Entry::new(&self.call, &answer, shown, known))
    }
}

fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn filled_value(value: &Value, known: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text, known)),
        Value::Array(items) => items.iter().map(|item| filled_value(item, known)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), filled_value(field, known))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conversations_can_be_read() {
        for api in [Api::OpenStack, Api::Compute, Api::Ovn, Api::Kubernetes] {
            assert!(!all(api, "").unwrap().is_empty());
        }
    }
}

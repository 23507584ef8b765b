//! Which Services are chosen to be reached through their load balancer. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Service;
use kube::core::{Selector, SelectorExt as _};
use openstack_ccm_core::provider::AnnotationUse;
use openstack_ccm_runtime::listed::Interest;
use openstack_ccm_runtime::watch::Reading;

use crate::PAGE_SIZE;
use crate::cloud::{CLOUDS, Cloud, Key, named};
use crate::names::{MODE_ANNOTATION, PROGRAM};
use crate::untouched::VIP_ANNOTATIONS;

/// The rules that choose Services.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Annotations of these clouds.
    pub clouds: Vec<&'static Cloud>,
    /// Further annotations.
    pub annotations: Vec<Pair>,
    /// The labels that choose a Service; empty: none are chosen by labels.
    pub labels: Selector,
}

/// `KEY=VALUE`, or `KEY` for any value that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub key: String,
    /// The value; absent: any that is not empty.
    pub value: Option<String>,
}

/// The error of a text that is not a valid [`Pair`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} has no key: write KEY=VALUE, or KEY for any value")]
pub struct PairError(String);

impl FromStr for Pair {
    type Err = PairError;

    fn from_str(text: &str) -> Result<Self, PairError> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
            None => (text.trim(), None),
        };
        if key.is_empty() || key.contains(['\'', '\\']) {
            return Err(PairError(text.to_owned()));
        }
        Ok(Self { key: key.to_owned(), value })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

impl Pair {
    fn is_in(&self, map: Option<&BTreeMap<String, String>>) -> bool {
        let found = map.and_then(|map| map.get(&self.key));
        match &self.value {
            Some(value) => found == Some(value),
            None => found.is_some_and(|found| !found.is_empty()),
        }
    }
}

/// The error of a cloud that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cloud {name:?} is unknown; known clouds are {known}; for any other, use --annotation KEY=VALUE", known = names())]
pub struct UnknownCloud {
    name: String,
}

fn names() -> String {
    CLOUDS.iter().map(|cloud| cloud.name).collect::<Vec<_>>().join(", ")
}

/// Returns the clouds with these names, or the whole table where no name is given.
///
/// # Errors
/// A name that is not in the table.
pub fn clouds(names: &[String]) -> Result<Vec<&'static Cloud>, UnknownCloud> {
    if names.is_empty() {
        return Ok(CLOUDS.iter().collect());
    }
    names.iter().map(|name| named(name.trim()).ok_or_else(|| UnknownCloud { name: name.clone() })).collect()
}

/// What the rules and its own annotation choose for one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Clients shall reach the Service through its load balancer.
    Proxy(Chosen),
    /// Its own annotation says `vip`.
    Vip,
    /// Its own annotation has an invalid value.
    Unreadable(String),
    /// Neither its annotation nor a rule chooses it.
    None,
}

/// What chose a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Its own annotation.
    Own,
    /// An annotation of this cloud.
    Cloud(&'static str),
    /// An annotation that the operator named.
    Annotation(String),
    Labels,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => write!(f, "annotation {MODE_ANNOTATION}"),
            Self::Cloud(name) => write!(f, "PROXY protocol of {name}"),
            Self::Annotation(pair) => write!(f, "annotation {pair}"),
            Self::Labels => f.write_str("labels"),
        }
    }
}

impl Rules {
    /// Returns which fields of Services are read, and the page size of their list.
    pub(crate) fn reading(&self) -> Reading {
        let rules = self.clone();
        let interest = Interest::in_annotations(move |key| rules.use_of(key)).and_writes_of(PROGRAM);
        Reading { page: PAGE_SIZE, interest }
    }

    fn use_of(&self, key: &str) -> AnnotationUse {
        let keys = || self.clouds.iter().flat_map(|cloud| cloud.annotations).map(|rule| rule.key);
        let is_key = |one| matches!(one, Key::Exactly(exactly) if exactly == key);
        if key == MODE_ANNOTATION
            || self.annotations.iter().any(|pair| pair.key == key)
            || VIP_ANNOTATIONS.iter().any(|(known, _)| *known == key)
            || keys().any(is_key)
        {
            AnnotationUse::Meaning
        } else if keys().any(|one| matches!(one, Key::Prefix(prefix) if key.starts_with(prefix))) {
            // Any user can write thousands of such annotations.
            AnnotationUse::Message
        } else {
            AnnotationUse::None
        }
    }

    /// Returns what the annotation of a Service, or else the rules, choose for it.
    pub fn choose(&self, service: &Service) -> Choice {
        let annotations = service.metadata.annotations.as_ref();
        let own = annotations.and_then(|annotations| annotations.get(MODE_ANNOTATION));
        match own.map(|own| own.to_ascii_lowercase()).as_deref() {
            Some("proxy") => return Choice::Proxy(Chosen::Own),
            Some("vip") => return Choice::Vip,
            None | Some("auto" | "") => {}
            Some(_) => return Choice::Unreadable(own.cloned().unwrap_or_default()),
        }
        let by_cloud = |cloud: &&Cloud| {
            annotations
                .into_iter()
                .flatten()
                .any(|(key, value)| cloud.annotations.iter().any(|rule| rule.applies(key, value)))
        };
        if let Some(cloud) = self.clouds.iter().copied().find(by_cloud) {
            return Choice::Proxy(Chosen::Cloud(cloud.title));
        }
        if let Some(pair) = self.annotations.iter().find(|pair| pair.is_in(annotations)) {
            return Choice::Proxy(Chosen::Annotation(pair.to_string()));
        }
        let none = BTreeMap::new();
        let labels = service.metadata.labels.as_ref().unwrap_or(&none);
        if !self.labels.selects_all() && self.labels.matches(labels) {
            return Choice::Proxy(Chosen::Labels);
        }
        Choice::None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn rules() -> Rules {
        Rules {
            clouds: clouds(&[]).unwrap(),
            annotations: vec![
                "lb.example.org/proxy=on".parse().unwrap(),
                "lb.example.org/tls".parse().unwrap(),
            ],
            labels: crate::selector::parse("edge=yes,tier in (1,2),!internal").unwrap(),
        }
    }

    const DO: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";

    #[rstest]
    #[case::nobody(json!({}), json!({}), Choice::None)]
    #[case::own(json!({MODE_ANNOTATION: "Proxy"}), json!({}), Choice::Proxy(Chosen::Own))]
    #[case::cloud(json!({DO: "true"}), json!({}), Choice::Proxy(Chosen::Cloud("DigitalOcean")))]
    #[case::auto_is_as_without(json!({DO: "true", MODE_ANNOTATION: "auto"}), json!({}), Choice::Proxy(Chosen::Cloud("DigitalOcean")))]
    #[case::vip_stands_above(json!({DO: "true", MODE_ANNOTATION: "vip"}), json!({"edge": "yes", "tier": "1"}), Choice::Vip)]
    #[case::typing_error(json!({DO: "true", MODE_ANNOTATION: "prxy"}), json!({}), Choice::Unreadable("prxy".into()))]
    #[case::operator(json!({"lb.example.org/proxy": "on"}), json!({}), Choice::Proxy(Chosen::Annotation("lb.example.org/proxy=on".into())))]
    #[case::operator_other_value(json!({"lb.example.org/proxy": "off"}), json!({}), Choice::None)]
    #[case::operator_any_value(json!({"lb.example.org/tls": "secret"}), json!({}), Choice::Proxy(Chosen::Annotation("lb.example.org/tls".into())))]
    #[case::operator_empty_value(json!({"lb.example.org/tls": ""}), json!({}), Choice::None)]
    #[case::labels(json!({}), json!({"edge": "yes", "tier": "1"}), Choice::Proxy(Chosen::Labels))]
    #[case::one_label_is_missing(json!({}), json!({"edge": "yes"}), Choice::None)]
    #[case::one_label_too_many(json!({}), json!({"edge": "yes", "tier": "1", "internal": ""}), Choice::None)]
    fn a_service_is_chosen_by_its_own_word_its_cloud_or_the_operator(
        #[case] annotations: Value,
        #[case] labels: Value,
        #[case] expected: Choice,
    ) {
        let service = json!({"metadata": {"annotations": annotations, "labels": labels}});
        assert_eq!(rules().choose(&from_value(service).unwrap()), expected);
    }

    #[test]
    fn an_unknown_cloud_is_refused_with_a_list_of_those_there_are() {
        let error = clouds(&["digitalocean".into(), "azure".into()]).unwrap_err().to_string();
        assert!(
            error.contains("\"azure\"") && error.contains("linode") && error.contains("--annotation"),
            "{error}"
        );
    }

    #[rstest]
    #[case("=v")]
    #[case("")]
    #[case("a'b=c")]
    fn a_pair_needs_a_key(#[case] text: &str) {
        assert!(text.parse::<Pair>().is_err());
    }
}

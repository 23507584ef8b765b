//! `--as-if`: annotations that the plan assumes on Services.

use openstack_ccm_core::service::ServiceKey;
use serde_json::{Map, Value, json};

/// The assumed annotations, and their Services.
#[derive(Clone, Debug, Default)]
pub struct AsIf {
    /// The Services; empty for all.
    pub services: Vec<ServiceKey>,
    /// The only namespace whose Services get the annotations, if any.
    pub namespace: Option<String>,
    /// Keys with values; the plan assumes a key without a value to be removed.
    pub annotations: Vec<(String, Option<String>)>,
}

impl AsIf {
    /// Parses `KEY=VALUE`, or `KEY-` for a removed annotation, as in `kubectl annotate`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<(String, Option<String>), String> {
        match (text.split_once('='), text.strip_suffix('-')) {
            (Some((key, value)), _) if !key.is_empty() => Ok((key.to_owned(), Some(value.to_owned()))),
            (None, Some(key)) if !key.is_empty() => Ok((key.to_owned(), None)),
            _ => Err("write KEY=VALUE, or KEY- to remove an annotation".to_owned()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.annotations.is_empty()
    }

    /// Applies the annotations to a chosen Service. Objects in a list do not state their kind: an object with ports is a Service.
    pub(super) fn apply(&self, object: &mut Value) {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let key = ServiceKey::new(text("namespace"), text("name"));
        let meant = (self.services.is_empty() || self.services.contains(&key))
            && self.namespace.as_ref().is_none_or(|namespace| **namespace == *key.namespace);
        if !meant || object["spec"]["ports"].is_null() {
            return;
        }
        let annotations: Map<String, Value> =
            self.annotations.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json_patch::merge(object, &json!({"metadata": {"annotations": annotations}}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_given_to_the_services_that_are_meant() {
        let annotations = ["a=1=2", "b-"].map(|text| AsIf::parse(text).unwrap()).to_vec();
        assert_eq!(annotations[0], ("a".to_owned(), Some("1=2".to_owned())));
        assert!(AsIf::parse("a").is_err() && AsIf::parse("=x").is_err());
        let as_if = AsIf { services: vec![ServiceKey::new("shop", "web")], annotations, namespace: None };
        let service = |name: &str| {
            let mut service = json!({"metadata": {"namespace": "shop", "name": name, "annotations": {"b": "x"}},
                "spec": {"ports": [{"port": 80}]}});
            as_if.apply(&mut service);
            service["metadata"]["annotations"].clone()
        };
        assert_eq!(service("web"), json!({"a": "1=2"}));
        assert_eq!(service("other"), json!({"b": "x"}));
    }
}

//! Namespaces.

use serde_json::{Value, json};

use super::{Part, Rules};
use crate::names::NameRule;
use crate::object::{carry_over, metadata, name, section};
use crate::version::ApiVersion;

pub(super) const FIELDS: &str = "spec!{finalizers[]} status!{phase conditions[type]{type! status! \
    lastTransitionTime:time reason message}}";

pub(super) struct Namespace;

impl Rules for Namespace {
    fn name_rule(&self, _version: ApiVersion) -> NameRule {
        NameRule::Label1123
    }

    fn set_defaults(&self, object: &mut Value, _version: ApiVersion) {
        let own_name = name(object).to_owned();
        let labels = metadata(object).entry("labels").or_insert_with(|| json!({}));
        labels["kubernetes.io/metadata.name"] = own_name.into();
        section(object, "status").entry("phase").or_insert_with(|| "Active".into());
    }

    fn before_create(&self, object: &mut Value) {
        object["spec"] = json!({"finalizers": ["kubernetes"]});
        object["status"] = json!({"phase": "Active"});
    }

    fn before_update(&self, new: &mut Value, old: &Value, part: Part, _version: ApiVersion) {
        carry_over("spec", old, new);
        match part {
            Part::Main => carry_over("status", old, new),
            Part::Status => {}
        }
    }

    fn selectable_fields(&self, _version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        &[("status.phase", "/status/phase")]
    }
}

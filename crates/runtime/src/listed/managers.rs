//! `managedFields`, read only for whether a manager wrote the addresses in the status. That list is atomic, so its last writer owns
//! it.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::json;

use super::interest::Interest;

/// The entry of the manager of interest, if it wrote the addresses, without its other fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(pub(super) Option<ManagedFieldsEntry>);

/// One entry. Its keys come in any order; other keys are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    manager: String,
    fields_v1: Option<Fields>,
}

#[derive(Deserialize)]
struct Fields {
    #[serde(rename = "f:status")]
    status: Option<StatusFields>,
}

#[derive(Deserialize)]
struct StatusFields {
    #[serde(rename = "f:loadBalancer")]
    load_balancer: Option<LoadBalancerFields>,
}

#[derive(Deserialize)]
struct LoadBalancerFields {
    #[serde(rename = "f:ingress")]
    ingress: Option<IgnoredAny>,
}

impl Entry {
    fn owns_addresses(&self) -> bool {
        let status = self.fields_v1.as_ref().and_then(|fields| fields.status.as_ref());
        status.and_then(|status| status.load_balancer.as_ref()).is_some_and(|fields| fields.ingress.is_some())
    }
}

impl<'de> Deserialize<'de> for Managers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Interest::manager() {
            Some(manager) => deserializer.deserialize_seq(EntryOf(manager)),
            None => IgnoredAny::deserialize(deserializer).map(|_| Self::default()),
        }
    }
}

struct EntryOf(&'static str);

impl<'de> Visitor<'de> for EntryOf {
    type Value = Managers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("entries of managers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Managers, A::Error> {
        let mut owns = false;
        while let Some(entry) = entries.next_element::<Entry>()? {
            owns |= entry.manager == self.0 && entry.owns_addresses();
        }
        Ok(Managers(owns.then(|| ManagedFieldsEntry {
            manager: Some(self.0.to_owned()),
            fields_v1: Some(FieldsV1(json!({"f:status": {"f:loadBalancer": {"f:ingress": {}}}}))),
            ..ManagedFieldsEntry::default()
        })))
    }
}

//! `metadata`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::annotations::{Annotations, KeptLabels};
use super::at_most::{AtMost, kept};
use super::limits::MAX_METADATA_ENTRIES;
use super::managers::Managers;

/// The finalizer that keeps a Service until its load balancer is gone.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<KeptLabels>,
    annotations: Option<Annotations>,
    owner_references: Option<AtMost<MAX_METADATA_ENTRIES, OwnerReference>>,
    finalizers: Option<Finalizers>,
    managed_fields: Option<Managers>,
}

/// Reads metadata, for `deserialize_with`.
///
/// # Errors
/// Errors of the deserializer.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let metadata = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        creation_timestamp: metadata.creation_timestamp,
        deletion_timestamp: metadata.deletion_timestamp,
        labels: metadata.labels.map(|KeptLabels(kept)| kept),
        annotations: metadata.annotations.map(|Annotations(kept)| kept),
        owner_references: kept(metadata.owner_references),
        finalizers: metadata.finalizers.map(|Finalizers(kept)| kept),
        managed_fields: metadata.managed_fields.and_then(|Managers(entry)| entry).map(|entry| vec![entry]),
        ..ObjectMeta::default()
    })
}

/// The first finalizers, and [`FINALIZER`] wherever it stands.
struct Finalizers(Vec<String>);

impl<'de> Deserialize<'de> for Finalizers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FinalizerVisitor).map(Self)
    }
}

struct FinalizerVisitor;

impl<'de> Visitor<'de> for FinalizerVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("finalizers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(name) = names.next_element::<String>()? {
            if kept.len() < MAX_METADATA_ENTRIES || (name == FINALIZER && !kept.contains(&name)) {
                kept.push(name);
            }
        }
        Ok(kept)
    }
}

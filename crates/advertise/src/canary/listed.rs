//! Pods and DaemonSets as they are listed.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use openstack_ccm_canary::observed_pod::{ObservedPod, ObservedSpec, ObservedStatus};
use openstack_ccm_runtime::listed::metadata;
use serde::Deserialize;

/// A pod with the fields that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListedPod {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: ObservedSpec,
    status: ObservedStatus,
}

openstack_ccm_runtime::listed_as!(ListedPod, ObservedPod);

impl From<ListedPod> for ObservedPod {
    fn from(ListedPod { metadata, spec, status }: ListedPod) -> Self {
        Self { metadata, spec, status }
    }
}

/// A DaemonSet with nothing but its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListedDaemonSet {
    #[serde(deserialize_with = "metadata")]
    pub(super) metadata: ObjectMeta,
}

openstack_ccm_runtime::listed_as!(ListedDaemonSet, DaemonSet);

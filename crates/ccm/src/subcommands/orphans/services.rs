//! The Services that may own what is in the cloud.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::watch::list_all;

/// Who may own something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// The Services of a cluster that is there, by name, with their uids.
    Cluster(BTreeMap<ServiceKey, String>),
    /// Nobody: the cluster is gone.
    Gone,
}

impl Owners {
    /// All Services of the cluster, of whatever type: one that was of type LoadBalancer a moment ago may still own something.
    ///
    /// # Errors
    /// Any page of the list that cannot be read, and a list without a single Service: every cluster has one, so that the
    /// list is wrong, and everything in the cloud would look orphaned.
    pub async fn of(client: Client) -> anyhow::Result<Self> {
        let services = list_all::<Service>(Api::all(client)).await;
        let services = services.context("the Services of the cluster cannot be listed")?;
        let all: BTreeMap<ServiceKey, String> = services
            .into_iter()
            .map(|Service { metadata, .. }| {
                let key = ServiceKey::new(
                    metadata.namespace.unwrap_or_default(),
                    metadata.name.unwrap_or_default(),
                );
                (key, metadata.uid.unwrap_or_default())
            })
            .collect();
        anyhow::ensure!(
            !all.is_empty(),
            "the API server lists no Service at all, not even its own: everything would look orphaned. If the cluster is gone, \
             name it with --cluster-uid"
        );
        Ok(Self::Cluster(all))
    }

    /// Whether one of these is the uid of a Service that is there.
    pub(super) fn has_one_of(&self, uids: &BTreeSet<&str>) -> bool {
        match self {
            Self::Cluster(all) => all.values().any(|uid| uids.contains(uid.as_str())),
            Self::Gone => false,
        }
    }

    /// Whether a Service of this name is there.
    pub(super) fn has_named(&self, key: &ServiceKey) -> bool {
        match self {
            Self::Cluster(all) => all.contains_key(key),
            Self::Gone => false,
        }
    }
}

//! Reverts the statuses that this program wrote, and no others.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::{CallError, call};
use openstack_ccm_runtime::listed;
use openstack_ccm_runtime::watch::list_all;

use crate::CALL_TIMEOUT;
use crate::names::PROGRAM;
use crate::rules::Rules;
use crate::service::{is_ours, key};
use crate::untouched::is_of_canary;
use crate::wanted_status::{given_back, patch};

/// Longest wait for the list of all Services.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// Attempts to revert one status; another client's write between read and patch costs one.
const MAX_ATTEMPTS: usize = 5;

/// The outcome for the statuses that this program had written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// The Services whose entries have `VIP` again.
    pub given_back: Vec<ServiceKey>,
    /// The Services whose status could not be written, with the cause.
    pub failed: Vec<(ServiceKey, String)>,
}

/// Reverts every status whose last writer, by `managedFields`, is this program. Entries that an owner or an admission policy wrote
/// since are left alone.
///
/// # Errors
/// The Services could not be listed.
pub async fn cleanup(client: &Client, hostname_suffix: Option<&str>) -> Result<Cleanup, CallError> {
    let mut cleanup = Cleanup::default();
    for service in services(client, &Rules::default()).await? {
        if is_of_canary(&service) {
            continue;
        }
        let key = key(&service);
        match give_back(client, service, hostname_suffix).await {
            Ok(false) => {}
            Ok(true) => cleanup.given_back.push(key),
            Err(error) => cleanup.failed.push((key, error.message())),
        }
    }
    Ok(cleanup)
}

/// Lists all Services, with the fields that `rules` read.
pub(crate) async fn services(client: &Client, rules: &Rules) -> Result<Vec<Service>, CallError> {
    let api = Api::<listed::Service>::all(client.clone());
    call(LIST_TIMEOUT, list_all(api, rules.reading())).await
}

/// Reverts one status; returns whether there was anything to revert.
async fn give_back(client: &Client, mut service: Service, suffix: Option<&str>) -> Result<bool, CallError> {
    let writer = StatusWriter::new(client.clone(), CALL_TIMEOUT, PROGRAM);
    let key = key(&service);
    for attempt in 1.. {
        let Some(wanted) = is_ours(&service).then(|| given_back(&service, suffix)).flatten() else {
            return Ok(false);
        };
        // A list of strings is always a patch.
        let patch = serde_json::from_value(patch(&service, &wanted)).unwrap_or_default();
        match writer.json_patch_status(&key, patch).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if attempt < MAX_ATTEMPTS && (error.is_invalid() || error.is_conflict()) => {}
            Err(error) => return Err(error),
        }
        let api = Api::<Service>::namespaced(client.clone(), &key.namespace);
        match call(CALL_TIMEOUT, api.get_opt(&key.name)).await? {
            Some(now) => service = now,
            None => return Ok(false),
        }
    }
    Ok(false)
}

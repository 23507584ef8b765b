//! Gives back what this program set, and nothing else.

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
use crate::plan::{given_back, patch};
use crate::refusal::is_of_canary;
use crate::rules::Rules;
use crate::service::{is_ours, key};

/// Longest wait for the list of all Services.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// Times that a status is read again because somebody else wrote it.
const MAX_ATTEMPTS: usize = 5;

/// What became of the statuses that this program had written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Those that have `VIP` again.
    pub given_back: Vec<ServiceKey>,
    /// Those that could not be written, with the cause.
    pub failed: Vec<(ServiceKey, String)>,
}

/// Gives every status back that this program wrote last, as the API server notes it. What an owner or an admission policy
/// wrote since is theirs.
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

/// All Services, with what `rules` read of them.
pub(crate) async fn services(client: &Client, rules: &Rules) -> Result<Vec<Service>, CallError> {
    let api = Api::<listed::Service>::all(client.clone());
    call(LIST_TIMEOUT, list_all(api, rules.reading())).await
}

/// Gives one status back; answers whether there was anything to give.
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

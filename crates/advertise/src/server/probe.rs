//! Probes whether the API server keeps `ipMode`, and reads its answers to real writes. Pure but for the
//! one call.
//!
//! The probe is a dry-run status patch of a Service of type LoadBalancer with an entry that has an `ip` and **no**
//! `ipMode`: a server that keeps the field answers with its default `VIP`, a server that drops it answers without. Sending
//! `Proxy` and looking for the echo would be wrong where the stored status already has a mode; `/version`, OpenAPI
//! and strict validation do not see the feature gate.

use std::time::Duration;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::CallError;
use serde_json::json;

use crate::cluster::ServerSupport;
use crate::entry::entries;
use crate::writer::StatusWriter;

/// An address for documentation (RFC 5737): it is never stored.
const ADDRESS: &str = "192.0.2.1";

/// Longest wait for an answer.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of one probe.
#[derive(Debug)]
pub(super) enum Answer {
    Shows(ServerSupport),
    /// This Service cannot be used for a probe: it is gone or of another type by now.
    OtherService,
    /// The server refused or did not answer.
    Failed(CallError),
}

/// Probes with one Service of type LoadBalancer.
pub(super) async fn ask(writer: &StatusWriter, service: &ServiceKey) -> Answer {
    let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
    match writer.dry_run_status(service, &patch, CALL_TIMEOUT).await {
        Ok(answer) => match entries(&answer).as_slice() {
            [entry] if entry.ip_mode.is_some() => Answer::Shows(ServerSupport::Keeps),
            [_] => Answer::Shows(ServerSupport::Drops),
            // Something between us and the store rewrote the status.
            _ => Answer::OtherService,
        },
        Err(error) if error.is_not_found() || error.is_invalid() => Answer::OtherService,
        Err(error) => Answer::Failed(error),
    }
}

/// Returns what the answer to a real status write shows.
///
/// A mode that was sent and did not come back was dropped. A mode that was not sent and came back was filled in. A
/// mode that was sent and came back shows nothing: an old value in the store lets it through.
pub(super) fn evidence(
    sent: &[LoadBalancerIngress],
    answered: &[LoadBalancerIngress],
) -> Option<ServerSupport> {
    if sent.len() != answered.len() {
        return None;
    }
    sent.iter().zip(answered).filter(|(sent, _)| sent.ip.is_some()).find_map(|(sent, answered)| {
        match (&sent.ip_mode, &answered.ip_mode) {
            (_, None) => Some(ServerSupport::Drops),
            (None, Some(_)) => Some(ServerSupport::Keeps),
            (Some(_), Some(_)) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::entry::{PROXY, VIP, of_address, of_hostname};
    use rstest::rstest;

    use super::*;

    fn entry(mode: Option<&str>) -> LoadBalancerIngress {
        of_address("192.0.2.7".parse().unwrap(), mode)
    }

    #[rstest]
    #[case::dropped(entry(Some(PROXY)), entry(None), Some(ServerSupport::Drops))]
    #[case::filled_in(entry(None), entry(Some(VIP)), Some(ServerSupport::Keeps))]
    #[case::not_filled_in(entry(None), entry(None), Some(ServerSupport::Drops))]
    #[case::echoed(entry(Some(PROXY)), entry(Some(PROXY)), None)]
    #[case::hostname(of_hostname("a.example"), of_hostname("a.example"), None)]
    fn a_real_write_shows_as_much_as_it_can(
        #[case] sent: LoadBalancerIngress,
        #[case] answered: LoadBalancerIngress,
        #[case] expected: Option<ServerSupport>,
    ) {
        assert_eq!(evidence(&[sent], &[answered]), expected);
    }
}

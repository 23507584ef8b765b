//! Who asked a service for what, as its access log tells.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::Folders;
use crate::report::cost::Sender;

/// The status with which Octavia refuses whatever is sent while a load balancer is PENDING.
const CONFLICT: u16 = 409;
/// How the name of the controller's HTTP client begins. Octavia asks Neutron too, and so do the tests.
const CONTROLLER: &str = "openstack-ccm";
/// The library with which OCCM asks, and nobody else here.
const OCCM: &str = "gophercloud";
const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The access log of one service from a moment on.
pub(crate) struct AccessLog {
    file: PathBuf,
    begin: usize,
}

/// A request that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Such as `PUT /v2/lbaas/listeners/1?`; the paths of Neutron lack its version.
    pub what: String,
    /// Who sent it.
    pub sender: Sender,
    /// The HTTP status of the answer.
    pub status: u16,
}

impl AccessLog {
    /// From now on.
    ///
    /// # Errors
    /// The log cannot be read, or shows nothing, so that it would not show a later request either.
    pub(crate) fn from_now(folders: &Folders, service: &str) -> Result<Self> {
        let file = folders.logs().join(format!("{service}.access.log"));
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        ensure!(text.contains("\"GET "), "{} shows no request", file.display());
        Ok(Self { file, begin: text.len() })
    }

    /// The requests since then.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn so_far(&self) -> Result<Vec<Request>> {
        let text = std::fs::read_to_string(&self.file)?;
        Ok(text[self.begin..].lines().filter_map(request).collect())
    }
}

impl Request {
    /// Whether the controller under test sent it.
    pub(crate) fn is_of_controller(&self) -> bool {
        self.sender == Sender::OpenstackCcm
    }

    /// Whether it changes something.
    pub(crate) fn is_write(&self) -> bool {
        WRITES.iter().any(|method| self.what.starts_with(method))
    }

    /// Whether it asks Octavia how far load balancers are, of which waiting takes as many as it takes long.
    pub(crate) fn is_poll(&self) -> bool {
        let Some(path) = self.what.strip_prefix("GET /v2.0/lbaas/loadbalancers") else { return false };
        let path = path.split('?').next().unwrap_or_default();
        path.matches('/').count() <= 1
    }

    /// Whether it changed nothing, because it came while something else was still being changed.
    pub(crate) fn came_too_early(&self) -> bool {
        self.status == CONFLICT
    }
}

/// The request stands between the first quotation marks of a line, who sent it between the next ones; the status comes first of
/// what is between them.
fn request(line: &str) -> Option<Request> {
    let mut parts = line.split('"').skip(1);
    let what = parts.next()?.to_owned();
    let status = parts.next()?.split_whitespace().next()?.parse().ok()?;
    let agent = parts.next().unwrap_or_default();
    let sender = if agent.contains(CONTROLLER) {
        Sender::OpenstackCcm
    } else if agent.contains(OCCM) {
        Sender::Occm
    } else {
        Sender::Other
    };
    Some(Request { what, sender, status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_the_controller_are_told_from_those_of_others() {
        let line = |agent: &str| {
            format!("[22/Nov/2026:19:00:00 +0000] \"PUT /v2/lbaas/pools/1?\" 200 7 12ms \"{agent}\"")
        };
        let own = request(&line("openstack-ccm-openstack-api/0.1.0")).unwrap();
        assert!(own.is_of_controller() && own.is_write() && own.what == "PUT /v2/lbaas/pools/1?");
        assert!(own.status == 200 && !own.came_too_early());
        let sender = |agent: &str| request(&line(agent)).unwrap().sender;
        assert_eq!(sender("openstack-cloud-controller-manager/v1.36.0 gophercloud/v2.10.0"), Sender::Occm);
        assert_eq!(sender("openstacksdk/4.22.0"), Sender::Other);
        assert_eq!(sender("-"), Sender::Other);
    }

    #[test]
    fn only_questions_about_load_balancers_themselves_are_polls() {
        let is_poll = |what: &str| request(&format!("\"{what}\" 200 7 12ms \"-\"")).unwrap().is_poll();
        for what in ["GET /v2.0/lbaas/loadbalancers?fields=id", "GET /v2.0/lbaas/loadbalancers/1?"] {
            assert!(is_poll(what), "{what}");
        }
        for what in [
            "GET /v2.0/lbaas/loadbalancers/1/status?",
            "GET /v2.0/lbaas/pools?",
            "PUT /v2.0/lbaas/loadbalancers/1?",
        ] {
            assert!(!is_poll(what), "{what}");
        }
    }
}

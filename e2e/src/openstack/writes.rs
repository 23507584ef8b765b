//! What is written in the cloud, as the access logs of its services tell.

use anyhow::{Result, ensure};

use super::Folders;
use super::access::{AccessLog, Request};

/// The services in which a load balancer leaves something.
const SERVICES: [&str; 2] = ["octavia", "neutron"];

/// The access logs from a moment on.
pub(crate) struct Writes {
    logs: Vec<AccessLog>,
}

impl Writes {
    /// From now on.
    ///
    /// # Errors
    /// As for [`AccessLog::from_now`].
    pub(crate) fn from_now(folders: &Folders) -> Result<Self> {
        let logs = SERVICES.into_iter().map(|service| AccessLog::from_now(folders, service));
        Ok(Self { logs: logs.collect::<Result<_>>()? })
    }

    /// Each request since then that changes something, whoever sent it.
    ///
    /// # Errors
    /// A log cannot be read.
    pub(crate) fn so_far(&self) -> Result<Vec<String>> {
        self.requests(|_| true)
    }

    /// Those of them that this program made: Octavia itself writes in Neutron too.
    ///
    /// # Errors
    /// As for [`Writes::so_far`].
    pub(crate) fn by_this_program(&self) -> Result<Vec<String>> {
        self.requests(Request::is_of_controller)
    }

    /// Those of them that changed something: a step of a chain that came too early is refused, and sent again.
    ///
    /// # Errors
    /// As for [`Writes::so_far`].
    pub(crate) fn done_by_this_program(&self) -> Result<Vec<String>> {
        self.requests(|request| request.is_of_controller() && !request.came_too_early())
    }

    fn requests(&self, counts: impl Fn(&Request) -> bool) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for log in &self.logs {
            let requests = log.so_far()?.into_iter().filter(|request| request.is_write() && counts(request));
            found.extend(requests.map(|request| request.what));
        }
        Ok(found)
    }

    /// Fails if there is one.
    ///
    /// # Errors
    /// It names them.
    pub(crate) fn none(&self) -> Result<()> {
        let found = self.so_far()?;
        ensure!(found.is_empty(), "written in the cloud: {}", found.join(", "));
        Ok(())
    }
}

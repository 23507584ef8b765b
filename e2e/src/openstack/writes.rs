//! What is written in the cloud, as the access logs of its services tell.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::Folders;

/// The services in which a load balancer leaves something.
const SERVICES: [&str; 2] = ["octavia", "neutron"];
/// What this program calls itself in the header `User-Agent`.
const PRODUCT: &str = "openstack-ccm";
const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The access logs from a moment on.
pub(crate) struct Writes {
    logs: Vec<(PathBuf, usize)>,
}

impl Writes {
    /// From now on.
    ///
    /// # Errors
    /// A log cannot be read, or shows nothing, so that it would not show a write either.
    pub(crate) fn from_now(folders: &Folders) -> Result<Self> {
        let end = |service: &str| {
            let log = folders.logs().join(format!("{service}.access.log"));
            let text =
                std::fs::read_to_string(&log).with_context(|| format!("{} cannot be read", log.display()))?;
            ensure!(text.contains("\"GET "), "{} shows no request", log.display());
            Ok((log, text.len()))
        };
        Ok(Self { logs: SERVICES.into_iter().map(end).collect::<Result<_>>()? })
    }

    /// Each request since then that changes something, such as `PUT /v2/lbaas/listeners/1?`; the paths of Neutron lack its version.
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
        self.requests(|line| line.contains(PRODUCT))
    }

    fn requests(&self, counts: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for (log, end) in &self.logs {
            let text = std::fs::read_to_string(log)?;
            let lines = text[*end..].lines().filter(|line| counts(line));
            let requests = lines.filter_map(|line| line.split('"').nth(1));
            found.extend(requests.filter(|request| changes(request)).map(str::to_owned));
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

fn changes(request: &str) -> bool {
    METHODS.iter().any(|method| request.starts_with(method))
}

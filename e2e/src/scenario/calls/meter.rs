//! Counts the calls of a controller.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::kubernetes::audit::Audit;
use crate::openstack::access::{AccessLog, Request};
use crate::report::cost::Cost;
use crate::report::cost::Sender;
use crate::stage::Stage;

/// Longest time that the controller may go on with calls.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time between two looks into the logs.
const LOOK: Duration = Duration::from_millis(200);

/// When nothing more is to come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// The controller asks Octavia no more often than every few seconds while it waits for something.
    Calm,
    /// What members were sent may be looked at some time after the last change of nodes.
    Confirmed,
}

impl Rest {
    fn time(self, by: Sender) -> Duration {
        match (self, by) {
            // What failed is tried again after a pause that doubles from five seconds.
            (Self::Calm, Sender::Occm) => Duration::from_secs(22),
            (Self::Calm, Sender::OpenstackCcm | Sender::Other) => Duration::from_secs(8),
            (Self::Confirmed, _) => Duration::from_secs(40),
        }
    }
}

/// Counts the calls of a controller for one change after another.
pub(super) struct Meter {
    audit: Audit,
    by: Sender,
}

/// From where on it counts.
pub(super) struct Beginning {
    octavia: AccessLog,
    neutron: AccessLog,
    kubernetes_writes: usize,
    at: Instant,
}

impl Meter {
    /// With the log of the API server.
    pub(super) fn new(audit: Audit, by: Sender) -> Self {
        Self { audit, by }
    }

    /// Begins to count.
    pub(super) fn begin(&self, stage: &Stage) -> Result<Beginning> {
        let folders = &stage.cloud.folders;
        Ok(Beginning {
            octavia: AccessLog::from_now(folders, "octavia")?,
            neutron: AccessLog::from_now(folders, "neutron")?,
            kubernetes_writes: self.audit.writes()?.len(),
            at: Instant::now(),
        })
    }

    /// What a change cost that was begun then: counts until the controller rests. The change is made when the controller has done the
    /// last thing for it, and not before now.
    pub(super) fn end(&self, stage: &Stage, rest: Rest, beginning: &Beginning) -> Result<Cost> {
        let Beginning { octavia, neutron, kubernetes_writes, at } = beginning;
        let mut last = Instant::now();
        let mut calls = Vec::new();
        while last.elapsed() < rest.time(self.by) || is_octavia_at_work(stage)? {
            ensure!(at.elapsed() < PATIENCE, "the controller does not rest: {calls:?}");
            let now = self.calls(octavia)?;
            if now.len() > calls.len() {
                (calls, last) = (now, Instant::now());
            }
            std::thread::sleep(LOOK);
        }
        Ok(Cost {
            by: self.by,
            seconds: last.duration_since(*at).as_secs_f32(),
            octavia: calls.len(),
            octavia_writes: calls.iter().filter(|call| call.is_write()).count(),
            octavia_polls: calls.iter().filter(|call| call.is_poll()).count(),
            neutron: self.calls(neutron)?.len(),
            kubernetes_writes: self.audit.writes()?.len() - kubernetes_writes,
            load: load()?,
            ..Cost::default()
        })
    }

    fn calls(&self, log: &AccessLog) -> Result<Vec<Request>> {
        Ok(log.so_far()?.into_iter().filter(|request| request.sender == self.by).collect())
    }
}

/// The load of the machine during the last minute.
fn load() -> Result<f32> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Asked with the user's own credentials, so that it is not among the calls of the controller. A busy machine may need longer for a
/// change than the controller is quiet between two questions about it.
fn is_octavia_at_work(stage: &Stage) -> Result<bool> {
    let is_pending =
        |one: &Value| one["provisioning_status"].as_str().is_some_and(|status| status.starts_with("PENDING"));
    Ok(stage.cloud.user.load_balancers()?.iter().any(is_pending))
}

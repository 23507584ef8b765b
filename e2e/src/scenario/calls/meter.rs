//! Counts the calls of the controller.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cost::Cost;
use crate::kubernetes::audit::Audit;
use crate::openstack::access::{AccessLog, Request};
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
    /// What members were sent is read half a minute after the last change of nodes.
    Verified,
}

impl Rest {
    fn time(self) -> Duration {
        match self {
            Self::Calm => Duration::from_secs(8),
            Self::Verified => Duration::from_secs(40),
        }
    }
}

/// Counts the calls of the controller for one change after another.
pub(super) struct Meter {
    audit: Audit,
}

impl Meter {
    /// With the log of the API server.
    pub(super) fn new(audit: Audit) -> Self {
        Self { audit }
    }

    /// Makes a change and counts what the controller does until it rests. The change is made when `make` has returned and the
    /// controller has done the last thing for it.
    ///
    /// # Errors
    /// The change cannot be made, a log cannot be read, or the controller does not rest.
    pub(super) fn measure(
        &self,
        stage: &mut Stage,
        target: &str,
        rest: Rest,
        make: impl FnOnce(&mut Stage) -> Result<()>,
    ) -> Result<Cost> {
        let folders = &stage.cloud.folders;
        let (octavia, neutron) =
            (AccessLog::from_now(folders, "octavia")?, AccessLog::from_now(folders, "neutron")?);
        let written_before = self.audit.writes()?.len();
        let began = Instant::now();
        make(stage)?;
        let mut last = Instant::now();
        let mut calls = Vec::new();
        while last.elapsed() < rest.time() || is_octavia_at_work(stage)? {
            ensure!(began.elapsed() < PATIENCE, "the controller does not rest: {calls:?}");
            let now = of_controller(&octavia)?;
            if now.len() > calls.len() {
                (calls, last) = (now, Instant::now());
            }
            std::thread::sleep(LOOK);
        }
        Ok(Cost {
            seconds: last.duration_since(began).as_secs_f32(),
            octavia: calls.len(),
            octavia_writes: calls.iter().filter(|call| call.is_write()).count(),
            neutron: of_controller(&neutron)?.len(),
            kubernetes_writes: self.audit.writes()?.len() - written_before,
            target: target.to_owned(),
        })
    }
}

/// Asked with the user's own credentials, so that it is not among the calls of the controller. A busy machine may need longer for a
/// change than the controller is quiet between two questions about it.
fn is_octavia_at_work(stage: &Stage) -> Result<bool> {
    let is_pending =
        |one: &Value| one["provisioning_status"].as_str().is_some_and(|status| status.starts_with("PENDING"));
    Ok(stage.cloud.user.load_balancers()?.iter().any(is_pending))
}

fn of_controller(log: &AccessLog) -> Result<Vec<Request>> {
    Ok(log.so_far()?.into_iter().filter(|request| request.of_controller).collect())
}

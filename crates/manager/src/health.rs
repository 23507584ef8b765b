//! What the health endpoints know: named checks, each with the reason why it does not pass.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use openstack_ccm_core::lock::lock;

/// The checks of this process, shared between its parts and the endpoints.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
}

struct Check {
    probe: Probe,
    problem: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

/// Which endpoint a check counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `/livez` and `/healthz`: the process is broken and should be restarted.
    Liveness,
    /// `/readyz`: the process cannot do its work yet, and says why.
    Readiness,
}

impl Health {
    /// Sets a check: passing without a problem, failing with one.
    pub fn set(&self, name: &'static str, probe: Probe, problem: Option<String>) {
        self.ask(name, probe, move || problem.clone());
    }

    /// Adds a check that is evaluated at each request: passing without a problem, failing with one.
    pub fn ask(
        &self,
        name: &'static str,
        probe: Probe,
        problem: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) {
        lock(&self.checks).insert(name, Check { probe, problem: Box::new(problem) });
    }

    /// Returns the result for an endpoint: whether all its checks pass, and a line for each.
    ///
    /// Readiness includes liveness. Names in `exclude` are left out.
    pub fn report(&self, endpoint: Probe, exclude: &[String]) -> (bool, String) {
        let checks = lock(&self.checks);
        let (mut passes, mut lines) = (true, String::new());
        for (name, check) in checks.iter().filter(|(_, check)| check.counts_for(endpoint)) {
            if exclude.iter().any(|excluded| excluded == name) {
                continue;
            }
            match (check.problem)() {
                None => lines.push_str(&format!("[+]{name} ok\n")),
                Some(problem) => {
                    passes = false;
                    lines.push_str(&format!("[-]{name} failed: {problem}\n"));
                }
            }
        }
        (passes, lines)
    }

    /// Returns the problem of one check of an endpoint, if it has one; the outer `None`: no such check.
    pub fn check(&self, endpoint: Probe, name: &str) -> Option<Option<String>> {
        let checks = lock(&self.checks);
        let check = checks.get(name).filter(|check| check.counts_for(endpoint))?;
        Some((check.problem)())
    }
}

impl Check {
    fn counts_for(&self, endpoint: Probe) -> bool {
        endpoint == Probe::Readiness || self.probe == Probe::Liveness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_cloud_makes_unready_but_not_dead() {
        let health = Health::default();
        health.set("openstack", Probe::Readiness, Some("Keystone does not answer".into()));
        health.set("leaderElection", Probe::Liveness, None);
        assert!(health.report(Probe::Liveness, &[]).0);
        let (ready, lines) = health.report(Probe::Readiness, &[]);
        assert!(!ready);
        assert!(lines.contains("[-]openstack failed: Keystone does not answer"));
        assert!(health.report(Probe::Readiness, &["openstack".into()]).0);
        health.set("openstack", Probe::Readiness, None);
        assert!(health.report(Probe::Readiness, &[]).0);
    }

    #[test]
    fn a_single_check_can_be_asked() {
        let health = Health::default();
        health.ask("leaderElection", Probe::Liveness, || Some("stuck".to_owned()));
        health.set("openstack", Probe::Readiness, None);
        assert_eq!(health.check(Probe::Liveness, "leaderElection"), Some(Some("stuck".to_owned())));
        assert_eq!(health.check(Probe::Liveness, "openstack"), None);
        assert_eq!(health.check(Probe::Readiness, "openstack"), Some(None));
    }
}

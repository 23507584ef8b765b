//! What the health endpoints know: named checks, each with the reason why it does not pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The checks of this process, shared between those who know and the endpoints.
#[derive(Clone, Debug, Default)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
}

#[derive(Clone, Debug)]
struct Check {
    kind: Kind,
    problem: Option<String>,
}

/// Which endpoint a check counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/livez` and `/healthz`: the process is broken and should be restarted.
    Liveness,
    /// `/readyz`: the process cannot do its work yet, and says why.
    Readiness,
}

impl Health {
    /// Sets a check: passing without a problem, failing with one.
    pub fn set(&self, name: &'static str, kind: Kind, problem: Option<String>) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Check { kind, problem });
    }

    /// The result for an endpoint: whether all its checks pass, and a line for each.
    ///
    /// Readiness includes liveness. Names in `exclude` are left out.
    pub fn report(&self, endpoint: Kind, exclude: &[String]) -> (bool, String) {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let relevant = checks
            .iter()
            .filter(|(name, check)| {
                (endpoint == Kind::Readiness || check.kind == Kind::Liveness)
                    && !exclude.iter().any(|excluded| excluded == *name)
            })
            .map(|(name, check)| (*name, check.problem.clone()));
        let mut passes = true;
        let mut lines = String::new();
        for (name, problem) in relevant {
            match problem {
                None => lines.push_str(&format!("[+]{name} ok\n")),
                Some(problem) => {
                    passes = false;
                    lines.push_str(&format!("[-]{name} failed: {problem}\n"));
                }
            }
        }
        (passes, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_cloud_makes_unready_but_not_dead() {
        let health = Health::default();
        health.set("openstack", Kind::Readiness, Some("Keystone does not answer".into()));
        health.set("leaderElection", Kind::Liveness, None);
        assert!(health.report(Kind::Liveness, &[]).0);
        let (ready, lines) = health.report(Kind::Readiness, &[]);
        assert!(!ready);
        assert!(lines.contains("[-]openstack failed: Keystone does not answer"));
        assert!(health.report(Kind::Readiness, &["openstack".into()]).0);
        health.set("openstack", Kind::Readiness, None);
        assert!(health.report(Kind::Readiness, &[]).0);
    }
}

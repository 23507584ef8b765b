//! Replaces one load balancer at a time (`error-recovery = replace`), and none while creations fail: a deleted load balancer would
//! not come back.
//!
//! A failed creation blocks its namespace, since a wrong wish may be its cause; failed creations in two namespaces block all.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::limits::LOST_WORK_TIMEOUT;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

/// After a start it is unknown whether the previous process was replacing a load balancer and whether its creation failed. After
/// this delay each Service has been looked at.
const STARTUP_DELAY: Duration = Duration::from_secs(300);

/// The state of replacements and creations.
#[derive(Debug)]
pub(crate) struct Replacements {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Whether to skip the startup delay.
    counts_as_settled: bool,
    /// The Service whose load balancer is being replaced, and since when.
    under_way: Option<(ServiceKey, Instant)>,
    /// The Services whose load balancer is being created.
    creating: HashSet<ServiceKey>,
    /// A Service of each namespace in which a creation has failed since the last one that succeeded.
    failed: HashMap<Arc<str>, ServiceKey>,
}

impl State {
    fn creation_failed(&mut self, service: &ServiceKey) {
        self.creating.remove(service);
        self.failed.insert(Arc::clone(&service.namespace), service.clone());
    }

    /// Returns the Service whose failed creation blocks the replacement of this one.
    fn failure_before(&self, service: &ServiceKey) -> Option<&ServiceKey> {
        let own = self.failed.get(&service.namespace);
        own.or_else(|| self.failed.values().min().filter(|_| self.failed.len() > 1))
    }

    /// # Errors
    /// Why the Service has to wait.
    fn begin(&mut self, service: &ServiceKey, has_begun_now: bool) -> Result<(), String> {
        let now = Instant::now();
        if has_begun_now && !self.counts_as_settled {
            let minutes = STARTUP_DELAY.as_secs() / 60;
            return Err(format!(
                "no load balancer is replaced in the first {minutes} minutes after this controller starts"
            ));
        }
        if let Some((other, since)) = self.under_way.clone().filter(|(other, _)| other != service) {
            if now.saturating_duration_since(since) < LOST_WORK_TIMEOUT {
                return Err(format!("the load balancer of Service {other} is being replaced"));
            }
            self.creation_failed(&other);
            self.under_way = None;
        }
        if let Some(other) = self.failure_before(service) {
            return Err(format!("the most recent creation of a load balancer, for Service {other}, failed"));
        }
        self.under_way.get_or_insert_with(|| (service.clone(), now));
        Ok(())
    }

    fn forget_failure(&mut self, service: &ServiceKey) {
        if self.failed.get(&service.namespace) == Some(service) {
            self.failed.remove(&service.namespace);
        }
    }

    fn end(&mut self, service: &ServiceKey) {
        self.under_way.take_if(|(under_way, _)| under_way == service);
    }
}

impl Replacements {
    /// Begins the startup delay.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), state: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut lock(&self.state))
    }

    /// Skips the startup delay: a plan command looks further ahead than that.
    pub(crate) fn skip_startup_delay(&self) {
        self.with(|state| state.counts_as_settled = true);
    }

    /// Returns why the Service's load balancer cannot be replaced now, if it cannot.
    pub(crate) fn obstacle(&self, service: &ServiceKey) -> Option<String> {
        let has_begun_now = self.has_begun_now();
        self.with(|state| state.clone().begin(service, has_begun_now).err())
    }

    /// Begins the replacement of the Service's load balancer, and blocks others until it ends. Returns whether it may begin.
    pub(crate) fn begin(&self, service: &ServiceKey) -> bool {
        let has_begun_now = self.has_begun_now();
        self.with(|state| state.begin(service, has_begun_now).is_ok())
    }

    fn has_begun_now(&self) -> bool {
        self.started.elapsed() < STARTUP_DELAY
    }

    /// Ends a replacement that is not carried out after all.
    pub(crate) fn give_back(&self, service: &ServiceKey) {
        self.with(|state| state.end(service));
    }

    /// Notes that Octavia is creating a load balancer for the Service.
    pub(crate) fn creating(&self, service: &ServiceKey) {
        self.with(|state| state.creating.insert(service.clone()));
    }

    /// Notes that the creation of the Service's load balancer failed.
    pub(crate) fn creation_failed(&self, service: &ServiceKey) {
        self.with(|state| state.creation_failed(service));
    }

    /// Notes that the Service's load balancer is ACTIVE.
    pub(crate) fn is_active(&self, service: &ServiceKey) {
        self.with(|state| {
            if state.creating.remove(service) {
                state.failed.clear();
            }
            state.forget_failure(service);
            state.end(service);
        });
    }

    /// Removes a Service that no longer has a load balancer.
    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.with(|state| {
            state.creating.remove(service);
            state.forget_failure(service);
            state.end(service);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceKey {
        ServiceKey::new("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_replaced_at_a_time_and_none_while_creations_fail() {
        let replacements = Replacements::new();
        let (first, second, third) = (service("first"), service("second"), service("third"));
        let refusal = |service: &ServiceKey| {
            assert!(!replacements.begin(service));
            replacements.obstacle(service).expect("it has to wait")
        };
        assert!(refusal(&first).contains("first 5 minutes"));
        tokio::time::advance(STARTUP_DELAY).await;

        assert!(replacements.begin(&first), "nobody else");
        assert!(replacements.begin(&first), "its own turn goes on");
        assert!(refusal(&second).contains("default/first is being replaced"));
        replacements.give_back(&second);
        assert!(refusal(&second).contains("default/first is being replaced"));

        replacements.creating(&first);
        replacements.creation_failed(&first);
        replacements.give_back(&first);
        assert!(refusal(&second).contains("creation of a load balancer, for Service default/first, failed"));
        replacements.is_active(&second);
        assert!(refusal(&second).contains("failed"), "it was not created");
        replacements.creating(&third);
        replacements.is_active(&third);
        assert!(replacements.begin(&second), "load balancers can be created again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_goes_holds_nobody_up() {
        let replacements = Replacements::new();
        tokio::time::advance(STARTUP_DELAY).await;
        assert!(replacements.begin(&service("first")), "nobody else");
        replacements.creation_failed(&service("first"));
        replacements.forget(&service("first"));
        assert!(replacements.begin(&service("second")), "its turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_creation_that_always_fails_holds_up_its_own_namespace_and_two_hold_up_all() {
        let replacements = Replacements::new();
        tokio::time::advance(STARTUP_DELAY).await;
        let of = |namespace: &str| ServiceKey::new(namespace, "web");
        replacements.creation_failed(&of("a"));
        assert!(!replacements.begin(&ServiceKey::new("a", "other")));
        assert!(replacements.begin(&of("b")), "another namespace");
        replacements.is_active(&of("b"));
        replacements.creation_failed(&of("c"));
        assert!(!replacements.begin(&of("b")), "nothing can be built");
        replacements.creating(&of("d"));
        replacements.is_active(&of("d"));
        assert!(replacements.begin(&of("b")), "load balancers can be created again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_replacement_that_never_ends_holds_up_other_namespaces_for_ten_minutes() {
        let replacements = Replacements::new();
        tokio::time::advance(STARTUP_DELAY).await;
        assert!(replacements.begin(&ServiceKey::new("a", "stuck")), "nobody else");
        let other = ServiceKey::new("b", "web");
        assert!(!replacements.begin(&other));
        tokio::time::advance(LOST_WORK_TIMEOUT).await;
        assert!(!replacements.begin(&ServiceKey::new("a", "web")));
        assert!(replacements.begin(&other), "its turn");
    }
}

//! One load balancer at a time is replaced (`error-recovery = replace`), and none while new ones cannot be built: what
//! was deleted then would not come back.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

/// After a start nobody knows whether the process before was replacing one, and whether its creation failed. By then each
/// Service has been looked at.
const AFTER_START: Duration = Duration::from_secs(300);

/// What is known of replacements and creations.
#[derive(Debug)]
pub(crate) struct Replacements {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether it counts as known what the process before did.
    counts_as_settled: bool,
    /// The Service whose load balancer is being replaced.
    under_way: Option<ServiceKey>,
    /// The Services whose load balancer is being created.
    creating: HashSet<ServiceKey>,
    /// The Service of the last creation that ended, if it failed.
    failed: Option<ServiceKey>,
}

impl Replacements {
    /// Begins now.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), state: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who plans looks further ahead than the first minutes of a program.
    pub(crate) fn count_as_settled(&self) {
        self.with(|state| state.counts_as_settled = true);
    }

    /// Lets the Service's load balancer be replaced, and no other one until that is over.
    ///
    /// # Errors
    /// Why it has to wait.
    pub(crate) fn begin(&self, service: &ServiceKey) -> Result<(), String> {
        let has_begun_now = self.started.elapsed() < AFTER_START;
        self.with(|state| match (&state.under_way, &state.failed) {
            _ if has_begun_now && !state.counts_as_settled => {
                let minutes = AFTER_START.as_secs() / 60;
                Err(format!("none is replaced in the first {minutes} minutes of this program"))
            }
            (Some(other), _) if other != service => {
                Err(format!("the load balancer of Service {other} is being replaced"))
            }
            (_, Some(other)) => {
                Err(format!("the last creation of a load balancer failed, that of Service {other}"))
            }
            (Some(_) | None, None) => {
                state.under_way = Some(service.clone());
                Ok(())
            }
        })
    }

    /// Nothing is replaced after all.
    pub(crate) fn give_back(&self, service: &ServiceKey) {
        self.with(|state| state.under_way.take_if(|under_way| under_way == service));
    }

    /// Octavia builds a load balancer for the Service.
    pub(crate) fn creating(&self, service: &ServiceKey) {
        self.with(|state| state.creating.insert(service.clone()));
    }

    /// The creation of the Service's load balancer failed.
    pub(crate) fn creation_failed(&self, service: &ServiceKey) {
        self.with(|state| {
            state.creating.remove(service);
            state.failed = Some(service.clone());
        });
    }

    /// The Service's load balancer is ACTIVE.
    pub(crate) fn is_active(&self, service: &ServiceKey) {
        self.with(|state| {
            let created = state.creating.remove(service);
            state.failed.take_if(|failed| created || failed == service);
            state.under_way.take_if(|under_way| under_way == service);
        });
    }

    /// The Service has none any more.
    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.with(|state| {
            state.creating.remove(service);
            state.failed.take_if(|failed| failed == service);
            state.under_way.take_if(|under_way| under_way == service);
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
        let refusal = |service: &ServiceKey| replacements.begin(service).expect_err("it has to wait");
        assert!(refusal(&first).contains("first 5 minutes"));
        tokio::time::advance(AFTER_START).await;

        replacements.begin(&first).expect("nobody else");
        replacements.begin(&first).expect("its own turn goes on");
        assert!(refusal(&second).contains("default/first is being replaced"));
        replacements.give_back(&second);
        assert!(refusal(&second).contains("default/first is being replaced"));

        replacements.creating(&first);
        replacements.creation_failed(&first);
        replacements.give_back(&first);
        assert!(
            refusal(&second)
                .contains("last creation of a load balancer failed, that of Service default/first")
        );
        replacements.is_active(&second);
        assert!(refusal(&second).contains("failed"), "it was not created");
        replacements.creating(&third);
        replacements.is_active(&third);
        replacements.begin(&second).expect("load balancers can be created again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_goes_holds_nobody_up() {
        let replacements = Replacements::new();
        tokio::time::advance(AFTER_START).await;
        replacements.begin(&service("first")).expect("nobody else");
        replacements.creation_failed(&service("first"));
        replacements.forget(&service("first"));
        replacements.begin(&service("second")).expect("its turn");
    }
}

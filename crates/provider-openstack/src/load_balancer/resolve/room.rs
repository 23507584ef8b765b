//! Checks that the project's quota allows another listener.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use openstack_ccm_openstack_api::octavia::ChildFilter;
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::Resolver;
use crate::load_balancer::failure::Answered as _;

impl Resolver {
    /// Checks that the quota allows one more listener, before a serving listener is replaced: if it is exhausted, another client
    /// may take the freed place, and then neither the new nor the old listener can be created. A cloud that shows no quota passes.
    ///
    /// # Errors
    /// The quota is exhausted, or the query failed.
    pub(crate) async fn room_for_listener(&self, project_id: Option<&str>) -> Result<(), Failure> {
        let octavia = &self.openstack.octavia;
        let Some(project_id) = project_id.filter(|id| self.unlimited.get(*id).is_none()) else {
            return Ok(());
        };
        let asked = Moment::now();
        let quota = match octavia.quota(project_id).await {
            Err(error) if self.openstack.client.lacks(OptionalPart::Quotas) || is_not_shown(&error) => {
                return Ok(());
            }
            answer => answer.while_doing("reading the quota before a listener is replaced")?,
        };
        let Some(most) = quota.listener.and_then(|most| usize::try_from(most).ok()) else {
            self.unlimited.insert(project_id.to_owned(), asked, ());
            return Ok(());
        };
        let of_project = ChildFilter { project_id: Some(project_id.to_owned()), ..ChildFilter::default() };
        let listeners = octavia.list_listeners(&of_project).await;
        let used = listeners.while_doing("counting listeners before a listener is replaced")?.len();
        if used < most {
            return Ok(());
        }
        let message = format!(
            "the protocol of a listener is not changed: the listener would have to be deleted first, and because the project's quota \
             of listeners is used up ({used} of {most}), creating its replacement might fail; have an administrator raise the quota \
             by one, or delete a listener that is no longer needed"
        );
        Err(Failure::new(FailureClass::Quota, message))
    }
}

fn is_not_shown(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::Policy | ErrorKind::NotFound | ErrorKind::BadRequest)
}

//! What a namespace may use: the load balancers of others.

use openstack_ccm_core::failure::Failure;

use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::model::observed::Ownership;
use crate::load_balancer::observe::Found;
use crate::load_balancer::settings::Settings;

/// Checks whether a Service may use a load balancer. One that was made for it it may, whatever the list says; one that
/// only the Service's annotation calls its own is adopted, and the list holds for that as for sharing.
///
/// # Errors
/// The namespace's allow-list does not name it.
pub(crate) fn may_use(settings: &Settings, found: &Found) -> Result<(), Failure> {
    let Some(allowed) = &settings.allowed_load_balancers else { return Ok(()) };
    let id = &found.load_balancer.id;
    if (found.ownership != Ownership::Guest && !found.adopted) || allowed.contains(id) {
        return Ok(());
    }
    Err(Failure::user_input(format!(
        "annotation {}: {id:?} is not allowed in this namespace; ask the operator to add it to allowed-load-balancers in \
         cloud.conf",
        LOAD_BALANCER_ID.key
    )))
}

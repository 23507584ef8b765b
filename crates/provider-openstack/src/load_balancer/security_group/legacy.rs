//! Groups from the time when security groups were managed, for where they are not managed any more.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::Neutron;
use tokio::sync::OnceCell;

use crate::load_balancer::failure::present;
use crate::load_balancer::names::is_generated_security_group;

/// Names of all generated security groups that were there when the process first asked. Nobody makes new ones.
#[derive(Debug, Default)]
pub(super) struct LegacyGroups {
    names: OnceCell<Mutex<HashSet<String>>>,
}

impl LegacyGroups {
    /// Whether there was a group of this name; asks once for all names.
    pub(super) async fn may_be_there(&self, neutron: &Neutron, name: &str) -> Result<bool, ApiError> {
        let names = self.names.get_or_try_init(|| async {
            let names = present(neutron.list_security_group_names().await)?;
            let generated = names.into_iter().flatten().filter(|name| is_generated_security_group(name));
            Ok::<_, ApiError>(Mutex::new(generated.collect()))
        });
        Ok(names.await?.lock().unwrap_or_else(PoisonError::into_inner).contains(name))
    }

    /// Notes that a group is gone.
    pub(super) fn forget(&self, name: &str) {
        if let Some(names) = self.names.get() {
            names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }
}

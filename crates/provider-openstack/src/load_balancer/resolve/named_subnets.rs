//! Subnets that somebody names by their ids.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::neutron::{Subnet, SubnetFilter};

use super::Resolver;
use crate::load_balancer::failure::{self, Answered as _};

/// So many subnets are named in one question: their ids make up a query of 2 KB.
const AT_ONCE: usize = 40;

impl Resolver {
    /// A subnet that is named by the user as `key`.
    pub(super) async fn subnet(&self, id: &str, key: &str) -> Result<Subnet, Failure> {
        let found = self.subnets(&BTreeSet::from([id]), key).await?;
        found.into_iter().next().ok_or_else(|| failure::not_there("subnet", id, key))
    }

    /// Subnets that are named as `key`. Those that are not known are asked for in one list.
    pub(super) async fn subnets(&self, ids: &BTreeSet<&str>, key: &str) -> Result<Vec<Subnet>, Failure> {
        let known = ids.iter().filter_map(|id| Some((*id, self.subnets.get(id)?)));
        let mut found: BTreeMap<&str, Subnet> = known.collect();
        let unknown: Vec<&str> = ids.iter().copied().filter(|id| !found.contains_key(id)).collect();
        for some in unknown.chunks(AT_ONCE) {
            let mut listed = self.list_subnets(some, key).await?;
            for id in some {
                let place = listed.iter().position(|subnet| subnet.id == *id);
                let place = place.ok_or_else(|| failure::not_there("subnet", id, key))?;
                let subnet = listed.swap_remove(place);
                self.subnets.put(id, subnet.clone());
                found.insert(id, subnet);
            }
        }
        Ok(found.into_values().collect())
    }

    async fn list_subnets(&self, ids: &[&str], key: &str) -> Result<Vec<Subnet>, Failure> {
        let named = ids.join(" ");
        let filter = SubnetFilter::ids(ids.iter().copied());
        let listed = self.listed_subnets.get_or_ask(&named, self.openstack.neutron.list_subnets(&filter));
        listed.await.as_asked(format_args!("looking up subnet {named} of {key}"))
    }
}

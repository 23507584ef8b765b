//! Decides whether a Service may use a load balancer that was found.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use super::{Claim, FoundBy, SharingRules, Verdict};
use crate::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID};
use crate::load_balancer::names::{self, GeneratedName};
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership, Reclaim};

impl Claim<'_> {
    /// Judges a load balancer that was found for this Service.
    pub(crate) fn judge(&self, found: &LoadBalancer, by: FoundBy, sharing: SharingRules) -> Verdict {
        self.on(self.previous_name_on(found), &found.tags).judge_known(found, by, sharing)
    }

    fn judge_known(&self, found: &LoadBalancer, by: FoundBy, sharing: SharingRules) -> Verdict {
        if self.elsewhere {
            let shares = by == FoundBy::Annotation && self.shares_foreign && !self.is_mistakable(found);
            return if shares { self.judge_guest(found, sharing) } else { foreign_cluster(self, found, by) };
        }
        let owned = match by {
            FoundBy::Annotation => self.is_named_for_service(found),
            FoundBy::LegacyName => true,
            FoundBy::Name | FoundBy::CutName => self.is_tagged(found) || self.is_described(found),
        };
        match by {
            _ if owned => Verdict::Usable(self.sharing(&found.tags)),
            FoundBy::Annotation if self.is_copied(found) => self.copied(found),
            FoundBy::Annotation => self.judge_guest(found, sharing),
            FoundBy::CutName => Verdict::Unrelated,
            FoundBy::Name | FoundBy::LegacyName => not_described(self, found),
        }
    }

    /// Returns whether a load balancer of another cluster already has a user with this Service's name, so that the two could not be
    /// told apart.
    fn is_mistakable(&self, found: &LoadBalancer) -> bool {
        let present = self.names.load_balancer();
        !self.is_tagged(found) && (found.name == present || found.tags.contains(present))
    }

    /// Returns whether the annotation `load-balancer-id` was copied with the Service from another cluster: a controller wrote it
    /// there, and nothing on the load balancer names this Service.
    fn is_copied(&self, found: &LoadBalancer) -> bool {
        let tags = &found.tags;
        let is_user =
            self.has_service_uid(tags) || names::user_names(tags).any(|name| self.is_own_name(name, tags));
        let elsewhere = |name: &str| names::is_generated_elsewhere(name, &self.scope.cluster.name);
        let mut users = names::user_names(tags).peekable();
        let used_elsewhere = users.peek().is_some() && users.all(elsewhere);
        self.was_served && !is_user && (elsewhere(&found.name) || used_elsewhere)
    }

    /// Judges for a Service that is deleted: nothing is refused, because nothing is taken over. On a load balancer of another owner
    /// the Service may still have listeners, as their tags show.
    ///
    /// A retained load balancer counts as this Service's only if it stays unchanged: it is deleted only with a Service that has
    /// taken it over.
    pub(crate) fn judge_for_release(
        &self,
        found: &LoadBalancer,
        by: FoundBy,
        reclaim: Reclaim,
    ) -> Option<Ownership> {
        let unlimited = SharingRules { tags: true, most_users: u32::MAX };
        let retained = names::is_retained(&found.description);
        let as_a_whole = !retained || reclaim == Reclaim::Retain;
        // A Service that never used the load balancer cannot delete it.
        if by == FoundBy::Annotation && self.is_adoption(found) {
            return Some(Ownership::Guest);
        }
        match self.judge(found, by, unlimited) {
            Verdict::Usable(Ownership::Guest) if as_a_whole && self.is_last_user(found) => {
                Some(Ownership::Sole)
            }
            Verdict::Usable(Ownership::Guest) => Some(Ownership::Guest),
            Verdict::Usable(Ownership::Sole) => as_a_whole.then_some(Ownership::Sole),
            Verdict::Usable(Ownership::Shared) => (!retained).then_some(Ownership::Shared),
            // A Service refused as a guest by another cluster's load balancer has nothing there, although a tag may equal its own.
            Verdict::Refused(_) if self.is_tagged(found) => Some(Ownership::Guest),
            Verdict::Refused(_) if by == FoundBy::Annotation && !self.is_foreign(&found.tags) => {
                Some(Ownership::Guest)
            }
            Verdict::Refused(_) | Verdict::Unrelated => None,
        }
    }

    /// Returns whether the load balancer was made for another, deleted Service of this cluster, and this Service is its last user:
    /// then it is deleted with this Service.
    fn is_last_user(&self, found: &LoadBalancer) -> bool {
        let made_here = GeneratedName::parse(&found.name)
            .is_some_and(|made_for| made_for.cluster == self.scope.cluster.name);
        let mut users = names::user_names(&found.tags).peekable();
        made_here && users.peek().is_some() && users.all(|name| self.is_own_name(name, &found.tags))
    }

    /// Refuses an id that was written under another name of the cluster, or in another cluster. If the load balancer is named for
    /// this very Service, the former is more likely, and a new address the worst advice.
    fn copied(&self, found: &LoadBalancer) -> Verdict {
        let keys = format!(
            "{}, {} and {}",
            LOAD_BALANCER_ID.key, LOAD_BALANCER_ADDRESS.key, OWNED_LOAD_BALANCER_ID.key
        );
        let present = &self.scope.cluster.name;
        let why = match self.cluster_named_on(found) {
            Some(other) => format!(
                "is named for this Service in a cluster called {other:?}, but openstack-ccm runs with --cluster-name={present}. If {other:?} is \
                 the right name, start openstack-ccm with --cluster-name={other:?}; if the cluster was renamed, add {other:?} to \
                 former-cluster-names in cloud.conf; if the Service was copied from another cluster, remove {keys} from \
                 the Service: it then gets its own load balancer and address"
            ),
            None => format!(
                "is named for neither this Service nor the cluster {present}. If this cluster had another name before, add that name \
                 to former-cluster-names in cloud.conf; if the Service was copied from another cluster, remove {keys} from the \
                 Service: it then gets its own load balancer and address"
            ),
        };
        refused(self, found, &why)
    }

    fn judge_guest(&self, found: &LoadBalancer, sharing: SharingRules) -> Verdict {
        let tags = &found.tags;
        let users = names::user_names(tags).count();
        let is_user = names::user_names(tags).any(|name| self.is_own_name(name, tags));
        // Who has a tag there stays, whatever is known of the cloud.
        if !is_user && !sharing.tags {
            return Verdict::Refused(self.sharing_needs_tags(&found.name, &found.id));
        }
        let most = usize::try_from(sharing.most_users).unwrap_or(usize::MAX);
        if !is_user && users >= most {
            let why = format!(
                "is already used by {users} Services, which is the limit: raise max-shared-lb in cloud.conf, or choose another load \
                 balancer"
            );
            return refused(self, found, &why);
        }
        Verdict::Usable(Ownership::Guest)
    }

    /// Refuses a load balancer that was judged before the cloud refused the tag that announces the Service on it.
    ///
    /// # Errors
    /// Nothing there would tell the owner of the load balancer, or anybody else, whose the Service's listeners are.
    pub(crate) fn shares_without_tags(&self, there: &ObservedLoadBalancer) -> Result<(), Failure> {
        match names::user_names(&there.tags).any(|name| self.is_own_name(name, &there.tags)) {
            true => Ok(()),
            false => Err(self.sharing_needs_tags(&there.name, &there.id)),
        }
    }

    fn sharing_needs_tags(&self, name: &str, id: &str) -> Failure {
        let shown = names::shown("load balancer", name, id, Some(&self.key.namespace));
        Failure::user_input(format!(
            "{shown} was not created for this Service, and sharing a load balancer requires tags (Octavia API 2.5): remove \
             loadbalancer.openstack.org/load-balancer-id"
        ))
    }
}

fn refused(claim: &Claim<'_>, found: &LoadBalancer, why: &str) -> Verdict {
    let shown = names::shown("load balancer", &found.name, &found.id, Some(&claim.key.namespace));
    Verdict::Refused(Failure::user_input(format!("{shown} {why}")))
}

/// Refuses a load balancer with the identity of another cluster.
fn foreign_cluster(claim: &Claim<'_>, found: &LoadBalancer, by: FoundBy) -> Verdict {
    let uids = names::cluster_uids(&found.tags).collect::<Vec<_>>().join(", ");
    let remedy = if by == FoundBy::Annotation {
        format!("remove {} from the Service", LOAD_BALANCER_ID.key)
    } else {
        "give the clusters different names with --cluster-name".to_owned()
    };
    let why = format!(
        "belongs to another cluster (kube-system namespace {uids}): {remedy}; if that cluster no longer exists, the operator can set \
         adopt-foreign-cluster in cloud.conf to take over its load balancers"
    );
    refused(claim, found, &why)
}

/// Refuses a load balancer that has only the name of the Service's.
fn not_described(claim: &Claim<'_>, found: &LoadBalancer) -> Verdict {
    let why = format!(
        "has this Service's name, but not the Service's tags or description: set {} to {} to adopt the load balancer, or rename the load \
         balancer",
        LOAD_BALANCER_ID.key, found.id
    );
    refused(claim, found, &why)
}

//! Load balancers that a Service has besides the one that serves it: it used them before its annotation `load-balancer-id` was
//! edited, or its creation was begun more than once, because a creation request outlived the process that sent it.

use std::collections::BTreeSet;
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Ready;
use openstack_ccm_openstack_api::error::ErrorKind;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use super::Serving;
use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::identity::outputs;
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::read::floating_ip::{self, FloatingIpQuery};
use crate::load_balancer::read::{Found, find};
use crate::load_balancer::report::Report;
use crate::load_balancer::resolve::counts_connections;
use crate::load_balancer::settings::Aspect;
use crate::load_balancer::state::locks::LoadBalancerLocks;

impl Serving<'_> {
    /// Deletes what the Service left on other load balancers, now that the present one serves it. A load balancer that was made for
    /// it and has no other user is deleted; its floating IP stays in the project until the Service is deleted, in case the Service
    /// returns. A failure is part of the result.
    pub(super) async fn leave_previous(&self, mut ready: Ready, report: &mut Report) -> Ready {
        let Some((current, ownership)) = self.record().load_balancer.clone() else {
            return ready;
        };
        let named = self.settings.load_balancer_id.as_deref();
        if self.settings.is_unreadable(Aspect::LoadBalancer) || named.is_some_and(|named| named != current) {
            // It is unknown whether the Service has moved.
            return ready;
        }
        if !outputs::may_have_moved(self.service) && !self.is_new() {
            report.ownership(self.service, &current, ownership);
            return ready;
        }
        match Box::pin(self.try_leave_previous(&current, ownership, report)).await {
            Ok(None) => {
                report.ownership(self.service, &current, ownership);
                self.record().duplicates_looked_for = true;
            }
            Ok(Some(at_most)) => {
                // The poller wakes the Service when Octavia is done, if it can see that.
                ready.changed = true;
                ready.requeue_after = ready.requeue_after.into_iter().chain([at_most]).min();
            }
            Err(failure) => {
                ready.unfinished = ready.unfinished.or(Some(failure));
            }
        }
        ready
    }

    /// Returns whether this process has yet to look for duplicates. Without tags they cannot be recognised.
    fn is_new(&self) -> bool {
        self.features.tags && !self.record().duplicates_looked_for
    }

    /// Returns the duplicates that no client may use. A duplicate counts as used if it has a floating IP, which it gets shortly
    /// before it is published, or unless its statistics show that there were no connections. Two published ones exist if Kubernetes
    /// and the cloud both forgot the first one for a while.
    async fn without_used(
        &self,
        duplicates: Vec<Found>,
        current: &str,
        report: &mut Report,
    ) -> Result<Vec<Found>, Failure> {
        let mut unused = Vec::new();
        for found in duplicates {
            let (reader, vip) = (self.reconciler.observer.reader(self.beginning.since), found.vip_owner());
            let question = FloatingIpQuery::OnVip;
            let on_vip = floating_ip::read(reader, &self.claim, &question, vip.as_ref()).await?;
            let id = &found.load_balancer.id;
            let floating_ip = on_vip.first().map(|one| format!("its floating IP {}", one.address));
            let in_use = match floating_ip {
                None => self.connections(&found.load_balancer).await?.map(|shown| format!("it ({shown})")),
                floating_ip => floating_ip,
            };
            match in_use {
                Some(what) => report.notice(made_twice(id, &what, current)),
                None => unused.push(found),
            }
        }
        Ok(unused)
    }

    /// Returns why a load balancer might have had connections; `None` if its statistics show that there were none.
    async fn connections(&self, found: &LoadBalancer) -> Result<Option<String>, Failure> {
        let provider = found.provider.as_deref().unwrap_or("unknown");
        match self.reconciler.lists.openstack().octavia.load_balancer_stats(&found.id).await {
            Ok(stats) if stats.total_connections > 0 => {
                Ok(Some("its statistics show connections".to_owned()))
            }
            Ok(_) if counts_connections(provider) => Ok(None),
            Ok(_) => Ok(Some(format!("the provider {provider} might not count connections"))),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::Policy | ErrorKind::BadRequest => {
                    Ok(Some("Octavia does not show its statistics".to_owned()))
                }
                _ => {
                    Err(failure::of_call(&error, "reading the statistics of a load balancer", Missing::Race))
                }
            },
        }
    }

    /// Returns when to look again, or `None` if nothing is left.
    async fn try_leave_previous(
        &self,
        current: &str,
        ownership: Ownership,
        report: &mut Report,
    ) -> Result<Option<Duration>, Failure> {
        let reader = self.reconciler.observer.reader(self.beginning.since);
        let mut looks = Vec::new();
        let (mut former, mut duplicates) = (BTreeSet::new(), BTreeSet::new());
        let ids = |found: Vec<Found>| found.into_iter().map(|found| found.load_balancer.id);
        if outputs::may_have_moved(self.service) {
            former.extend(ids(find::previous(reader, &self.claim, current).await?));
        }
        // A guest has created no load balancer.
        if self.is_new() && ownership != Ownership::Guest {
            let found = find::duplicates(reader, &self.claim, current).await?;
            duplicates.extend(ids(self.without_used(found, current, report).await?));
        }
        duplicates.retain(|duplicate| !former.contains(duplicate));
        let duplicates = duplicates.iter().map(|id| (id, true));
        for (id, duplicate) in former.iter().map(|id| (id, false)).chain(duplicates) {
            let Some(_lock) = self.reconciler.locks.take(id, &self.service.key) else {
                looks.push(LoadBalancerLocks::turn());
                continue;
            };
            looks.extend(self.reconciler.leave(self.service, &self.claim, id, duplicate, report).await?);
        }
        Ok(looks.into_iter().map(|waiting| waiting.at_most).min())
    }
}

fn made_twice(id: &str, what: &str, current: &str) -> Notice {
    let message = format!(
        "load balancer {id} was also created for this Service, and clients might use {what}, so load balancer {id} is kept unchanged. The \
         Service uses load balancer {current}. To use load balancer {id} instead, set the annotation {} to {id}; if no client uses load \
         balancer {id}, delete it: openstack loadbalancer delete --cascade {id}",
        LOAD_BALANCER_ID.key
    );
    Notice::warning("LoadBalancerDuplicateKept", message)
}

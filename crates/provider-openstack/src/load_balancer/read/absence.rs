//! Handles a Service whose load balancer is not found by the id in its annotation.

use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::neutron::FloatingIpFilter;
use tokio::time::Instant;

use super::Observing;
use super::missing;
use crate::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID};
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::identity::outputs;
use crate::load_balancer::known::absence::Absence;
use crate::load_balancer::report::Report;
use crate::load_balancer::state::attempts::PreviousVips;

/// The load balancer that the annotation names is gone; it was made for the Service, so a new one is created.
const LOAD_BALANCER_GONE: &str = "LoadBalancerGone";

impl Observing<'_> {
    /// Drops the id of a load balancer that is gone, so that another one is created, unless one was found by name (`is_found`).
    ///
    /// # Errors
    /// Any failed call; the reason why no load balancer is created.
    pub(in crate::load_balancer) async fn judge_absence(
        &self,
        is_found: bool,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let Some(id) = &self.settings.load_balancer_id else {
            if is_found {
                return Ok(());
            }
            if self.had_one() {
                self.observer.missing.user_confirmed_gone(self.service);
                return Ok(());
            }
            return self.allow_first().await;
        };
        // A load balancer that this process deleted because it was broken needs no notice.
        let deleted_here = self.record.lock().attempts.previous_vips != PreviousVips::Unknown;
        if !is_found {
            let counts_for = self.record.lock().attempts.counts_as_created(id, Instant::now());
            if let Some(time) = counts_for {
                return Err(not_shown_yet(id, time));
            }
            if !deleted_here {
                self.is_gone().await?;
            }
        }
        if !deleted_here {
            let message = if self.was_restored() {
                format!(
                    "load balancer {id} does not exist, and the Service was never published in this cluster (for example, it was restored \
                     from another cluster's backup): a new load balancer is created"
                )
            } else {
                format!("load balancer {id} no longer exists: a new one is created for the Service")
            };
            report.notice(Notice::warning(LOAD_BALANCER_GONE, message));
        }
        report.forget_load_balancer(self.service);
        Ok(())
    }

    /// Returns whether the Service was served somewhere, but never published in this cluster.
    pub(in crate::load_balancer) fn was_restored(&self) -> bool {
        !self.service.is_published && outputs::is_written_by_us(self.service)
    }

    /// Returns whether the Service had a load balancer whose id the user removed from its annotations to confirm that it is gone.
    fn had_one(&self) -> bool {
        let written = [LOAD_BALANCER_ADDRESS, OWNED_LOAD_BALANCER_ID];
        !self.service.published.is_empty()
            || written.iter().any(|one| self.service.annotations.contains_key(one.key))
    }

    async fn allow_first(&self) -> Result<(), Failure> {
        if self.observer.recreate_missing {
            return Ok(());
        }
        self.observer.missing.allow_first().await
    }

    /// Makes sure that the load balancer is really gone, and not only invisible to these credentials.
    async fn is_gone(&self) -> Result<(), Failure> {
        if self.observer.recreate_missing {
            return Ok(());
        }
        let (absence, count) = self.observer.missing.absence(self.service).await?;
        // Without its address annotation, or a status, which no backup restores, the load balancer was never published here. So no
        // client uses it, and it may be given up wherever a first load balancer may be created.
        let was_ready =
            self.service.is_published && self.service.annotations.contains_key(LOAD_BALANCER_ADDRESS.key);
        let gone = match absence {
            Absence::Gone => true,
            Absence::Most => false,
            Absence::Unproven => (!was_ready && count.missing == 0) || self.has_floating_ip().await?,
        };
        if gone { Ok(()) } else { Err(missing::held(count)) }
    }

    /// Returns whether the project has a floating IP that was made for this Service, which shows that it is the right project.
    async fn has_floating_ip(&self) -> Result<bool, Failure> {
        let tags = self.claim.names.identity_tags().into_iter().collect();
        let filter = FloatingIpFilter { tags, ..FloatingIpFilter::default() };
        let own = self.observer.lists.openstack().neutron.list_floating_ips(&filter).await;
        let own = own.map_err(|error| failure::of_call(&error, "looking for floating IPs", Missing::Race))?;
        Ok(!own.is_empty())
    }
}

/// Octavia accepted a creation but does not show the load balancer. The message never varies, so that repeats fold into one Event.
fn not_shown_yet(id: &str, time: Duration) -> Failure {
    let minutes = time.as_secs() / 60;
    let message = format!(
        "Octavia accepted the creation of load balancer {id} but does not show the load balancer yet. openstack-ccm waits, and \
         creates another one {minutes} minutes after the first request. If the load balancer was deleted, remove the annotation {} \
         to have another one created now",
        LOAD_BALANCER_ID.key
    );
    Failure::new(FailureClass::Unavailable, message)
}

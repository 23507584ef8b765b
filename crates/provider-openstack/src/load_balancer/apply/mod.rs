//! Carries out a plan: one call for each step, without comparing or looking up anything.
//!
//! Octavia locks a load balancer with each change, so applying stops after the first step that locks. The next pass
//! looks again; a process that dies anywhere in here loses nothing.

mod requests;

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{CreateFloatingIp, FloatingIp, Tagged, UpdateFloatingIp};
use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tracing::info;

use super::failure::{self, Missing};
use super::model::floating_ip::SubnetChoice;
use super::model::observed::ObservedFloatingIp;
use super::step::{Step, Touched};

/// What became of a plan.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Whether anything in the cloud was changed.
    pub(super) changed: bool,
    /// What Octavia is doing now, when a step locked the load balancer or found it locked.
    pub(super) locked: Option<Locked>,
    /// Address of a floating IP that was made or attached.
    pub(super) address: Option<IpAddr>,
    /// What the user should know about steps that the cloud refused and the Service can do without.
    pub(super) notices: Vec<Notice>,
    /// What is not as it was seen, or may not be.
    pub(super) touched: Vec<Touched>,
    /// Floating IPs that were made.
    pub(super) floating_ips: Vec<ObservedFloatingIp>,
    /// Algorithms that Octavia does not take, each with the id of its pool.
    pub(super) refused_algorithms: Vec<(String, LbAlgorithm)>,
}

/// A load balancer that Octavia works on.
#[derive(Debug)]
pub(super) struct Locked {
    /// Its id, where the step made the load balancer.
    pub(super) made: Option<Made>,
    /// What is going on, for logs.
    pub(super) on: String,
}

/// A load balancer that was just made.
#[derive(Debug)]
pub(super) struct Made {
    /// Id.
    pub(super) id: String,
    /// Owner.
    pub(super) project_id: Option<String>,
}

/// How one step ended.
enum Ended {
    /// Done; Octavia is not involved.
    Done,
    /// Done; Octavia is at work.
    Locked(Option<Made>),
    /// Done; Octavia is at work on a new child with this id.
    MadeChild(String),
}

/// Applies the steps in order, up to the first that locks the load balancer.
///
/// # Errors
/// The first call that fails, with what was being done. That the load balancer is locked is no failure.
pub(super) async fn apply(openstack: &OpenStack, steps: &[Step]) -> (Applied, Result<(), Failure>) {
    let mut hand = Hand { openstack, applied: Applied::default() };
    let result = hand.apply(steps).await;
    (hand.applied, result)
}

struct Hand<'a> {
    openstack: &'a OpenStack,
    applied: Applied,
}

impl Hand<'_> {
    async fn apply(&mut self, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            // Only what an earlier step makes can be missing, and such a step locks: the next pass finds the object.
            if !step.is_applicable() {
                return Ok(());
            }
            let ended = match self.step(step).await {
                Ok(ended) => ended,
                Err(error) if self.is_dispensable(step, &error) => continue,
                Err(error) if is_locked(&error) => {
                    // By somebody else, whose change may be anything.
                    self.applied.touched.push(Touched::Everything);
                    self.applied.locked = Some(Locked { made: None, on: failure::chain(&error) });
                    return Ok(());
                }
                Err(error) => {
                    if error.kind() == ErrorKind::BadRequest {
                        // An Octavia of another version than it was may take less, or more.
                        self.openstack.octavia.doubt_api_versions().await;
                    }
                    return Err(failure::of_call(&error, doing(step), missing(step)));
                }
            };
            info!(step = doing(step), "changed the cloud");
            self.applied.changed = true;
            let (made, child) = match ended {
                Ended::Done => {
                    if !matches!(step, Step::CreateFloatingIp { .. }) {
                        self.applied.touched.push(step.touches(None));
                    }
                    continue;
                }
                Ended::Locked(made) => (made, None),
                Ended::MadeChild(id) => (None, Some(id)),
            };
            self.applied.touched.push(step.touches(child));
            self.applied.locked = Some(Locked { made, on: doing(step) });
            return Ok(());
        }
        Ok(())
    }

    /// Whether the Service can live without this step: tells the user, and goes on.
    fn is_dispensable(&mut self, step: &Step, error: &ApiError) -> bool {
        let Step::UpdatePool { id, changes } = step else { return false };
        let refused = error.kind() == ErrorKind::BadRequest;
        let (true, Some(algorithm)) = (refused, &changes.lb_algorithm) else { return false };
        let text = failure::chain(error);
        let message = format!(
            "Octavia refuses the method {algorithm}, the pool keeps the one it has: {text}; correct \
             loadbalancer.openstack.org/lb-method"
        );
        self.applied.notices.push(Notice::warning("LoadBalancerLbMethodUnknown", message));
        self.applied.refused_algorithms.push((id.clone(), algorithm.clone()));
        true
    }

    async fn step(&mut self, step: &Step) -> Result<Ended, ApiError> {
        let octavia = &self.openstack.octavia;
        match step {
            Step::CreateLoadBalancer { load_balancer, listeners } => {
                let body = requests::load_balancer(load_balancer, listeners);
                let made = octavia.create_load_balancer(&body).await?;
                return Ok(Ended::Locked(Some(Made { id: made.id, project_id: made.project_id })));
            }
            Step::UpdateLoadBalancer { id, changes } => {
                octavia
                    .update_load_balancer(id, &requests::load_balancer_changes(changes))
                    .await
                    .map(drop)?;
            }
            Step::DeleteLoadBalancer { id, cascade } => {
                gone(octavia.delete_load_balancer(id, *cascade).await)?;
            }
            Step::CreateListener { load_balancer_id, listener, default_pool } => {
                let mut body = requests::listener(listener);
                body.loadbalancer_id = Some(load_balancer_id.clone());
                body.default_pool_id = default_pool.id().map(str::to_owned);
                return Ok(Ended::MadeChild(octavia.create_listener(&body).await?.id));
            }
            Step::UpdateListener { id, changes, key: _ } => {
                octavia.update_listener(id, &requests::listener_changes(changes)).await.map(drop)?;
            }
            Step::SwapDefaultPool { listener_id, pool, key: _ } => {
                let changes = requests::default_pool(pool.id().unwrap_or_default());
                octavia.update_listener(listener_id, &changes).await.map(drop)?;
            }
            Step::DeleteListener { id, key: _ } => gone(octavia.delete_listener(id).await)?,
            Step::CreatePool { load_balancer_id, pool } => {
                let mut body = requests::pool(pool);
                body.loadbalancer_id = Some(load_balancer_id.clone());
                return Ok(Ended::MadeChild(octavia.create_pool(&body).await?.id));
            }
            Step::UpdatePool { id, changes } => {
                octavia.update_pool(id, &requests::pool_changes(changes)).await.map(drop)?;
            }
            Step::DeletePool { id, name: _ } => gone(octavia.delete_pool(id).await)?,
            Step::ReplaceMembers { pool, members } => {
                let members: Vec<_> = members.iter().map(requests::member).collect();
                octavia.batch_members(pool.id().unwrap_or_default(), &members, false).await?;
            }
            Step::CreateMember { pool, member } => {
                octavia
                    .create_member(pool.id().unwrap_or_default(), &requests::member(member))
                    .await
                    .map(drop)?;
            }
            Step::DeleteMember { pool_id, id, name: _ } => gone(octavia.delete_member(pool_id, id).await)?,
            Step::CreateMonitor { pool, monitor } => {
                let mut body = requests::monitor(monitor);
                body.pool_id = pool.id().map(str::to_owned);
                return Ok(Ended::MadeChild(octavia.create_health_monitor(&body).await?.id));
            }
            Step::UpdateMonitor { id, changes } => {
                octavia.update_health_monitor(id, &requests::monitor_changes(changes)).await.map(drop)?;
            }
            Step::DeleteMonitor { id } => gone(octavia.delete_health_monitor(id).await)?,
            Step::CreateFloatingIp { .. }
            | Step::AttachFloatingIp { .. }
            | Step::DetachFloatingIp { .. }
            | Step::TagFloatingIp { .. }
            | Step::DeleteFloatingIp { .. } => {
                self.floating_ip_step(step).await?;
                return Ok(Ended::Done);
            }
        }
        Ok(Ended::Locked(None))
    }

    async fn floating_ip_step(&mut self, step: &Step) -> Result<(), ApiError> {
        let neutron = &self.openstack.neutron;
        match step {
            Step::CreateFloatingIp { network_id, subnet, address, description, tags, port } => {
                let body = CreateFloatingIp {
                    floating_network_id: network_id.clone(),
                    subnet_id: None,
                    floating_ip_address: address.map(|address| address.to_string()),
                    port_id: port.id().map(str::to_owned),
                    description: Some(description.clone()),
                };
                let made = self.create_floating_ip(body, subnet).await?;
                self.applied.changed = true;
                self.applied.address = made.floating_ip_address.parse().ok();
                if !tags.is_empty() {
                    neutron.replace_tags(Tagged::FloatingIp, &made.id, &requests::list(tags)).await?;
                }
                self.applied.floating_ips.extend(self.applied.address.map(|address| ObservedFloatingIp {
                    id: made.id,
                    address,
                    port_id: made.port_id,
                    ours: true,
                    tags: tags.clone(),
                }));
            }
            Step::AttachFloatingIp { id, address, port } => {
                let port_id = Change::from(port.id().map(str::to_owned));
                let changes = UpdateFloatingIp { port_id, ..UpdateFloatingIp::default() };
                neutron.update_floating_ip(id, &changes).await.map(drop)?;
                self.applied.address = Some(*address);
            }
            Step::DetachFloatingIp { id, address: _ } => {
                let changes = UpdateFloatingIp { port_id: Change::Clear, ..UpdateFloatingIp::default() };
                gone(neutron.update_floating_ip(id, &changes).await.map(drop))?;
            }
            Step::TagFloatingIp { id, tags } => {
                neutron.replace_tags(Tagged::FloatingIp, id, &requests::list(tags)).await?;
            }
            Step::DeleteFloatingIp { id, address: _ } => gone(neutron.delete_floating_ip(id).await)?,
            Step::CreateLoadBalancer { .. }
            | Step::UpdateLoadBalancer { .. }
            | Step::DeleteLoadBalancer { .. }
            | Step::CreateListener { .. }
            | Step::UpdateListener { .. }
            | Step::SwapDefaultPool { .. }
            | Step::DeleteListener { .. }
            | Step::CreatePool { .. }
            | Step::UpdatePool { .. }
            | Step::DeletePool { .. }
            | Step::ReplaceMembers { .. }
            | Step::CreateMember { .. }
            | Step::DeleteMember { .. }
            | Step::CreateMonitor { .. }
            | Step::UpdateMonitor { .. }
            | Step::DeleteMonitor { .. } => {}
        }
        Ok(())
    }

    /// One call, or one for each subnet until one has a free address.
    async fn create_floating_ip(
        &self,
        mut body: CreateFloatingIp,
        subnet: &SubnetChoice,
    ) -> Result<FloatingIp, ApiError> {
        let neutron = &self.openstack.neutron;
        let subnets = match subnet {
            SubnetChoice::Any => return neutron.create_floating_ip(&body).await,
            SubnetChoice::Id(id) => std::slice::from_ref(id),
            SubnetChoice::FirstFree(ids) => ids.as_slice(),
        };
        let mut refusal = None;
        for id in subnets {
            body.subnet_id = Some(id.clone());
            match neutron.create_floating_ip(&body).await {
                Err(error) if concerns_subnet(&error) => refusal = Some(error),
                result => return result,
            }
        }
        match refusal {
            Some(refusal) => Err(refusal),
            // No subnet to choose from: Neutron chooses.
            None => neutron.create_floating_ip(&body).await,
        }
    }
}

/// Whether another subnet may do better: this one is full, or has no addresses of its own to give.
fn concerns_subnet(error: &ApiError) -> bool {
    match error.kind() {
        ErrorKind::Conflict(ConflictCause::Other) | ErrorKind::BadRequest => true,
        ErrorKind::Quota => failure::is_out_of_addresses(error),
        ErrorKind::Conflict(ConflictCause::Immutable | ConflictCause::Stale)
        | ErrorKind::NotFound
        | ErrorKind::Policy
        | ErrorKind::Unauthorized
        | ErrorKind::RateLimited
        | ErrorKind::Unavailable
        | ErrorKind::LostAnswer
        | ErrorKind::ServerFault
        | ErrorKind::Decode
        | ErrorKind::NoEndpoint => false,
    }
}

/// What shall be gone may be gone already.
fn gone(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

fn is_locked(error: &ApiError) -> bool {
    error.kind() == ErrorKind::Conflict(ConflictCause::Immutable)
}

/// Who is to blame for an object that is not there: a creation names what the user configured.
fn missing(step: &Step) -> Missing {
    match step {
        Step::CreateLoadBalancer { .. } | Step::CreateFloatingIp { .. } => Missing::Input,
        Step::UpdateLoadBalancer { .. }
        | Step::DeleteLoadBalancer { .. }
        | Step::CreateListener { .. }
        | Step::UpdateListener { .. }
        | Step::SwapDefaultPool { .. }
        | Step::DeleteListener { .. }
        | Step::CreatePool { .. }
        | Step::UpdatePool { .. }
        | Step::DeletePool { .. }
        | Step::ReplaceMembers { .. }
        | Step::CreateMember { .. }
        | Step::DeleteMember { .. }
        | Step::CreateMonitor { .. }
        | Step::UpdateMonitor { .. }
        | Step::DeleteMonitor { .. }
        | Step::AttachFloatingIp { .. }
        | Step::DetachFloatingIp { .. }
        | Step::TagFloatingIp { .. }
        | Step::DeleteFloatingIp { .. } => Missing::Race,
    }
}

/// The first line of a step: a new tree goes on for many.
fn doing(step: &Step) -> String {
    let text = step.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

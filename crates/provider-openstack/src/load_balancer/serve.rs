//! One pass for a Service that is to be served.

mod former;
pub(super) mod security_group;

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Ready};
use openstack_ccm_core::service::{Intent, IpFamily, Service};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tracing::debug;

use self::security_group::Lists;
use super::carry_out::Next;
use super::desired::Sources;
use super::known::Known;
use super::memory::FormerVips;
use super::model::facts::{Facts, Features};
use super::model::observed::{Observed, ObservedFloatingIp, ObservedLoadBalancer, Ownership};
use super::names::{self, Names};
use super::observe::find::{self, Purpose};
use super::observe::{self, Depth, FloatingIpQuestion, Found};
use super::ownership::{Claim, SharingRules};
use super::plan::{self, Plan};
use super::report::{self, Report};
use super::resolve::Question;
use super::settings::node_address::family_of;
use super::settings::{Exposure, Settings};
use super::step::{LoadBalancerStep, Step};
use super::turns::Turn;
use super::{OpenStackLoadBalancers, annotations, desired, policy, published, recreation};

/// The load balancer that the annotation names is gone, and it was made for the Service: there will be a new one.
const LOAD_BALANCER_GONE: &str = "LoadBalancerGone";

/// A pass on its way: what does not change while it goes on.
pub(super) struct Serving<'a> {
    pub(super) provider: &'a OpenStackLoadBalancers,
    pub(super) intent: &'a Intent,
    pub(super) service: &'a Service,
    pub(super) settings: &'a Settings,
    pub(super) features: Features,
    pub(super) claim: Claim<'a>,
}

impl OpenStackLoadBalancers {
    pub(super) async fn serve(&self, intent: &Intent, report: &mut Report) -> Result<Outcome, Failure> {
        let service = &intent.service;
        self.memory.saw(service);
        let names = Names::new(&self.cluster, service);
        let (settings, notices) = Settings::read(service, &self.config);
        report.notices(notices);
        let settings = settings?;
        let features = self.resolver.features_of_new(&settings).await?;
        let claim = Claim::new(service, &names, &self.cluster, settings.allow_foreign_cluster);
        let pass = Serving { provider: self, intent, service, settings: &settings, features, claim };
        match pass.converge_in_turn(report).await? {
            Outcome::Ready(ready) => Ok(Outcome::Ready(pass.leave_former(ready, report).await)),
            outcome @ (Outcome::Waiting(_) | Outcome::Released) => Ok(outcome),
        }
    }
}

/// What a pass goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// What earlier passes know.
    Memory,
    /// The same, with members that were only sent and have been read now.
    Verification,
    /// What the cloud shows now.
    Look,
}

impl Serving<'_> {
    /// Brings the cloud one step nearer to what is wanted, while no other pass works on the load balancer.
    async fn converge_in_turn(&self, report: &mut Report) -> Result<Outcome, Failure> {
        let named = self.settings.load_balancer_id.as_deref();
        let turn = self.provider.turns.take(named.unwrap_or(self.claim.names.load_balancer())).await;
        if let Some((known, basis)) = self.recall().await? {
            match self.converge(known, basis, report).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                // What is remembered may be wrong.
                Err(failure) if matches!(failure.class, FailureClass::UserInput | FailureClass::Busy) => {}
                Err(failure) => return Err(failure),
            }
        }
        if let Some(outcome) = self.still_settled(report).await? {
            return Ok(outcome);
        }
        let (_turn, found) = self.find_in_turn(turn, report).await?;
        let known = self.look(found).await?;
        let outcome = self.converge(known, Basis::Look, report).await?;
        outcome
            .ok_or_else(|| Failure::new(FailureClass::Bug, "a look at the cloud was not enough for a plan"))
    }

    /// The Service's load balancer, and the turn on it. One that is found by its name is read again in the turn of its
    /// id, in which its other users change it.
    async fn find_in_turn(&self, turn: Turn, report: &mut Report) -> Result<(Turn, Option<Found>), Failure> {
        let found = self.find(report).await?;
        let id = found.as_ref().map(|found| found.load_balancer.id.clone());
        match id.filter(|id| self.settings.load_balancer_id.as_ref() != Some(id)) {
            None => Ok((turn, found)),
            Some(id) => {
                drop(turn);
                let turn = self.provider.turns.take(&id).await;
                Ok((turn, self.find(report).await?))
            }
        }
    }

    /// The load balancer that the annotation names, else one that has the Service's name.
    async fn find(&self, report: &mut Report) -> Result<Option<Found>, Failure> {
        let octavia = &self.provider.openstack.octavia;
        let purpose = self.purpose();
        let mut found = None;
        if let Some(id) = &self.settings.load_balancer_id {
            found = match self.provider.watchlist.take_seen(id) {
                Some(seen) => find::seen(&self.claim, purpose, seen)?,
                None => {
                    let found = find::by_id(octavia, &self.claim, purpose, id).await;
                    found.map_err(|failure| self.explain_denial(id, failure))?
                }
            };
            if found.is_none() {
                self.give_up_annotation(id, report)?;
            }
        }
        if found.is_none() {
            found = find::by_name(octavia, &self.claim, purpose).await?;
        }
        if let Some(found) = &found {
            policy::may_use(self.settings, found)?;
        }
        // That an earlier pass of OCCM wrote the id is what tells a guest's own former name: it has to show until
        // everything is renamed.
        let renames = |found: &&Found| found.ownership == Ownership::Guest && found.former_name.is_some();
        if let Some(found) = found.as_ref().filter(|found| !renames(found)) {
            report.load_balancer(self.service, &found.load_balancer.id, found.ownership);
        }
        Ok(found)
    }

    /// A load balancer of another project cannot be seen: that is the mistake of the user who named it, not of the
    /// operator.
    fn explain_denial(&self, id: &str, failure: Failure) -> Failure {
        if failure.class != FailureClass::Auth || report::is_own_output(self.service) {
            return failure;
        }
        Failure::user_input(format!(
            "annotation {}: the user of cloud.conf may not see load balancer {id}, which belongs to another project; name one \
             of this project, or remove the annotation",
            annotations::LOAD_BALANCER_ID.key
        ))
    }

    pub(super) fn purpose(&self) -> Purpose {
        let most_users = self.settings.max_shared_load_balancer;
        Purpose::Serve(SharingRules { tags: self.features.tags, most_users })
    }

    /// The annotation names a load balancer that is not there. An id that an earlier pass wrote is dropped; one that
    /// the user wrote is the user's mistake.
    fn give_up_annotation(&self, id: &str, report: &mut Report) -> Result<(), Failure> {
        if !report::is_own_output(self.service) {
            return Err(Failure::user_input(format!(
                "load balancer {id} does not exist, or the user of cloud.conf cannot see it: correct or remove \
                 {}",
                annotations::LOAD_BALANCER_ID.key
            )));
        }
        // One that was deleted here, because it was broken, is no news.
        if self.provider.memory.former_vips(&self.service.key) == FormerVips::Unknown {
            report.notice(Notice::warning(
                LOAD_BALANCER_GONE,
                format!("load balancer {id} is gone: the Service gets a new one"),
            ));
        }
        report.forget_load_balancer(self.service);
        Ok(())
    }

    /// Reads all that the Service has in the cloud.
    async fn look(&self, found: Option<Found>) -> Result<Known, Failure> {
        let project_id = found.as_ref().and_then(|found| found.load_balancer.project_id.clone());
        let updated_at = found.as_ref().and_then(|found| found.load_balancer.updated_at.clone());
        let vips: Vec<IpAddr> = found.iter().flat_map(|found| vip_addresses(&found.load_balancer)).collect();
        let question = self.floating_ip_question(found.as_ref().map(|found| found.ownership), &vips);
        let openstack = &self.provider.openstack;
        let observed = observe::observe(openstack, &self.claim, found, Depth::Whole, &question).await?;
        Ok(Known::looked(observed, project_id, updated_at))
    }

    /// Brings the cloud one step nearer to what is wanted. `None` where what is remembered is not enough for that.
    async fn converge(
        &self,
        mut known: Known,
        basis: Basis,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let key = &self.service.key;
        let facts = self.resolve(&known.observed, true, report).await?;
        let Self { intent, settings, .. } = *self;
        let desired = desired::desired(Sources { intent, settings, names: self.claim.names, facts: &facts })?;
        let refused = self.provider.memory.refused_algorithms(key);
        let observed = known.unsealed_beside(&desired, &refused);
        let plan = plan::serve(&desired, &observed);
        debug!(service = %key, %plan, ?basis, "planned");
        if basis != Basis::Look && !known.suffices_for(&plan) {
            return Ok(None);
        }
        let project_id = known.project_id.clone();
        let settled = known.fingerprint(&desired);
        known.presume(&plan, &desired);
        self.provider.memory.know(key, known);
        self.open_node_ports(&plan, &facts, report).await;
        let mut outcome = self.carry_out(&plan, &observed, project_id.as_deref(), &facts, report).await;
        if let Ok(Outcome::Ready(ready)) = &mut outcome {
            // Verifications of many Services fall together, as looks for drift do.
            let quiet = basis == Basis::Verification && plan.steps.is_empty();
            let lists = if quiet { Lists::MayDo } else { Lists::DoNot };
            self.converge_group(&facts, lists, ready, report).await;
        }
        match &mut outcome {
            Ok(Outcome::Ready(ready)) => {
                ready.again_after = self.provider.memory.settled(key, &desired);
                if let Some(settled) = settled {
                    report.annotate(self.service, annotations::SETTLED.key, settled);
                }
            }
            Ok(Outcome::Waiting(_) | Outcome::Released) => {}
            Err(_) => self.provider.memory.forget_known(key),
        }
        outcome.map(Some)
    }

    pub(super) fn floating_ip_question(
        &self,
        ownership: Option<Ownership>,
        vips: &[IpAddr],
    ) -> FloatingIpQuestion {
        let owner = ownership.is_some_and(|ownership| ownership != Ownership::Guest);
        match &self.settings.exposure {
            Exposure::Internal if owner => FloatingIpQuestion::OnVip,
            Exposure::Internal => FloatingIpQuestion::Nothing,
            Exposure::External(_) if self.needs_no_floating_ip(vips) => FloatingIpQuestion::Nothing,
            Exposure::External(wanted) => FloatingIpQuestion::ForVip { asked: wanted.address },
        }
    }

    /// Whether all VIPs are, or as far as one can tell will be, IPv6 addresses, which need no translation.
    fn needs_no_floating_ip(&self, vips: &[IpAddr]) -> bool {
        if vips.is_empty() {
            let asked = self.settings.vip.address.map(family_of).or(self.settings.family);
            let dual = self.settings.families.contains(&IpFamily::V4);
            return asked == Some(IpFamily::V6) && !dual;
        }
        vips.iter().all(IpAddr::is_ipv6)
    }

    /// Looks up what the tree needs to know; `verifies` as in [`Question::verifies`].
    pub(super) async fn resolve(
        &self,
        observed: &Observed,
        verifies: bool,
        report: &mut Report,
    ) -> Result<Facts, Failure> {
        let existing = observed.load_balancer.as_ref();
        let guest = existing.is_some_and(|existing| existing.ownership == Ownership::Guest);
        let ipv4 = existing.is_none_or(|existing| existing.vip_addresses().any(|vip| vip.is_ipv4()));
        // A load balancer keeps its provider, whatever cloud.conf says by now.
        let provider = existing.and_then(|existing| existing.made_with.provider.as_deref());
        let features = match provider {
            Some(provider) => self.provider.resolver.features(Some(provider)).await?,
            None => self.features,
        };
        let question = Question {
            intent: self.intent,
            settings: self.settings,
            features,
            verifies,
            existing,
            wants_floating_ip: !guest && ipv4 && observed.floating_ips.is_empty(),
            former_vip_addresses: if existing.is_none() {
                self.former_vips(&observed.floating_ips)
            } else {
                Vec::new()
            },
        };
        let late =
            existing.and_then(|existing| recreation::notice(self.service, self.settings, features, existing));
        let mut notices = Vec::from_iter(late);
        let facts = self.provider.resolver.facts(&question, &mut notices).await;
        report.notices(notices);
        facts
    }

    /// The VIPs of the load balancer that the Service had, where there is none now. What is remembered is best; after a
    /// restart the annotation and the status still have them, and the floating IP of one that broke tells which it led
    /// to.
    fn former_vips(&self, floating_ips: &[ObservedFloatingIp]) -> Vec<IpAddr> {
        match self.provider.memory.former_vips(&self.service.key) {
            FormerVips::Addresses(addresses) => addresses,
            FormerVips::Lost => Vec::new(),
            FormerVips::Unknown => {
                let internal = self.settings.exposure == Exposure::Internal;
                let annotated = self.service.annotations.get(annotations::LOAD_BALANCER_ADDRESS.key);
                let annotated = annotated.and_then(|address| address.parse().ok());
                let published = self.service.published.iter().copied();
                let shown = annotated.into_iter().chain(published).filter(|one| internal || one.is_ipv6());
                let own = floating_ips.iter().filter(|floating_ip| floating_ip.ours);
                own.flat_map(|floating_ip| names::former_vips(&floating_ip.tags)).chain(shown).collect()
            }
        }
    }

    async fn carry_out(
        &self,
        plan: &Plan,
        observed: &Observed,
        project_id: Option<&str>,
        facts: &Facts,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        let memory = &self.provider.memory;
        if plan.steps.iter().any(Step::sends_certificate) {
            let own = self.settings.tls.iter().map(|tls| (tls, "default-tls-container-ref"));
            let further = self.settings.tls_options.sni.iter().flatten();
            for (tls, key) in own.chain(further.map(|tls| (tls, "sni-container-refs"))) {
                self.provider.resolver.verify_certificate(tls, key).await?;
            }
        }
        let load_balancer = observed.load_balancer.as_ref();
        let next = self.provider.carry_out(self.service, plan, load_balancer, project_id, report).await;
        if next.is_ok() && replaces(plan) {
            let vips = load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses);
            memory.set_former_vips(&self.service.key, FormerVips::Addresses(vips.collect()));
        }
        match next {
            Ok(Next::Waiting(waiting)) => Ok(Outcome::Waiting(waiting)),
            Ok(Next::Settled { changed, address }) => self.ready(changed, address, load_balancer, report),
            // An address that the Service had is not to be had again: better another one than none.
            Err(refusal) if load_balancer.is_none() && facts.asks_for_former() && refuses(&refusal) => {
                memory.set_former_vips(&self.service.key, FormerVips::Lost);
                Err(Failure::new(FailureClass::Busy, refusal.message))
            }
            Err(failure) if load_balancer.is_none() => {
                Err(self.provider.resolver.explain_refusal(failure).await)
            }
            Err(failure) => Err(failure),
        }
    }

    pub(super) fn ready(
        &self,
        changed: bool,
        address: Option<IpAddr>,
        load_balancer: Option<&ObservedLoadBalancer>,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        let address = address.ok_or_else(|| {
            Failure::new(FailureClass::Bug, "the load balancer has no address in Octavia's answer")
        })?;
        let addresses = published::addresses(load_balancer, address, &self.settings.families);
        let first = addresses.first().copied().unwrap_or(address);
        report.annotate(self.service, annotations::LOAD_BALANCER_ADDRESS.key, first.to_string());
        Ok(Outcome::Ready(Ready {
            addresses,
            path: self.settings.path(&self.service.ports),
            preference: self.settings.preference.clone(),
            changed,
            unfinished: None,
            again_after: None,
        }))
    }
}

/// All VIP addresses that Octavia shows.
fn vip_addresses(load_balancer: &LoadBalancer) -> impl Iterator<Item = IpAddr> + '_ {
    let additional = load_balancer.additional_vips.iter().filter_map(|vip| vip.ip_address.as_deref());
    let all = load_balancer.vip_address.as_deref().into_iter().chain(additional);
    all.filter_map(|text| text.parse().ok())
}

/// Whether the cloud said no to what was asked, not just not now.
fn refuses(failure: &Failure) -> bool {
    failure.class == FailureClass::UserInput
}

/// Whether a load balancer that broke is deleted to be made anew.
fn replaces(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
}

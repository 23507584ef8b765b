//! One pass for a Service that is to be served.

mod absence;
mod previous;
mod recovery;
pub(crate) mod security_group;
mod wanted;

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready};
use openstack_ccm_core::service::{Intent, IpFamily, Service};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tracing::debug;

use self::security_group::Lists;
use crate::load_balancer::belief::cached::Cached;
use crate::load_balancer::belief::store::PreviousVips;
use crate::load_balancer::desired::recreation;
use crate::load_balancer::locks::LoadBalancerLock;
use crate::load_balancer::model::facts::{Facts, Features};
use crate::load_balancer::model::observed::{Observed, ObservedFloatingIp, ObservedLoadBalancer, Ownership};
use crate::load_balancer::names::{self, Names};
use crate::load_balancer::observe::allowed;
use crate::load_balancer::observe::read::find::{self, Purpose};
use crate::load_balancer::observe::read::{self, Depth, FloatingIpQuestion, Found};
use crate::load_balancer::outputs;
use crate::load_balancer::ownership::{Claim, SharingRules};
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::reconcile::addresses;
use crate::load_balancer::reconcile::carry_out::Progress;
use crate::load_balancer::reconcile::identity_tags::Permission;
use crate::load_balancer::reconcile::report::Report;
use crate::load_balancer::resolve::Question;
use crate::load_balancer::settings::node_address::family_of;
use crate::load_balancer::settings::{Aspect, Exposure, Fault, Faults, Reading, Settings};
use crate::load_balancer::step::{LoadBalancerStep, Step};
use crate::load_balancer::{OpenStackLoadBalancers, annotations};
use wanted::{Planned, Wanted};

/// A pass on its way: what does not change while it goes on.
pub(crate) struct Serving<'a> {
    pub(crate) provider: &'a OpenStackLoadBalancers,
    pub(crate) intent: &'a Intent,
    pub(crate) service: &'a Service,
    pub(crate) settings: &'a Settings,
    /// What is wrong with the settings by themselves.
    pub(crate) faults: &'a Faults,
    pub(crate) features: Features,
    pub(crate) claim: Claim<'a>,
}

impl OpenStackLoadBalancers {
    pub(crate) async fn serve(&self, intent: &Intent, report: &mut Report) -> Result<Outcome, Failure> {
        let service = &intent.service;
        self.memory.saw(service);
        let names = Names::new(&self.cluster, service);
        let Reading { settings, errors, notices } = Reading::of(service, &self.config);
        report.notices(notices);
        let faults = errors.as_ref().map(Faults::from).unwrap_or_default();
        let features = self.resolver.features_of_new(&settings).await?;
        let claim = Claim::new(service, &names, self.scope(), settings.allow_foreign_cluster);
        let pass = Serving {
            provider: self,
            intent,
            service,
            settings: &settings,
            faults: &faults,
            features,
            claim,
        };
        match pass.converge_in_turn(report).await? {
            // What is in ERROR may not serve: nothing that might is given up for it.
            Outcome::Ready(ready) if is_held(&ready) => Ok(Outcome::Ready(ready)),
            Outcome::Ready(ready) => Ok(Outcome::Ready(pass.leave_previous(ready, report).await)),
            outcome @ (Outcome::Waiting(_) | Outcome::Released) => Ok(outcome),
        }
    }
}

/// What a pass goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
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
        let turn = self.provider.locks.take(named.unwrap_or(self.claim.names.load_balancer())).await;
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
        match self.find_in_turn(turn, report).await {
            Ok((_turn, found)) => self.converge_found(found, report).await,
            Err(failure) if failure.class == FailureClass::UserInput => {
                self.converge_beside_wrong_id(failure, report).await
            }
            Err(failure) => Err(self.faults.beside(failure)),
        }
    }

    /// Looks at what was found, and brings it one step nearer to what is wanted.
    async fn converge_found(&self, found: Option<Found>, report: &mut Report) -> Result<Outcome, Failure> {
        let known = self.look(found).await?;
        let outcome = self.converge(known, Basis::Look, report).await?;
        outcome.ok_or_else(|| Failure::new(FailureClass::Bug, "the observed state was not enough for a plan"))
    }

    /// The Service must not, or cannot, use the load balancer that its annotation names. If one was made for it, that one
    /// goes on serving.
    async fn converge_beside_wrong_id(
        &self,
        failure: Failure,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        if self.settings.load_balancer_id.is_none() {
            return Err(self.faults.beside(failure));
        }
        let mut faults = self.faults.clone();
        faults.add(Fault::new([Aspect::LoadBalancer], &failure.message));
        let mut settings = self.settings.clone();
        settings.load_balancer_id = None;
        settings.unreadable.insert(Aspect::LoadBalancer);
        let pass = Serving { faults: &faults, ..self.with(&settings) };
        let turn = self.provider.locks.take(self.claim.names.load_balancer()).await;
        match pass.find_in_turn(turn, report).await {
            Ok((_turn, Some(own))) if own.ownership != Ownership::Guest => {
                pass.converge_found(Some(own), report).await
            }
            Ok(_) | Err(_) => Err(self.faults.beside(failure)),
        }
    }

    /// The Service's load balancer, and the turn on it. One that is found by its name is read again in the turn of its
    /// id, in which its other users change it.
    async fn find_in_turn(
        &self,
        turn: LoadBalancerLock,
        report: &mut Report,
    ) -> Result<(LoadBalancerLock, Option<Found>), Failure> {
        let found = self.find(report).await?;
        let id = found.as_ref().map(|found| found.load_balancer.id.clone());
        match id.filter(|id| self.settings.load_balancer_id.as_ref() != Some(id)) {
            None => Ok((turn, found)),
            Some(id) => {
                drop(turn);
                let turn = self.provider.locks.take(&id).await;
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
            if found.is_none() && !outputs::is_own_output(self.service) {
                return Err(not_there(id));
            }
        }
        if found.is_none() {
            found = find::by_name(octavia, &self.claim, purpose).await?;
            self.judge_absence(found.is_some(), report).await?;
        } else if outputs::is_own_output(self.service) {
            self.provider.missing.found();
        }
        if let Some(found) = &found {
            allowed::may_use(self.settings, found)?;
        }
        // What the user wrote stays, so that it can be corrected.
        let named_wrongly = self.settings.is_unreadable(Aspect::LoadBalancer);
        if let Some(found) = found.as_ref().filter(|_| !named_wrongly) {
            report.load_balancer(self.service, &found.load_balancer.id, found.ownership);
        }
        Ok(found)
    }

    /// A load balancer of another project cannot be seen: that is the mistake of the user who named it, not of the
    /// operator.
    fn explain_denial(&self, id: &str, failure: Failure) -> Failure {
        if failure.class != FailureClass::Auth || outputs::is_own_output(self.service) {
            return failure;
        }
        Failure::user_input(format!(
            "annotation {}: the user of cloud.conf may not see load balancer {id}, which belongs to another project; name one \
             of this project, or remove the annotation",
            annotations::LOAD_BALANCER_ID.key
        ))
    }

    pub(crate) fn purpose(&self) -> Purpose {
        let most_users = self.settings.max_shared_load_balancer;
        Purpose::Serve(SharingRules { tags: self.features.tags, most_users })
    }

    /// Reads all that the Service has in the cloud.
    async fn look(&self, found: Option<Found>) -> Result<Cached, Failure> {
        let project_id = found.as_ref().and_then(|found| found.load_balancer.project_id.clone());
        let updated_at = found.as_ref().and_then(|found| found.load_balancer.updated_at.clone());
        let vips: Vec<IpAddr> = found.iter().flat_map(|found| vip_addresses(&found.load_balancer)).collect();
        let question = self.floating_ip_question(found.as_ref().map(|found| found.ownership), &vips);
        let openstack = &self.provider.openstack;
        let observed = read::observe(openstack, &self.claim, found, Depth::Whole, &question).await?;
        Ok(Cached::looked(observed, project_id, updated_at))
    }

    /// Brings the cloud one step nearer to what is wanted. `None` where what is remembered is not enough for that.
    async fn converge(
        &self,
        mut known: Cached,
        basis: Basis,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let key = &self.service.key;
        let planned = self.plan(&known, report).await.inspect_err(|_| self.give_back(&known.observed));
        let Some(planned) = planned? else { return Ok(None) };
        let Planned { wanted: Wanted { settings, faults, facts, desired }, observed, plan } = planned;
        let (plan, marked_in) = self.pace(plan);
        debug!(service = %key, %plan, ?basis, "planned");
        if basis != Basis::Look && !known.suffices_for(&plan) {
            return Ok(None);
        }
        let pass = self.with(&settings);
        let project_id = known.project_id.clone();
        let settled = known.fingerprint(&desired);
        known.presume(&plan, &desired);
        self.provider.memory.know(key, known);
        pass.open_node_ports(&plan, &facts, report).await;
        let marks = plan.only_marks();
        if marks {
            self.provider.identity_tags.begins(key);
        }
        let outcome = pass.carry_out(&plan, &observed, project_id.as_deref(), &facts, report).await;
        let mut outcome = outcome.map_err(|failure| faults.beside(failure));
        if marks && outcome.is_err() {
            self.provider.identity_tags.ends(key);
        }
        if let Ok(Outcome::Ready(ready)) = &mut outcome {
            // Verifications of many Services fall together, as looks for drift do.
            let quiet = basis == Basis::Verification && plan.steps.is_empty();
            let lists = if quiet { Lists::MayDo } else { Lists::DoNot };
            pass.converge_group(&facts, lists, ready, report).await;
            let failed = ready.unfinished.take().map(|failure| faults.beside(failure));
            ready.unfinished = failed.or_else(|| faults.failure());
        }
        match &mut outcome {
            // Everything is read again: nothing is settled in ERROR.
            Ok(Outcome::Ready(ready)) if is_held(ready) => self.provider.memory.forget_known(key),
            Ok(Outcome::Ready(ready)) => {
                // What cannot be read is judged by the members that are there, too.
                let seals = faults.unreadable().is_empty();
                let verified_in = self.provider.memory.settled(key, &desired, seals);
                ready.again_after = verified_in.into_iter().chain(marked_in).min();
                if let Some(settled) = settled {
                    report.annotate(self.service, annotations::CONVERGED_DIGEST.key, settled);
                }
            }
            Ok(Outcome::Waiting(_) | Outcome::Released) => {}
            Err(_) => self.provider.memory.forget_known(key),
        }
        outcome.map(Some)
    }

    /// Holds back what only tells whose objects are: until nothing else is to be done, and it is the Service's turn.
    /// Answers after which time to ask again.
    fn pace(&self, plan: Plan) -> (Plan, Option<Duration>) {
        let (markings, key) = (&self.provider.identity_tags, &self.service.key);
        if plan.markings.is_empty() {
            // What Octavia is at work on may be the marking.
            if plan.then == Then::Done {
                markings.ends(key);
            }
            return (plan, None);
        }
        match markings.ask(key) {
            Permission::Now if plan.only_marks() => (plan, None),
            Permission::Now | Permission::Never => (plan.without_markings(), None),
            Permission::In(time) => (plan.without_markings(), Some(time)),
        }
    }

    pub(crate) fn floating_ip_question(
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
    pub(crate) async fn resolve(
        &self,
        observed: &Observed,
        verifies: bool,
        report: &mut Report,
    ) -> Result<(Facts, Vec<Fault>), Failure> {
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
            previous_vip_addresses: if existing.is_none() {
                self.previous_vips(&observed.floating_ips)
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
    fn previous_vips(&self, floating_ips: &[ObservedFloatingIp]) -> Vec<IpAddr> {
        match self.provider.memory.previous_vips(&self.service.key) {
            PreviousVips::Addresses(addresses) => addresses,
            PreviousVips::Lost => Vec::new(),
            PreviousVips::Unknown => {
                let internal = self.settings.exposure == Exposure::Internal;
                let annotated = self.service.annotations.get(annotations::LOAD_BALANCER_ADDRESS.key);
                let annotated = annotated.and_then(|address| address.parse().ok());
                let published = self.service.published.iter().copied();
                let shown = annotated.into_iter().chain(published).filter(|one| internal || one.is_ipv6());
                let own = floating_ips.iter().filter(|floating_ip| floating_ip.ours);
                own.flat_map(|floating_ip| names::previous_vips(&floating_ip.tags)).chain(shown).collect()
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
        let load_balancer = observed.load_balancer.as_ref();
        let next = self.provider.carry_out(self.service, plan, load_balancer, project_id, report).await;
        self.note_replacement(plan, load_balancer, &next);
        if next.is_ok() && replaces(plan) {
            let vips = load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses);
            memory.set_previous_vips(&self.service.key, PreviousVips::Addresses(vips.collect()));
            // It was deleted here: should the program end now, the next one need not doubt that it is gone.
            report.remove_annotation(self.service, annotations::LOAD_BALANCER_ADDRESS.key);
            report.remove_annotation(self.service, annotations::CONVERGED_DIGEST.key);
        }
        match next {
            Ok(Progress::Waiting(waiting)) => Ok(Outcome::Waiting(waiting)),
            Ok(Progress::Converged { address: None, held: Some(failure), .. }) => Err(failure),
            Ok(Progress::Converged { changed, address, held }) => {
                let outcome = self.ready(changed, address, load_balancer, facts, report)?;
                Ok(match outcome {
                    Outcome::Ready(ready) => Outcome::Ready(Ready { unfinished: held, ..ready }),
                    outcome @ (Outcome::Waiting(_) | Outcome::Released) => outcome,
                })
            }
            // An address that the Service had is not to be had again: better another one than none.
            Err(refusal) if load_balancer.is_none() && facts.asks_for_previous() && refuses(&refusal) => {
                memory.set_previous_vips(&self.service.key, PreviousVips::Lost);
                Err(Failure::new(FailureClass::Busy, refusal.message))
            }
            Err(failure) if load_balancer.is_none() => {
                Err(self.provider.resolver.explain_refusal(failure).await)
            }
            Err(failure) => Err(failure),
        }
    }

    pub(crate) fn ready(
        &self,
        changed: bool,
        address: Option<IpAddr>,
        load_balancer: Option<&ObservedLoadBalancer>,
        facts: &Facts,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        let address = address.ok_or_else(|| {
            Failure::new(FailureClass::Bug, "the load balancer has no address in Octavia's answer")
        })?;
        let addresses = addresses::addresses(load_balancer, address, &self.settings.families);
        let first = addresses.first().copied().unwrap_or(address);
        report.annotate(self.service, annotations::LOAD_BALANCER_ADDRESS.key, first.to_string());
        Ok(Outcome::Ready(Ready {
            addresses,
            path: self.settings.path(&self.service.ports),
            preference: self.settings.preference.clone(),
            cluster_access: facts.cluster_access.clone(),
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

/// The user wrote the id of a load balancer that is not there.
fn not_there(id: &str) -> Failure {
    Failure::user_input(format!(
        "load balancer {id} does not exist, or the user of cloud.conf cannot see it: correct or remove {}",
        annotations::LOAD_BALANCER_ID.key
    ))
}

/// Whether the load balancer is in a state in which nobody may rely on it.
fn is_held(ready: &Ready) -> bool {
    ready.unfinished.as_ref().is_some_and(|failure| matches!(failure.class, FailureClass::Held(_)))
}

/// Whether the cloud said no to what was asked, not just not now.
fn refuses(failure: &Failure) -> bool {
    failure.class == FailureClass::UserInput
}

/// Whether a load balancer that broke is deleted to be recreated.
fn replaces(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
}

//! Gathers the load balancers of Services, and what the controllers would change, by a dry run as in `plan`. What does not answer in
//! time, or fails, leaves the rest as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::{
    Children, CloudFacts, Forecast as Reach, Looked, MemberFact, Network, PoolFact, entries,
};
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_openstack_api::dry_run::{DryRun, Kind, Reading, is_placeholder_address, merged};
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancer, Member, OperatingStatus, Pool};
use openstack_ccm_openstack_api::{ApiError, ErrorKind, OpenStack};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID};
use serde_json::Value;

use super::{key_of, network, served_by, within};
use crate::cloud::log_in;
use crate::doctor::args::WalkArgs;
use crate::plan::MAX_SINGLE_SERVICES;
use crate::plan::as_if::AsIf;
use crate::plan::forecast::{Forecast, is_failure};
use crate::plan::journal::{Call, Journal, Seen};
use crate::plan::rehearsal::{Chosen, Item, Subject, rehearse};
use crate::plan::stage;

/// The annotation by which the controllers skip a Service that was up to date.
const SETTLED: &str = "loadbalancer.openstack.org/settled";
/// The annotation with the id of the load balancer that the controller made, regardless of the one that another annotation names.
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
/// The number of reads at a time.
pub(super) const READS: usize = 8;

/// Gathers the facts about the cloud for these Services.
pub(super) async fn gather(
    provider: &OpenStackProvider,
    arguments: &WalkArgs,
    services: &[Service],
    nodes: &[IpAddr],
) -> BTreeMap<ServiceKey, Looked<CloudFacts>> {
    let wanted = arguments.controller.load_balancer_class.as_deref();
    let mut facts = BTreeMap::new();
    let mut ours: Vec<(ServiceKey, &Service)> = Vec::new();
    for service in services {
        match served_by(service, wanted).others() {
            None => ours.push((key_of(service), service)),
            Some(others) => drop(facts.insert(key_of(service), Err(others))),
        }
    }
    if ours.is_empty() {
        return facts;
    }
    // With many Services the client reads whole lists of the project.
    let ahead = ours.len() > MAX_SINGLE_SERVICES;
    let login = log_in(provider, &arguments.person, |transport, project_id| {
        let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
        Arc::new(DryRun::new(transport, reading, Arc::new(Journal::default())))
    });
    let limit = arguments.timeout;
    let openstack = match within(limit, "Keystone", login).await {
        Ok(openstack) => openstack,
        Err(cause) => {
            facts.extend(ours.into_iter().map(|(key, _)| (key, Err(cause.clone()))));
            return facts;
        }
    };
    let chosen = Chosen::Named(ours.iter().map(|(key, _)| key.clone()).collect());
    let planned = within(limit, "what the controllers ask", planned(provider, arguments, &chosen));
    let (items, network) = tokio::join!(planned, network::read(&openstack, limit));
    let looker = Looker { openstack: &openstack, items, network: Arc::new(network), limit };
    let looks = stream::iter(&ours).map(|(key, service)| looker.look(key, service)).buffered(READS);
    let mut found: Vec<CloudFacts> = looks.collect().await;
    let is_narrowed = |one: &CloudFacts| {
        one.children
            .iter()
            .flat_map(|children| &children.listeners)
            .any(|listener| !listener.allowed_cidrs.is_empty())
    };
    if found.iter().any(is_narrowed) {
        let translated = network::translated(&looker.network, &openstack, nodes);
        let translated = within(limit, "Neutron", translated).await;
        found.iter_mut().for_each(|one| one.translated = Some(translated.clone()));
    }
    facts.extend(ours.into_iter().zip(found).map(|((key, _), found)| (key, Ok(found))));
    facts
}

/// Runs the controllers dry.
async fn planned(provider: &OpenStackProvider, arguments: &WalkArgs, chosen: &Chosen) -> Looked<Vec<Item>> {
    // Without the annotation the dry run reads everything, including changes that leave no trace in the list of load balancers.
    let as_if = AsIf { annotations: vec![(SETTLED.to_owned(), None)], ..AsIf::default() };
    let run = async {
        let stage = stage(&arguments.controller, &arguments.person, provider, chosen, as_if).await?;
        anyhow::Ok(rehearse(stage, chosen, |_, _| {}).await?.items)
    };
    run.await.map_err(|error| said_once(&error))
}

/// The sources for reading the load balancers of all Services.
struct Looker<'a> {
    openstack: &'a OpenStack,
    /// What the controllers would do.
    items: Looked<Vec<Item>>,
    network: Arc<Network>,
    limit: Duration,
}

impl Looker<'_> {
    async fn look(&self, key: &ServiceKey, service: &Service) -> CloudFacts {
        let mut facts = CloudFacts {
            load_balancer: None,
            children: Ok(Children::default()),
            forecast: Reach::Settled,
            changes: Vec::new(),
            warnings: Vec::new(),
            network: Arc::clone(&self.network),
            translated: None,
            claimed: published(service).chain(announced(service)).collect(),
            would_publish: None,
        };
        let annotations = service.metadata.annotations.as_ref();
        let mut ids: Vec<String> = Vec::new();
        match &self.items {
            Err(cause) => {
                facts.forecast = Reach::Unknown(cause.clone());
                ids.extend(annotations.and_then(|all| all.get(LOAD_BALANCER_ID.key)).cloned());
            }
            Ok(items) => {
                let subject = Subject::Service(key.clone());
                if let Some(item) = items.iter().find(|item| item.subject == subject) {
                    let forecast = Forecast::of(item);
                    facts.forecast = forecast.state;
                    facts.changes = merged(item.calls.iter().flat_map(Call::changes));
                    facts.warnings = warnings(item);
                    facts.would_publish = would_publish(item);
                    ids.extend(forecast.load_balancer);
                }
            }
        }
        ids.extend(annotations.and_then(|all| all.get(OWNED)).cloned());
        for id in ids {
            let octavia = &self.openstack.octavia;
            let read = async {
                match octavia.get_load_balancer(&id).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    read => read.map(Some),
                }
            };
            match within(self.limit, "Octavia", read).await {
                Ok(Some(one)) => {
                    facts.children = within(self.limit, "Octavia", self.children(&one)).await;
                    facts.load_balancer = Some(one);
                    break;
                }
                Ok(None) => {}
                Err(cause) => facts.forecast = Reach::Unknown(cause),
            }
        }
        facts
    }

    async fn children(&self, one: &LoadBalancer) -> Result<Children, ApiError> {
        let octavia = &self.openstack.octavia;
        let below = ChildFilter::load_balancer(&one.id);
        let (listeners, pools) =
            tokio::try_join!(octavia.list_listeners(&below), octavia.list_pools(&below))?;
        let pools = stream::iter(pools).map(|pool| self.pool(pool)).buffered(READS).try_collect();
        Ok(Children { listeners, pools: pools.await? })
    }

    async fn pool(&self, pool: Pool) -> Result<PoolFact, ApiError> {
        let octavia = &self.openstack.octavia;
        let members = async {
            match self.seen_members(&pool.id) {
                Some(members) => Ok(members),
                None => self.read_members(&pool.id).await,
            }
        };
        let monitor = async {
            match &pool.healthmonitor_id {
                Some(id) => octavia.get_health_monitor(id).await.map(Some),
                None => Ok(None),
            }
        };
        let (members, monitor) = tokio::try_join!(members, monitor)?;
        Ok(PoolFact { pool, members, monitor })
    }

    async fn read_members(&self, pool: &str) -> Result<Vec<MemberFact>, ApiError> {
        let octavia = &self.openstack.octavia;
        let members = octavia.list_members(pool, Vec::new());
        let (members, health) = tokio::try_join!(members, octavia.list_member_health(pool))?;
        let with_health = |member: Member| {
            let health = health.iter().find(|one| one.id == member.id);
            let operating_status =
                health.map_or_else(|| OperatingStatus::from(""), |one| one.operating_status.clone());
            MemberFact { member, operating_status }
        };
        Ok(members.into_iter().map(with_health).collect())
    }

    /// Returns the members of a pool as the controllers saw them; absent where they did not see all.
    fn seen_members(&self, pool: &str) -> Option<Vec<MemberFact>> {
        let seen = |kind: Kind, id: &str| -> Option<&Value> {
            let mut all = self.items.iter().flatten().map(|item| &item.seen);
            all.find_map(|seen: &Seen| seen.get(&(kind, id.to_owned())))
        };
        let ids = seen(Kind::Pool, pool)?["members"].as_array()?.iter().map(|member| member["id"].as_str());
        ids.map(|id| serde_json::from_value(seen(Kind::Member, id?)?.clone()).ok()).collect()
    }
}

fn published(service: &Service) -> impl Iterator<Item = IpAddr> {
    entries(service).iter().filter_map(|entry| entry.ip.as_ref()?.parse().ok())
}

/// Returns the address that the controller noted in an annotation.
fn announced(service: &Service) -> Option<IpAddr> {
    service.metadata.annotations.as_ref()?.get(LOAD_BALANCER_ADDRESS.key)?.parse().ok()
}

/// Returns the entries that the dry run would publish, if it would publish other addresses or names.
fn would_publish(item: &Item) -> Option<Vec<LoadBalancerIngress>> {
    let writes = item.calls.iter().filter_map(Call::in_cluster);
    let last = writes.rev().find(|write| write.path.contains("/services/"))?;
    let entries = |object: &Value| object["status"]["loadBalancer"]["ingress"].clone();
    let (before, after) = (entries(&last.before), entries(&last.after));
    if before == after {
        return None;
    }
    let after: Vec<LoadBalancerIngress> = serde_json::from_value(after).ok()?;
    let is_known = |entry: &LoadBalancerIngress| {
        let address = entry.ip.as_ref().and_then(|ip| ip.parse().ok());
        address.is_none_or(|address| !is_placeholder_address(address))
    };
    after.iter().all(is_known).then_some(after)
}

/// Returns the Service's warnings, except failures: the forecast shows those.
fn warnings(item: &Item) -> Vec<(String, String)> {
    let events = item.concluded.events.iter().filter(|event| {
        event.kind == "Service" && event.notice.severity == Severity::Warning && !is_failure(event)
    });
    let warnings = events.map(|event| (event.notice.reason.to_owned(), event.notice.message.clone()));
    warnings.collect::<BTreeSet<_>>().into_iter().collect()
}

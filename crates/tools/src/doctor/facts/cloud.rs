//! Gathers the load balancers of Services, and what the controllers would change, by a dry run as in `plan`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::{
    Change, ChangedField, CloudFacts, CloudObject, Forecast as Reach, Looked, Objects, ServedBy,
};
use openstack_ccm_openstack_api::dry_run::{DryRun, Kind, Reading, is_placeholder_address};
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancer};
use openstack_ccm_openstack_api::{ApiError, ErrorKind, OpenStack};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::load_balancer::annotations::LOAD_BALANCER_ADDRESS;
use serde_json::Value;

use super::doors::Network;
use super::{key_of, served_by};
use crate::cloud::log_in;
use crate::doctor::args::WalkArgs;
use crate::plan::MAX_SINGLE_SERVICES;
use crate::plan::as_if::AsIf;
use crate::plan::forecast::{Forecast, State};
use crate::plan::journal::{Call, Journal, Seen};
use crate::plan::line::Line;
use crate::plan::rehearsal::{Chosen, Item, Subject, rehearse};
use crate::plan::stage;

/// The annotation by which the controllers skip a Service that was up to date.
const SETTLED: &str = "loadbalancer.openstack.org/settled";
/// The annotation with the id of the load balancer that the controller made, regardless of the one that another annotation names.
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";

/// Gathers the facts about the cloud for these Services.
///
/// # Errors
/// The cloud cannot be used.
pub(super) async fn gather(
    provider: &OpenStackProvider,
    arguments: &WalkArgs,
    services: &[Service],
    nodes: &[IpAddr],
) -> anyhow::Result<BTreeMap<ServiceKey, Looked<CloudFacts>>> {
    let wanted = arguments.controller.load_balancer_class.as_deref();
    let mut facts = BTreeMap::new();
    let mut ours: BTreeMap<ServiceKey, &Service> = BTreeMap::new();
    for service in services {
        match served_by(service, wanted) {
            ServedBy::Ours => drop(ours.insert(key_of(service), service)),
            ServedBy::AnotherCloud(cloud, _) => {
                facts.insert(key_of(service), Err(format!("served by the controller of {cloud}")));
            }
            ServedBy::Class(class) if class.is_empty() => {
                let cause = "served without a class: remove --load-balancer-class".to_owned();
                facts.insert(key_of(service), Err(cause));
            }
            ServedBy::Class(class) => {
                let cause = format!("served by class {class}: add --load-balancer-class={class}");
                facts.insert(key_of(service), Err(cause));
            }
        }
    }
    if ours.is_empty() {
        return Ok(facts);
    }
    // With many Services the client reads whole lists of the project.
    let ahead = ours.len() > MAX_SINGLE_SERVICES;
    let openstack = log_in(provider, &arguments.person, |transport, project_id| {
        let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
        Arc::new(DryRun::new(transport, reading, Arc::new(Journal::default())))
    })
    .await?;
    let chosen = Chosen::Named(ours.keys().cloned().collect());
    // Without the annotation the dry run reads everything, including changes that leave no trace in the list of load balancers.
    let unsettled = vec![(SETTLED.to_owned(), None)];
    let as_if = AsIf { annotations: unsettled, ..AsIf::default() };
    let stage = stage(&arguments.controller, &arguments.person, provider, &chosen, as_if).await?;
    let items = rehearse(stage, &chosen, |_, _| {}).await?.items;
    let mut seen = Seen::new();
    for item in &items {
        seen.extend(item.seen.iter().map(|(key, object)| (key.clone(), object.clone())));
    }
    let network = Network::read(&openstack).await;
    let mut translated = None;
    for item in &items {
        let Subject::Service(key) = &item.subject else { continue };
        let Some(service) = ours.get(key) else { continue };
        let looker = Looker { openstack: &openstack, seen: &seen, network: &network };
        let mut found = looker.look(item, service).await;
        if is_narrowed(&found) {
            if translated.is_none() {
                translated = Some(match &network {
                    Ok(network) => network.translated(&openstack, nodes).await,
                    Err(cause) => Err(cause.clone()),
                });
            }
            found.translated.clone_from(&translated);
        }
        facts.insert(key.clone(), Ok(found));
    }
    Ok(facts)
}

/// Returns whether a listener restricts its clients.
fn is_narrowed(facts: &CloudFacts) -> bool {
    facts.children.objects.iter().any(|object| !object.allowed.is_empty())
}

/// The sources for reading the load balancers of all Services.
struct Looker<'a> {
    openstack: &'a OpenStack,
    /// The cloud objects that the controllers saw.
    seen: &'a Seen,
    network: &'a Looked<Network>,
}

impl Looker<'_> {
    async fn look(&self, item: &Item, service: &Service) -> CloudFacts {
        let forecast = Forecast::of(item);
        let mut facts = CloudFacts {
            forecast: reach(&forecast.state),
            changes: forecast.changes.iter().map(change).collect(),
            warnings: warnings(item),
            would_publish: would_publish(item),
            ..CloudFacts::default()
        };
        let annotations = service.metadata.annotations.as_ref();
        let owned = annotations.and_then(|all| all.get(OWNED)).cloned();
        for id in forecast.load_balancer.into_iter().chain(owned) {
            match self.openstack.octavia.get_load_balancer(&id).await {
                Ok(load_balancer) => {
                    self.fill(&mut facts, &load_balancer, service).await;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => facts.forecast = Reach::Unknown(error.to_string()),
            }
        }
        facts
    }

    async fn fill(&self, facts: &mut CloudFacts, load_balancer: &LoadBalancer, service: &Service) {
        facts.provider = load_balancer.provider.clone().unwrap_or_default();
        facts.load_balancer = Some(top(load_balancer));
        let mut subnets = BTreeMap::new();
        match self.children(&load_balancer.id, &mut subnets).await {
            Ok(objects) => facts.children.objects = objects,
            Err(error) => {
                facts.children = Objects { objects: Vec::new(), trouble: Some(error.to_string()) };
            }
        }
        let vips = vips(load_balancer);
        match self.network {
            Err(cause) => {
                facts.addresses = Some(Err(cause.clone()));
                facts.doors = Some(Err(cause.clone()));
            }
            Ok(network) => {
                let floating = network.floating_of(load_balancer.vip_port_id.as_deref());
                facts.floating.clone_from(&floating);
                let all: Vec<IpAddr> = vips.into_iter().chain(floating).collect();
                for address in published(service).chain(announced(service)).filter(|one| !all.contains(one)) {
                    if let Some(where_to) = network.astray(address, facts) {
                        facts.astray.insert(address, where_to);
                    }
                }
                facts.addresses = Some(Ok(all));
                facts.subnet = network.subnet(load_balancer.vip_subnet_id.as_deref());
                facts.doors = Some(Ok(network.doors(&facts.children.objects, load_balancer, &subnets)));
            }
        }
    }

    /// Returns all objects below a load balancer, and adds the subnets of members to `subnets`.
    async fn children(
        &self,
        id: &str,
        subnets: &mut BTreeMap<String, String>,
    ) -> Result<Vec<CloudObject>, ApiError> {
        let octavia = &self.openstack.octavia;
        let below = ChildFilter::load_balancer(id);
        let mut objects = Vec::new();
        for listener in octavia.list_listeners(&below).await? {
            objects.push(CloudObject {
                kind: "listener",
                provisioning: listener.provisioning_status.to_string(),
                operating: listener.operating_status.map(|one| one.to_string()).unwrap_or_default(),
                disabled: !listener.admin_state_up,
                allowed: listener.allowed_cidrs,
                protocol: Some(listener.protocol.to_string()),
                port: Some(listener.protocol_port),
                pool: listener.default_pool_id.clone(),
                id: listener.id,
                name: listener.name,
                ..CloudObject::default()
            });
        }
        for pool in octavia.list_pools(&below).await? {
            let members = match self.seen_members(&pool.id) {
                Some(members) => members,
                None => self.read_members(&pool.id).await?,
            };
            for (member, subnet) in members {
                subnets.extend(subnet.map(|subnet| (member.name.clone(), subnet)));
                objects.push(member);
            }
            if let Some(monitor) = &pool.healthmonitor_id {
                let monitor = octavia.get_health_monitor(monitor).await?;
                objects.push(CloudObject {
                    kind: "health monitor",
                    provisioning: monitor.provisioning_status.to_string(),
                    pool: Some(pool.id.clone()),
                    id: monitor.id,
                    ..CloudObject::default()
                });
            }
            objects.push(CloudObject {
                kind: "pool",
                provisioning: pool.provisioning_status.to_string(),
                operating: pool.operating_status.map(|one| one.to_string()).unwrap_or_default(),
                disabled: !pool.admin_state_up,
                protocol: Some(pool.protocol.to_string()),
                id: pool.id,
                name: pool.name,
                ..CloudObject::default()
            });
        }
        Ok(objects)
    }

    async fn read_members(&self, pool: &str) -> Result<Vec<(CloudObject, Option<String>)>, ApiError> {
        let octavia = &self.openstack.octavia;
        let health = octavia.list_member_health(pool).await?;
        let members = octavia.list_members(pool, Vec::new()).await?;
        let one = |member: openstack_ccm_openstack_api::octavia::Member| {
            let health = health.iter().find(|one| one.id == member.id);
            let object = CloudObject {
                kind: "member",
                provisioning: member.provisioning_status.to_string(),
                operating: health.map(|one| one.operating_status.to_string()).unwrap_or_default(),
                disabled: !member.admin_state_up,
                weight: Some(member.weight),
                port: Some(member.protocol_port),
                pool: Some(pool.to_owned()),
                name: format!("{}:{}", member.address, member.protocol_port),
                id: member.id,
                ..CloudObject::default()
            };
            (object, member.subnet_id)
        };
        Ok(members.into_iter().map(one).collect())
    }

    /// Returns the members of a pool as the controllers saw them; absent where they did not see all.
    fn seen_members(&self, pool: &str) -> Option<Vec<(CloudObject, Option<String>)>> {
        let seen = self.seen.get(&(Kind::Pool, pool.to_owned()))?;
        let ids = seen["members"].as_array()?.iter().map(|member| member["id"].as_str());
        ids.map(|id| {
            let member = self.seen.get(&(Kind::Member, id?.to_owned()))?;
            let text = |key: &str| member[key].as_str().map(str::to_owned);
            let port = u16::try_from(member["protocol_port"].as_u64()?).ok()?;
            let object = CloudObject {
                kind: "member",
                provisioning: text("provisioning_status")?,
                operating: text("operating_status")?,
                disabled: !member["admin_state_up"].as_bool()?,
                weight: member["weight"].as_u64().and_then(|weight| u16::try_from(weight).ok()),
                port: Some(port),
                pool: Some(pool.to_owned()),
                name: format!("{}:{port}", text("address")?),
                id: text("id")?,
                ..CloudObject::default()
            };
            Some((object, text("subnet_id")))
        })
        .collect()
    }
}

fn vips(load_balancer: &LoadBalancer) -> Vec<IpAddr> {
    let further = load_balancer.additional_vips.iter().filter_map(|vip| vip.ip_address.as_ref());
    load_balancer.vip_address.iter().chain(further).filter_map(|address| address.parse().ok()).collect()
}

fn published(service: &Service) -> impl Iterator<Item = IpAddr> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let entries = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.ip.as_ref()?.parse().ok())
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

fn reach(state: &State) -> Reach {
    match state {
        State::Converged => Reach::Settled,
        State::Waits(cause) => Reach::Waits(cause.clone()),
        State::Keeps(cause) => Reach::Keeps(cause.clone()),
        State::Refused(cause) => Reach::Refused(cause.clone()),
        State::Unknown(cause) => Reach::Unknown(cause.clone()),
    }
}

fn change(line: &Line) -> Change {
    let fields = line.fields.iter();
    Change {
        mark: line.mark.to_string(),
        kind: line.kind.clone(),
        name: line.name.clone(),
        parent: line.parent.clone(),
        fields: fields
            .map(|field| ChangedField {
                name: field.name.clone(),
                text: field.to_string(),
                removed: field.removed.clone(),
                added: field.added.clone(),
            })
            .collect(),
    }
}

/// Returns the Service's warnings, except failures: the forecast shows those.
fn warnings(item: &Item) -> Vec<(String, String)> {
    let of_failure = ["SyncLoadBalancerFailed", "UpdateLoadBalancerFailed", "DeleteLoadBalancerFailed"];
    let events = item.concluded.events.iter().filter(|event| {
        event.kind == "Service"
            && event.notice.severity == Severity::Warning
            && !of_failure.contains(&event.notice.reason)
    });
    let mut warnings: Vec<(String, String)> =
        events.map(|event| (event.notice.reason.to_owned(), event.notice.message.clone())).collect();
    warnings.sort();
    warnings.dedup();
    warnings
}

fn top(load_balancer: &LoadBalancer) -> CloudObject {
    CloudObject {
        kind: "load balancer",
        id: load_balancer.id.clone(),
        name: load_balancer.name.clone(),
        provisioning: load_balancer.provisioning_status.to_string(),
        operating: load_balancer.operating_status.to_string(),
        disabled: !load_balancer.admin_state_up,
        updated: load_balancer.updated_at.as_deref().and_then(time),
        ..CloudObject::default()
    }
}

/// Parses a time as Octavia writes it: in UTC, but without a time zone.
fn time(text: &str) -> Option<jiff::Timestamp> {
    let text = text.trim_end_matches('Z');
    let time: jiff::civil::DateTime = text.parse().ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

//! The load balancers of Services, and what the controllers would do to them: these run on a dry run, as for `plan`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::{
    Change, ChangedField, CloudFacts, CloudObject, Looked, Objects, Outlook as Reach,
};
use openstack_ccm_openstack_api::dry_run::ReadOnly;
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancer};
use openstack_ccm_openstack_api::{ApiError, ErrorKind, OpenStack};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;

use super::{doors, key_of};
use crate::subcommands::doctor::args::WalkArgs;
use crate::subcommands::plan::as_if::AsIf;
use crate::subcommands::plan::line::Line;
use crate::subcommands::plan::outlook::{Outlook, State};
use crate::subcommands::plan::rehearsal::{Chosen, Item, Subject, rehearse};
use crate::subcommands::plan::stage;

/// The annotation by which the controllers save themselves a look at what was up to date.
const SETTLED: &str = "loadbalancer.openstack.org/settled";

/// Looks at the cloud of these Services.
///
/// # Errors
/// The cloud cannot be used.
pub(super) async fn gather(
    provider: &OpenStackProvider,
    arguments: &WalkArgs,
    services: &[Service],
) -> anyhow::Result<BTreeMap<ServiceKey, Looked<CloudFacts>>> {
    let openstack = provider.log_in_through(|transport, _| Arc::new(ReadOnly::new(transport))).await?;
    let wanted = arguments.controller.load_balancer_class.as_deref();
    let mut facts = BTreeMap::new();
    let mut ours = Vec::new();
    for service in services {
        let class = service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref());
        if class == wanted {
            ours.push(key_of(service));
        } else {
            let class = class.unwrap_or("none");
            let cause = format!("openstack-ccm does not serve it: its loadBalancerClass is {class}");
            facts.insert(key_of(service), Err(cause));
        }
    }
    if ours.is_empty() {
        return Ok(facts);
    }
    let chosen = Chosen::Named(ours);
    // Without it everything is read, also what somebody changed without a trace in the list of load balancers.
    let unsettled = vec![(SETTLED.to_owned(), None)];
    let as_if = AsIf { annotations: unsettled, ..AsIf::default() };
    let stage = stage(&arguments.controller, &arguments.person, provider, &chosen, as_if).await?;
    for item in rehearse(stage, &chosen, |_, _| {}).await?.items {
        let Subject::Service(key) = &item.subject else { continue };
        facts.insert(key.clone(), Ok(look(&openstack, &item).await));
    }
    Ok(facts)
}

async fn look(openstack: &OpenStack, item: &Item) -> CloudFacts {
    let outlook = Outlook::of(item);
    let mut facts = CloudFacts {
        outlook: reach(&outlook.state),
        changes: outlook.changes.iter().map(change).collect(),
        warnings: warnings(item),
        ..CloudFacts::default()
    };
    let Some(id) = &outlook.load_balancer else { return facts };
    match openstack.octavia.get_load_balancer(id).await {
        Ok(load_balancer) => {
            facts.provider = load_balancer.provider.clone().unwrap_or_default();
            facts.load_balancer = Some(top(&load_balancer));
            match children(openstack, id).await {
                Ok(objects) => facts.children.objects = objects,
                Err(error) => {
                    facts.children = Objects { objects: Vec::new(), trouble: Some(error.to_string()) };
                }
            }
            let vip: Option<IpAddr> = load_balancer.vip_address.as_ref().and_then(|ip| ip.parse().ok());
            facts.doors = Some(doors::of(openstack, &facts.children.objects, vip).await);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => facts.outlook = Reach::Unknown(error.to_string()),
    }
    facts
}

fn reach(state: &State) -> Reach {
    match state {
        State::Converged => Reach::Settled,
        State::Waits(cause) => Reach::Waits(cause.clone()),
        State::Keeps(cause) | State::Refused(cause) => Reach::Refused(cause.clone()),
        State::Unknown(cause) => Reach::Unknown(cause.clone()),
    }
}

fn change(line: &Line) -> Change {
    let fields = line.fields.iter();
    Change {
        mark: line.mark.to_string(),
        kind: line.kind.clone(),
        name: line.name.clone(),
        fields: fields
            .map(|field| ChangedField { name: field.name.clone(), text: field.to_string() })
            .collect(),
    }
}

/// Warnings about the Service that are no failure: that one is seen from how far the controller gets.
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
        updated: load_balancer.updated_at.as_deref().and_then(time),
        ..CloudObject::default()
    }
}

/// Octavia writes times in UTC without saying so.
fn time(text: &str) -> Option<jiff::Timestamp> {
    let text = text.trim_end_matches('Z');
    let time: jiff::civil::DateTime = text.parse().ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// All that is below a load balancer.
async fn children(openstack: &OpenStack, id: &str) -> Result<Vec<CloudObject>, ApiError> {
    let octavia = &openstack.octavia;
    let below = ChildFilter::load_balancer(id);
    let mut objects = Vec::new();
    for listener in octavia.list_listeners(&below).await? {
        objects.push(CloudObject {
            kind: "listener",
            provisioning: listener.provisioning_status.to_string(),
            protocol: Some(listener.protocol.to_string()),
            port: Some(listener.protocol_port),
            pool: listener.default_pool_id.clone(),
            id: listener.id,
            name: listener.name,
            ..CloudObject::default()
        });
    }
    for pool in octavia.list_pools(&below).await? {
        let health = octavia.list_member_health(&pool.id).await?;
        for member in octavia.list_members(&pool.id, Vec::new()).await? {
            let health = health.iter().find(|one| one.id == member.id);
            objects.push(CloudObject {
                kind: "member",
                provisioning: member.provisioning_status.to_string(),
                operating: health.map(|one| one.operating_status.to_string()).unwrap_or_default(),
                port: Some(member.protocol_port),
                pool: Some(pool.id.clone()),
                name: format!("{}:{}", member.address, member.protocol_port),
                id: member.id,
                ..CloudObject::default()
            });
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
            protocol: Some(pool.protocol.to_string()),
            id: pool.id,
            name: pool.name,
            ..CloudObject::default()
        });
    }
    Ok(objects)
}

//! A quarter of the runs: the cloud refuses one call, one member, or members beyond a quota, for as long as the story lasts and long after,
//! and nothing else goes wrong. Then everything is as in the calm run but for what needs that; once it is taken again, nothing is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use fastrand::Rng;
use http::Method;
use openstack_ccm_openstack_sim::{Fault, FaultId, Sim as Cloud};
use serde_json::{Value, json};

use super::LONG_ENOUGH;
use super::stage::{SHARED, Stage};
use crate::support::PROXY;

/// What may be missing while a call is refused.
#[derive(Clone, PartialEq, Eq)]
enum Costs {
    /// Listeners that are not there yet.
    NewPorts,
    /// Listeners that are not there yet, and changes of members.
    Members,
    /// What a Service that joins the load balancer of others needs the announcement for.
    Joining,
    /// Listeners that are not wanted any more stay.
    Removal,
    /// No listener and no member.
    NoPort,
    /// The member with this address.
    Member(String),
    /// Members and listeners that are not there yet, where there are as many members as may be.
    Quota(usize),
}

/// Method and path of a call, and what needs it. What becomes of clouds without tags is tested in `crate::optional_parts`.
const CALLS: [(Method, &str, Costs); 17] = [
    (Method::POST, "loadbalancers", Costs::NewPorts),
    (Method::PUT, "loadbalancers/[^/]+", Costs::Joining),
    (Method::DELETE, "loadbalancers/[^/]+", Costs::Removal),
    (Method::POST, "listeners", Costs::NewPorts),
    (Method::PUT, "listeners/[^/]+", Costs::NoPort),
    (Method::DELETE, "listeners/[^/]+", Costs::Removal),
    (Method::POST, "pools", Costs::NewPorts),
    (Method::PUT, "pools/[^/]+", Costs::NoPort),
    (Method::DELETE, "pools/[^/]+", Costs::NoPort),
    (Method::POST, "pools/[^/]+/members", Costs::Members),
    (Method::PUT, "pools/[^/]+/members", Costs::Members),
    (Method::POST, "healthmonitors", Costs::NewPorts),
    (Method::PUT, "healthmonitors/[^/]+", Costs::NoPort),
    (Method::DELETE, "healthmonitors/[^/]+", Costs::NoPort),
    (Method::POST, "floatingips", Costs::NoPort),
    (Method::PUT, "floatingips/[^/]+", Costs::NoPort),
    (Method::DELETE, "floatingips/[^/]+", Costs::NoPort),
];
const HEADER: &str = "loadbalancer.openstack.org/x-forwarded-for";
const STATUSES: [u16; 4] = [400, 403, 404, 409];

/// What listeners lead to: load balancer and port, and the addresses of members.
pub(super) type Ways = BTreeMap<(String, u64), BTreeSet<String>>;

/// A call, a member or a quota that is refused from now on.
pub(super) struct Refusal {
    what: String,
    costs: Costs,
    fault: Option<FaultId>,
}

impl Refusal {
    pub(super) fn begin(random: &mut Rng, cloud: &Cloud) -> Self {
        let place = random.usize(0..CALLS.len() + 6);
        let Some((method, path, costs)) = CALLS.get(place).cloned() else {
            return if place.is_multiple_of(2) {
                Self::of_member(random, cloud)
            } else {
                Self::by_quota(random, cloud)
            };
        };
        // What is not there to be deleted is gone: that is no refusal.
        let statuses = if method == Method::DELETE { &STATUSES[..2] } else { &STATUSES[..] };
        let status = statuses[random.usize(0..statuses.len())];
        let what = format!("{method} {path} with {status}");
        let fault = Fault::new().method(method).path(&format!("/{path}($|[?])")).answer(status, body(path));
        Self { what, costs, fault: Some(cloud.faults().add(fault)) }
    }

    /// The member of a node that is there, or of one that may join.
    fn of_member(random: &mut Rng, cloud: &Cloud) -> Self {
        let mut addresses: Vec<IpAddr> =
            cloud.nodes().iter().map(|node| node.addresses[0].parse().unwrap()).collect();
        if let Some(IpAddr::V4(last)) = addresses.iter().max() {
            let last = u32::from(*last);
            addresses.extend((1..4).map(|more| IpAddr::from(Ipv4Addr::from(last + more))));
        }
        let address = addresses[random.usize(0..addresses.len())].to_string();
        cloud.reserve_member_address(&address);
        Self { what: format!("members with {address}"), costs: Costs::Member(address), fault: None }
    }

    fn by_quota(random: &mut Rng, cloud: &Cloud) -> Self {
        let limit = count(cloud) + random.usize(0..12);
        cloud.set_octavia_quota("member", i64::try_from(limit).unwrap());
        Self { what: format!("more than {limit} members"), costs: Costs::Quota(limit), fault: None }
    }

    /// Fails if anything else is missing than what needs the call.
    pub(super) fn costs_what_needs_it(&self, cloud: &Cloud, calm: &Ways) {
        let there = ways(cloud);
        let is_excused = |(load_balancer, _): &(String, u64)| match &self.costs {
            Costs::NewPorts | Costs::Members | Costs::Quota(_) => true,
            Costs::Joining => load_balancer == SHARED,
            Costs::Removal | Costs::NoPort | Costs::Member(_) => false,
        };
        let missing: Vec<_> =
            calm.keys().filter(|way| !there.contains_key(way) && !is_excused(way)).collect();
        assert!(missing.is_empty(), "{} closes {missing:?}", self.what);
        let is_left = |way: &&(String, u64)| !calm.contains_key(way) && self.costs != Costs::Removal;
        let left: Vec<_> = there.keys().filter(is_left).collect();
        assert!(left.is_empty(), "{} leaves {left:?}", self.what);
        for (way, members) in &there {
            let expected = calm.get(way).filter(|_| self.costs != Costs::Members);
            let right = expected.is_none_or(|expected| self.is_right(cloud, expected, members));
            assert!(right, "{}: {way:?} leads to {members:?}, and not to {expected:?}", self.what);
        }
    }

    /// Whether a pool has all members that it can have, and none beside them but a last one.
    fn is_right(&self, cloud: &Cloud, expected: &BTreeSet<String>, members: &BTreeSet<String>) -> bool {
        let mut missing = expected.difference(members);
        let is_full = matches!(&self.costs, Costs::Quota(limit) if count(cloud) >= *limit);
        let is_excused = match &self.costs {
            Costs::Member(address) => missing.all(|one| one == address),
            _ => missing.next().is_none() || is_full,
        };
        let extra = members.difference(expected).count();
        // A pool that was made when the quota had no room has no member yet; that none is emptied, the watch sees at each write.
        let may_be_empty = expected.is_empty() || is_full;
        is_excused && (extra == 0 || extra == members.len()) && (!members.is_empty() || may_be_empty)
    }

    /// The call is taken again. What is not sent again by itself is sent when the Service changes, or by a person, as the Event asks for.
    /// A port that was refused until its Service asked for the PROXY protocol beside a header is made once the Service asks for one of
    /// the two; in the calm run it was made before that.
    pub(super) async fn end(self, stage: &Stage) {
        let world = &stage.world;
        self.fault.into_iter().for_each(|fault| world.cloud.faults().remove(fault));
        world.cloud.free_member_addresses();
        world.cloud.set_octavia_quota("member", -1);
        // Octavia leaves the VIP port of a load balancer that it refuses for its members.
        for port in world.cloud.leaked_ports() {
            let path = format!("/v2.0/ports/{}", text(&port["id"]));
            assert_eq!(world.cloud.admin().delete("network", &path).0, 204, "{port}");
        }
        delete_floating_ips_that_events_name(stage);
        let contradictions: BTreeMap<String, String> =
            world.kube.list("services", "default").unwrap().iter().filter_map(contradiction).collect();
        let interrupted = interrupted(stage);
        for value in [Some("yes"), None] {
            for service in world.kube.list("services", "default").unwrap() {
                let name = service["metadata"]["name"].as_str().unwrap();
                world.annotate(name, "example.org/changed", value);
                if let Some(asked) = contradictions.get(name) {
                    world.annotate(name, PROXY, value.is_none().then_some(asked));
                }
                if let Some(asked) = interrupted.get(name) {
                    let other = asked.is_none().then_some("true");
                    world.annotate(name, HEADER, if value.is_some() { other } else { asked.as_deref() });
                }
            }
            tokio::time::sleep(LONG_ENOUGH).await;
        }
    }
}

/// The name of a Service that asks for the PROXY protocol beside a header, and the version that it asks for.
fn contradiction(service: &Value) -> Option<(String, String)> {
    let annotations = &service["metadata"]["annotations"];
    annotations[HEADER].as_str()?;
    Some((text(&service["metadata"]["name"]), annotations[PROXY].as_str()?.to_owned()))
}

/// The Services whose listeners are not replaced again before a person changes the setting back and forth, as an Event says, and
/// what they ask for by the header.
fn interrupted(stage: &Stage) -> BTreeMap<String, Option<String>> {
    let kube = &stage.world.kube;
    let events = kube.list("events", "").unwrap();
    let is_told = |service: &Value| {
        let of_service = |event: &&Value| event["involvedObject"]["name"] == service["metadata"]["name"];
        events
            .iter()
            .filter(of_service)
            .any(|event| text(&event["message"]).contains("interrupts connections"))
    };
    let services = kube.list("services", "default").unwrap();
    let asked = |service: &Value| service["metadata"]["annotations"][HEADER].as_str().map(str::to_owned);
    services
        .iter()
        .filter(|one| is_told(one))
        .map(|one| (text(&one["metadata"]["name"]), asked(one)))
        .collect()
}

/// Where the cloud's policy forbids their deletion, they are detached and left to a person.
fn delete_floating_ips_that_events_name(stage: &Stage) {
    let cloud = &stage.world.cloud;
    for event in stage.world.kube.list("events", "").unwrap() {
        let message = text(&event["message"]);
        let is_named =
            |one: &&Value| event["reason"] == "FloatingIPNotDeleted" && message.contains(&text(&one["id"]));
        for floating_ip in cloud.floating_ips().iter().filter(is_named) {
            assert!(floating_ip["port_id"].is_null(), "{message}: {floating_ip}");
            let path = format!("/v2.0/floatingips/{}", text(&floating_ip["id"]));
            assert_eq!(cloud.admin().delete("network", &path).0, 204, "{floating_ip}");
        }
    }
}

fn body(path: &str) -> Value {
    match path.starts_with("floatingips") {
        true => {
            json!({"NeutronError": {"type": "BadRequest", "message": "This is not taken.", "detail": ""}})
        }
        false => json!({"faultcode": "Client", "faultstring": "This is not taken.", "debuginfo": null}),
    }
}

/// How many members there are.
fn count(cloud: &Cloud) -> usize {
    cloud.pools().iter().map(|pool| cloud.members(&text(&pool["id"])).len()).sum()
}

/// What the listeners of all load balancers lead to.
pub(super) fn ways(cloud: &Cloud) -> Ways {
    let names: BTreeMap<String, String> =
        cloud.load_balancers().iter().map(|one| (text(&one["id"]), text(&one["name"]))).collect();
    let way = |listener: &Value| {
        let name = names.get(&text(&listener["loadbalancers"][0]["id"]))?;
        let members = cloud.members(listener["default_pool_id"].as_str()?);
        let addresses = members.iter().map(|member| text(&member["address"])).collect();
        Some(((name.clone(), listener["protocol_port"].as_u64()?), addresses))
    };
    cloud.listeners().iter().filter_map(way).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

//! Steps that scenarios share: who asks, what green and red mean, how a Service is waited for and removed.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::{Map, Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::wait::{soon, until};
use crate::network::ask::{Outcome, from_namespace};
use crate::network::ipv6::NEIGHBOUR_ADDRESS_V6;
use crate::network::{NEIGHBOUR, NEIGHBOUR_ADDRESS, NODES, NodePlace, OUTSIDE, OUTSIDE_ADDRESS};
use crate::openstack::api::OpenStack;
use crate::openstack::leaks::left_behind;
use crate::openstack::tree::Tree;
use crate::stage::Stage;

/// Requests from each client that must all succeed or all fail: kube-proxy picks an endpoint at random.
const ROUNDS: usize = 4;
/// Longest time that rules of kube-proxy need after a change of the status; measured: half a second.
const RULES: Duration = Duration::from_secs(15);

/// Where a load balancer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// At its VIP in the cluster's network.
    Internal,
    /// At a floating IP.
    Floating,
    /// At its IPv6 VIP in the cluster's network.
    Ipv6,
}

/// Somebody who asks, and the address that the ingress must see.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// In words.
    pub who: String,
    /// The network namespace.
    pub namespace: String,
    /// The address that the load balancer sees.
    pub address: String,
}

/// Pods on two nodes and a process on a node.
pub(crate) fn clients_inside(stage: &Stage, reach: Reach) -> Vec<Client> {
    let seen = |place: NodePlace| match reach {
        Reach::Internal => place.address(),
        // As Neutron's router does it with connections that it turns around.
        Reach::Floating => stage.cloud.router_address.clone(),
        Reach::Ipv6 => place.address_v6(),
    };
    let pod = |place: NodePlace| Client {
        who: format!("pod on {}", place.name()),
        namespace: place.client(),
        address: seen(place),
    };
    let process =
        Client { who: "process on node1".into(), namespace: NODES[0].name(), address: seen(NODES[0]) };
    vec![pod(NODES[0]), pod(NODES[1]), process]
}

/// A client that is no part of the cluster.
pub(crate) fn client_outside(reach: Reach) -> Client {
    let (namespace, address) = match reach {
        Reach::Internal => (NEIGHBOUR, NEIGHBOUR_ADDRESS),
        Reach::Floating => (OUTSIDE, OUTSIDE_ADDRESS),
        Reach::Ipv6 => (NEIGHBOUR, NEIGHBOUR_ADDRESS_V6),
    };
    Client { who: "client outside".into(), namespace: namespace.into(), address: address.into() }
}

fn reached(client: &Client, host: &str, port: u16) -> Result<()> {
    let outcome = from_namespace(&client.namespace, host, port)?;
    ensure!(
        outcome.client() == Some(&client.address),
        "{} asked {host} and should be seen as {}: {outcome}",
        client.who,
        client.address
    );
    Ok(())
}

/// All clients are answered, and the ingress sees the right address, every time.
pub(crate) fn green(host: &str, clients: &[Client]) -> Result<String> {
    green_on(host, 80, clients)
}

/// [`green`] on another port.
pub(crate) fn green_on(host: &str, port: u16, clients: &[Client]) -> Result<String> {
    for client in clients {
        until(&format!("{} reaches {host}", client.who), RULES, || reached(client, host, port))?;
    }
    for client in clients {
        for _ in 0..ROUNDS {
            reached(client, host, port)?;
        }
    }
    Ok(format!("{} of {} requests answered", clients.len() * ROUNDS, clients.len() * ROUNDS))
}

/// No client is answered, and nginx complains of each request that there is no PROXY header.
pub(crate) fn red(stage: &Stage, host: &str, clients: &[Client]) -> Result<String> {
    red_on(stage, host, 80, clients)
}

/// [`red`] on another port.
pub(crate) fn red_on(stage: &Stage, host: &str, port: u16, clients: &[Client]) -> Result<String> {
    let broken = |client: &Client| {
        let outcome = from_namespace(&client.namespace, host, port)?;
        ensure!(outcome == Outcome::Closed, "{} asked {host}: {outcome}", client.who);
        Ok(())
    };
    for client in clients {
        until(&format!("{} is short-circuited", client.who), RULES, || broken(client))?;
    }
    let before = stage.ingress.broken_headers();
    for client in clients {
        for _ in 0..ROUNDS {
            broken(client)?;
        }
    }
    let sent = clients.len() * ROUNDS;
    let complaints = until("nginx has written its log", Duration::from_secs(5), || {
        let complaints = stage.ingress.broken_headers() - before;
        ensure!(complaints == sent, "{sent} requests, {complaints} lines `broken header`");
        Ok(complaints)
    })?;
    Ok(format!("{sent} of {sent} requests cut, nginx logs `broken header` {complaints} times"))
}

/// Creates a public Service of one port and an internal one of two.
pub(crate) fn create_both(
    api: &Kubernetes,
    public: &str,
    internal: &str,
    places: &[NodePlace],
) -> Result<()> {
    ServiceSketch::proxy(public, "v2", false).create(api, places)?;
    let mut internal = ServiceSketch::proxy(internal, "v1", true);
    internal.ports = vec![80, 8080];
    internal.create(api, places)
}

/// Waits until Octavia has done all its work on the load balancer of a Service.
pub(crate) fn at_rest(cloud: &OpenStack, service: &str) -> Result<()> {
    soon("Octavia is at rest", || Tree::of(cloud, service)?.settled())
}

/// Waits until the status of a Service lists exactly one address with `ipMode: Proxy`, and returns the address.
pub(crate) fn published_through(api: &Kubernetes, service: &str) -> Result<String> {
    let [address] = all_published_through(api, service)?;
    Ok(address)
}

/// Waits until the status of a Service lists exactly so many addresses, each with `ipMode: Proxy`, and returns them.
pub(crate) fn all_published_through<const COUNT: usize>(
    api: &Kubernetes,
    service: &str,
) -> Result<[String; COUNT]> {
    soon(&format!("{service} is published with {COUNT} addresses and ipMode Proxy"), || {
        let ingress = api.ingress(service)?;
        let entries = ingress.as_array().cloned().unwrap_or_default();
        let proxied = !entries.is_empty() && entries.iter().all(|entry| entry["ipMode"] == "Proxy");
        ensure!(proxied, "{ingress}; {}", waiting(api, service));
        let addresses: Vec<String> =
            entries.iter().filter_map(|entry| entry["ip"].as_str().map(str::to_owned)).collect();
        addresses.try_into().map_err(|_| anyhow!("{ingress}"))
    })
}

/// None of these gets through to a port of an address, not even a refusal. Octavia writes who may in a security group, which
/// takes effect a moment after Octavia has finished.
pub(crate) fn shut_out(host: &str, port: u16, clients: &[Client]) -> Result<()> {
    until(&format!("nobody reaches {host}:{port}"), RULES, || get_nothing(host, port, clients))
}

fn get_nothing(host: &str, port: u16, clients: &[Client]) -> Result<()> {
    // At the same time, because each of them waits for as long as it can.
    let outcomes: Vec<Result<Outcome>> = std::thread::scope(|scope| {
        let ask = |client: &Client| from_namespace(&client.namespace, host, port);
        let asked: Vec<_> = clients.iter().map(|client| scope.spawn(move || ask(client))).collect();
        let outcomes =
            asked.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("a request panicked")));
        outcomes.collect()
    });
    clients.iter().zip(outcomes).try_for_each(|(client, outcome)| {
        let outcome = outcome?;
        ensure!(outcome == Outcome::TimedOut, "{} asked {host}:{port}: {outcome}", client.who);
        Ok(())
    })
}

/// Writes who may use a Service.
pub(crate) fn set_source_ranges(api: &Kubernetes, service: &str, ranges: &[&str]) -> Result<()> {
    let change = json!({"spec": {"loadBalancerSourceRanges": ranges}});
    api.patch(&Kubernetes::service_path(service), &change).map(drop)
}

/// Writes annotations of the product, by the part of their keys that differs; null removes.
pub(crate) fn annotate(api: &Kubernetes, service: &str, values: &[(&str, Value)]) -> Result<()> {
    let full = values.iter().map(|(key, value)| (format!("loadbalancer.openstack.org/{key}"), value.clone()));
    let change = json!({"metadata": {"annotations": full.collect::<Map<_, _>>()}});
    api.patch(&Kubernetes::service_path(service), &change).map(drop)
}

/// The address of the load balancer, from the annotation.
pub(crate) fn address(api: &Kubernetes, service: &str) -> Result<String> {
    let service = api.service(service)?;
    let annotation = &service["metadata"]["annotations"]["loadbalancer.openstack.org/load-balancer-address"];
    Ok(annotation.as_str().context("the Service has no annotation with its address")?.to_owned())
}

fn waiting(api: &Kubernetes, service: &str) -> String {
    let events = api.events(service).unwrap_or_default();
    events.last().map_or("no event".to_owned(), |(reason, note)| format!("last event {reason}: {note}"))
}

/// Waits for a warning about a Service whose reason is this and whose note has all of these parts, and returns the note.
pub(crate) fn warned(api: &Kubernetes, service: &str, reason: &str, parts: &[&str]) -> Result<String> {
    soon(&format!("a warning {reason} about {service} has {parts:?}"), || {
        let warnings = api.warnings(service)?;
        let fits =
            |(kind, note): &&(String, String)| kind == reason && parts.iter().all(|part| note.contains(part));
        let found = warnings.iter().find(fits).with_context(|| format!("{warnings:?}"))?;
        Ok(found.1.clone())
    })
}

/// Writes the status as a controller without `ipMode` does: the address alone.
pub(crate) fn publish_as_before(api: &Kubernetes, service: &str, address: &str) -> Result<()> {
    api.write_ingress(service, &json!([{"ip": address}])).map(drop)
}

/// Deletes Services, waits until they are gone, and looks whether anything is left anywhere.
pub(crate) fn release(stage: &Stage, services: &[&str]) -> Result<String> {
    remove(stage, services)?;
    nothing_left(stage)
}

/// Deletes Services and waits until they are gone.
pub(crate) fn remove(stage: &Stage, services: &[&str]) -> Result<()> {
    let api = stage.api()?;
    for service in services {
        delete_service(&api, service)?;
    }
    until_gone(stage, services)
}

/// Waits until Services that were deleted are gone.
pub(crate) fn until_gone(stage: &Stage, services: &[&str]) -> Result<()> {
    let api = stage.api()?;
    for service in services {
        soon(&format!("{service} is gone"), || {
            api.gone(&Kubernetes::service_path(service)).with_context(|| waiting(&api, service))
        })?;
    }
    Ok(())
}

/// Nothing of ours is in the cloud.
pub(crate) fn nothing_left(stage: &Stage) -> Result<String> {
    // The Services are gone only after the load balancers, but Octavia's own clean-up of ports ends a little later.
    until("the cloud is empty", Duration::from_secs(30), || {
        let left = left_behind(&stage.cloud.user)?;
        if !left.is_empty() {
            bail!("left behind: {}", left.join(", "));
        }
        Ok(())
    })?;
    Ok("no load balancer, floating IP, port or security group is left".into())
}

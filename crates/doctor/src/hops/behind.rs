//! The application behind a Service: its endpoints and pods, what it makes of the header, and whether packets have to come through the
//! load balancer for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{ContainerPort, LoadBalancerIngress, Pod, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use openstack_ccm_core::service::Protocol;

use super::look::{Application, Look};
use crate::backend::{Entrance, Judgement, judge};
use crate::facts::Basis;
use crate::hop::Port;
use crate::leftovers::external_ips_of;
use crate::policy::Receiver;

/// A pod, or something else, that gets the packets to a port of the Service.
pub(super) struct Target<'a> {
    pub(super) address: IpAddr,
    pub(super) number: i32,
    /// Absent where no pod is known to have the address.
    pub(super) pod: Option<&'a Pod>,
}

impl Look<'_> {
    /// Finds the ports at which the application also serves packets that bypass the load balancer.
    pub(super) fn judge_bypassed(&self) -> BTreeMap<Port, bool> {
        let path = self.path().ok();
        let has_header = path.is_some_and(|path| path.header);
        let served = |port: Port| {
            let comes_without = has_header && path.is_some_and(|path| !path.sends_header(port));
            if port.protocol != Protocol::Tcp || comes_without {
                return Some((port, true));
            }
            let takes = self.takes(port, false);
            (has_header && takes.contains(&true)).then(|| (port, !takes.contains(&false)))
        };
        self.ports().filter_map(|(port, _)| served(port)).collect()
    }

    /// Returns what different pods do at a port: whether they serve connections that come with the header, or without it.
    pub(super) fn takes(&self, port: Port, header: bool) -> BTreeSet<bool> {
        let applications = self.applications.iter().filter(|one| one.ports.contains(&port));
        applications.map(|one| one.judgement.expects.takes(header) == Some(true)).collect()
    }

    /// Judges the application at each TCP port, by each of its pods.
    pub(super) fn judge_applications(&self) -> Vec<Application> {
        let Ok(backend) = &self.facts.backend else { return Vec::new() };
        let sources = self.sources();
        let nodes: Vec<IpAddr> = self.cluster.node_addresses().collect();
        let mut all: Vec<Application> = Vec::new();
        for (port, spec) in self.ports().filter(|(port, _)| port.protocol == Protocol::Tcp) {
            let header = self.path().is_ok_and(|path| path.sends_header(port));
            let mut found: Vec<Judgement> = Vec::new();
            for (pod, target) in self.serving(port, spec, &backend.pods) {
                let entrance =
                    Entrance { target, service_port: port.number, sources: &sources, nodes: &nodes };
                let judgement = judge(backend, pod, entrance);
                // Pods of one kind differ by their names alone.
                let same =
                    |one: &Judgement| one.program == judgement.program && one.expects == judgement.expects;
                if !found.iter().any(same) {
                    found.push(judgement);
                }
            }
            let of_all = found.len() == 1;
            for judgement in found {
                let is_it = |one: &&mut Application| {
                    one.judgement == judgement && one.header == header && one.of_all == of_all
                };
                match all.iter_mut().find(is_it) {
                    Some(one) => drop(one.ports.insert(port)),
                    None => all.push(Application { ports: [port].into(), header, judgement, of_all }),
                }
            }
        }
        all
    }

    /// Returns the pods that get the packets to a port, and their ports: those of endpoints, or all where no endpoint names one.
    fn serving<'b>(&'b self, port: Port, spec: &ServicePort, pods: &'b [Pod]) -> Vec<(&'b Pod, i32)> {
        let of = |target: Target<'b>| Some((target.pod?, target.number));
        let named: Vec<(&Pod, i32)> = self.targets(port).into_iter().filter_map(of).collect();
        if named.is_empty() { pods.iter().map(|pod| (pod, target_of(spec, pod))).collect() } else { named }
    }

    /// Lists what gets the packets to a port.
    pub(super) fn targets(&self, port: Port) -> Vec<Target<'_>> {
        let Some((_, spec)) = self.ports().find(|(one, _)| *one == port) else { return Vec::new() };
        let pods: &[Pod] = self.facts.backend.as_ref().map_or(&[], |backend| &backend.pods);
        let slices = self.facts.slices.as_deref().unwrap_or_default();
        let of_endpoint = |(slice, endpoint): (&EndpointSlice, &'_ Endpoint)| {
            let pod = pods.iter().find(|pod| is_of(endpoint, pod));
            let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
            let at = |address: IpAddr| {
                numbers(slice, port, spec).into_iter().map(move |number| Target { address, number, pod })
            };
            addresses.flat_map(at).collect::<Vec<_>>()
        };
        used(slices).flat_map(of_endpoint).collect()
    }

    /// Returns what gets the packets to a port as policies see it: a pod that is not known is what the Service asks for.
    pub(super) fn receivers(&self, port: Port) -> Vec<Receiver> {
        let spec = self.ports().find(|(one, _)| *one == port).map(|(_, spec)| spec);
        let named = || match spec.and_then(|spec| spec.target_port.clone()) {
            Some(IntOrString::String(name)) => vec![name],
            _ => Vec::new(),
        };
        let receiver = |Target { address, number, pod }: Target<'_>| Receiver {
            address,
            port: number,
            names: pod.map_or_else(named, |pod| names_of(pod, number, port.protocol)),
            labels: Some(
                pod.map_or_else(|| self.selector(), |pod| pod.metadata.labels.clone().unwrap_or_default()),
            ),
        };
        self.targets(port).into_iter().map(receiver).collect()
    }

    /// Returns the labels that the Service selects.
    pub(super) fn selector(&self) -> BTreeMap<String, String> {
        self.facts.service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default()
    }

    /// Returns the networks from which packets reach a pod through the load balancer.
    ///
    /// With `externalTrafficPolicy: Local` that is the load balancer's network. Otherwise a node replaces the source by its own
    /// address on the way to another node; whether it does so before a policy for its own pods applies depends on the network plugin.
    pub(super) fn sources(&self) -> Vec<IpNet> {
        let mut sources: BTreeSet<IpNet> = BTreeSet::new();
        if let Ok(cloud) = &self.facts.cloud {
            let members = cloud.pools().iter().flat_map(|pool| &pool.members);
            sources.extend(members.filter_map(|member| cloud.sends_from(&member.member)));
        }
        if !self.is_local() {
            sources.extend(self.cluster.node_addresses().map(IpNet::from));
        }
        sources.into_iter().collect()
    }

    /// Finds the destinations to which nodes send packets around the load balancer: by the mode, or because service proxies do not honour
    /// the mode, and it does no harm.
    pub(super) fn judge_around(&self) -> BTreeMap<String, bool> {
        let mut nodes = self.cluster.live_nodes();
        let some = self.left_to().is_none() && nodes.any(|node| !node.honours) && !self.needs_load_balancer();
        let all = self.cluster.live_nodes().all(|node| !node.honours && node.basis != Basis::Guessed);
        let external: Vec<&String> = external_ips_of(&self.facts.service).collect();
        let of_entry = |entry: &LoadBalancerIngress| {
            let address = entry.ip.clone()?;
            let by_mode = self.short_circuited().any(|one| one == entry) || external.contains(&&address);
            (by_mode || some).then_some((address, by_mode || all))
        };
        self.entries.iter().filter_map(of_entry).collect()
    }

    /// Returns whether what bypasses the load balancer is lost, at least at some ports and pods.
    pub(super) fn needs_load_balancer(&self) -> bool {
        let is_lost = || self.ports().any(|(port, _)| self.bypassed.get(&port) != Some(&true));
        self.path().map_or(true, |path| path.needs.is_some() && is_lost())
    }
}

/// Lists the endpoints of a slice, which may have null in place of a list.
pub(super) fn endpoints(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    slice.endpoints.iter().flatten()
}

/// Lists the endpoints that get packets, each with its slice. As in kube-proxy these are ready endpoints, or, if there are none, endpoints
/// that terminate and still serve.
pub(super) fn used(slices: &[EndpointSlice]) -> impl Iterator<Item = (&EndpointSlice, &Endpoint)> {
    let some_are_ready = slices.iter().flat_map(endpoints).any(is_ready);
    let all = slices.iter().flat_map(|slice| endpoints(slice).map(move |endpoint| (slice, endpoint)));
    all.filter(move |(_, one)| if some_are_ready { is_ready(one) } else { still_serves(one) })
}

/// Returns whether an endpoint is ready; as in kube-proxy, an absent condition counts as ready.
pub(super) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
}

fn still_serves(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_some_and(|one| one.serving == Some(true) && one.terminating == Some(true))
}

/// Returns the ports of a slice for a port of the Service: as in kube-proxy, ports of the same name and protocol.
pub(super) fn numbers(slice: &EndpointSlice, port: Port, spec: &ServicePort) -> Vec<i32> {
    let name = spec.name.as_deref().unwrap_or_default();
    let of_slice = slice.ports.iter().flatten().filter(|one| {
        one.name.as_deref().unwrap_or_default() == name
            && one.protocol.as_deref().unwrap_or("TCP") == port.protocol.as_str()
    });
    of_slice.filter_map(|one| one.port).collect()
}

/// Lists the ports that the containers of a pod declare.
pub(super) fn declared(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.flat_map(|container| container.ports.iter().flatten())
}

/// Returns the names that a pod gives to a port.
fn names_of(pod: &Pod, number: i32, protocol: Protocol) -> Vec<String> {
    let is_it = |port: &&ContainerPort| {
        port.container_port == number && port.protocol.as_deref().unwrap_or("TCP") == protocol.as_str()
    };
    declared(pod).filter(is_it).filter_map(|port| port.name.clone()).collect()
}

/// Returns whether an endpoint is of a pod: by its reference, or by its address.
pub(super) fn is_of(endpoint: &Endpoint, pod: &Pod) -> bool {
    match &endpoint.target_ref {
        Some(target) if target.kind.as_deref() == Some("Pod") => target.name == pod.metadata.name,
        _ => {
            let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
            ips.into_iter().any(|one| endpoint.addresses.contains(&one.ip))
        }
    }
}

/// Returns the port of a pod to which a port of the Service leads.
fn target_of(spec: &ServicePort, pod: &Pod) -> i32 {
    match &spec.target_port {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let port = declared(pod).find(|port| port.name.as_ref() == Some(name));
            port.map_or(0, |port| port.container_port)
        }
        None => spec.port,
    }
}

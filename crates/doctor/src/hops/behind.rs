//! The application behind a Service: its endpoints and pods, what it makes of the header, and whether packets have to come through the
//! load balancer for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Pod, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use openstack_ccm_core::service::Protocol;

use super::look::{Look, destination};
use crate::backend::{Entrance, Expectation, Judgement, judge};
use crate::facts::{Basis, PathFact};
use crate::hop::Port;

/// What the application makes of connections to some ports.
pub(super) struct Application {
    pub(super) ports: BTreeSet<Port>,
    /// Whether the load balancer sends the header.
    pub(super) header: bool,
    pub(super) judgement: Judgement,
    /// Whether this is true of all its pods.
    pub(super) of_all: bool,
}

impl Look<'_> {
    /// Returns whether the application also accepts packets that bypass the load balancer.
    pub(super) fn takes_both(&self, path: &PathFact) -> bool {
        let applications = self.applications();
        let mut with_header = applications.iter().filter(|one| one.header).peekable();
        path.header
            && with_header.peek().is_some()
            && with_header.all(|one| {
                matches!(
                    one.judgement.expects,
                    Expectation::Either | Expectation::Distrusted { required: false } | Expectation::Off
                )
            })
    }

    /// Judges the application at each TCP port, by each of its pods.
    pub(super) fn applications(&self) -> Vec<Application> {
        let Ok(backend) = &self.facts.backend else { return Vec::new() };
        let sources = self.sources();
        let nodes: Vec<IpAddr> = self.cluster.node_addresses().collect();
        let mut all: Vec<Application> = Vec::new();
        for (port, spec) in self.ports().filter(|(port, _)| port.protocol == Protocol::Tcp) {
            let header = self.path().is_ok_and(|path| path.sends_header(port));
            let mut found: Vec<Judgement> = Vec::new();
            for pod in self.serving(&backend.pods) {
                let entrance = Entrance {
                    target: target_of(spec, pod),
                    service_port: port.number,
                    sources: &sources,
                    nodes: &nodes,
                };
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

    /// Returns the pods that get packets: those of endpoints, or all where no endpoint names one.
    fn serving<'b>(&self, pods: &'b [Pod]) -> Vec<&'b Pod> {
        let endpoints: Vec<&Endpoint> = self.facts.slices.iter().flatten().flat_map(endpoints).collect();
        let serves = |pod: &&Pod| endpoints.iter().any(|endpoint| is_of(endpoint, pod));
        let named: Vec<&Pod> = pods.iter().filter(serves).collect();
        if named.is_empty() { pods.iter().collect() } else { named }
    }

    /// Returns the labels of the pods behind the Service, or those that it selects.
    pub(super) fn pod_labels(&self) -> BTreeMap<String, String> {
        let pod = self.facts.backend.as_ref().ok().and_then(|backend| backend.pods.first());
        let of_pod = pod.and_then(|pod| pod.metadata.labels.clone());
        of_pod.or_else(|| self.facts.service.spec.as_ref()?.selector.clone()).unwrap_or_default()
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

    /// Lists the destinations to which all nodes send packets around the load balancer: by the mode, or because no service proxy honours
    /// the mode, and it does no harm.
    pub(super) fn around(&self) -> Vec<String> {
        let mut nodes = self.cluster.live_nodes().peekable();
        let strays = self.left_to().is_none()
            && nodes.peek().is_some()
            && nodes.all(|node| !node.honours && node.basis != Basis::Guessed)
            && !self.needs_load_balancer();
        let by_address = self.entries.iter().filter(|entry| strays && entry.ip.is_some());
        self.short_circuited().chain(by_address).filter_map(destination).collect()
    }

    /// Returns whether what bypasses the load balancer is lost.
    pub(super) fn needs_load_balancer(&self) -> bool {
        self.path().map_or(true, |path| path.needs.is_some() && !self.takes_both(path))
    }

    /// Returns the addresses of ready endpoints, and the numbers and names of their ports, to which a port of the Service leads.
    pub(super) fn endpoints_of(&self, port: Port) -> (Vec<IpAddr>, Vec<i32>, Vec<String>) {
        let slices = || self.facts.slices.iter().flatten();
        let addresses = slices().flat_map(endpoints).flat_map(|one| &one.addresses);
        let addresses = addresses.filter_map(|one| one.parse().ok()).collect();
        let name = |spec: &ServicePort| spec.name.clone().unwrap_or_default();
        let own = self.ports().find(|(one, _)| *one == port).map(|(_, spec)| spec);
        let of_slices = slices().flat_map(|slice| slice.ports.iter().flatten());
        let ports = of_slices
            .filter(|one| own.is_some_and(|own| one.name.clone().unwrap_or_default() == name(own)))
            .filter_map(|one| one.port);
        let named = own.and_then(|own| match &own.target_port {
            Some(IntOrString::String(name)) => Some(name.clone()),
            _ => None,
        });
        (addresses, ports.collect(), named.into_iter().collect())
    }
}

/// Lists the endpoints of a slice, which may have null in place of a list.
pub(super) fn endpoints(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    slice.endpoints.iter().flatten()
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
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|one| one.ports.iter().flatten());
            ports.find(|port| port.name.as_ref() == Some(name)).map_or(0, |port| port.container_port)
        }
        None => spec.port,
    }
}

//! Judges by its configuration whether an application reads the PROXY protocol header at a port. Pure.
//!
//! Four programs show it for each port and pod. For any other application it is not seen.
//!
//! | module | judges |
//! | --- | --- |
//! | `program` | what a container is started with |
//! | `ingress_nginx`, `haproxy_ingress`, `traefik`, `envoy_gateway` | one program each |

mod envoy_gateway;
mod haproxy_ingress;
mod ingress_nginx;
mod program;
mod traefik;

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;

use crate::facts::BackendFacts;
use crate::finding::{Evidence, Fix};
pub use envoy_gateway::is_envoy_gateway;
pub use program::{Mounted, has_container, is_object_name, mounted};

/// What an application makes of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It requires the header from every client.
    Required,
    /// It accepts connections with and without the header.
    Either,
    /// It accepts connections with the header, but takes no client address from this load balancer.
    Distrusted,
    /// It takes the header for a part of the request.
    Off,
    /// Nothing that doctor may read shows it, for this reason.
    NotSeen(String),
    /// What shows it could not be read, for this reason.
    NotKnown(String),
}

/// What an application makes of the header, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The program: `ingress-nginx`.
    pub program: &'static str,
    pub expects: Expectation,
    /// The configuration that shows it.
    pub evidence: Vec<Evidence>,
    /// How to make the application accept the header; absent where its configuration is not known.
    pub switch: Option<Fix>,
}

/// What a program answers: the expectation with the configuration that shows it, and the switch.
type Shown = Result<(Expectation, Evidence, Option<Fix>), Expectation>;

/// The name of a program that doctor does not know.
pub(crate) const UNKNOWN: &str = "the application";

/// Where connections enter a pod.
#[derive(Clone, Copy, Debug)]
pub struct Entrance<'a> {
    /// The port of the pod.
    pub target: i32,
    /// The port of the Service that leads there.
    pub service_port: u16,
    /// The networks from which connections through the load balancer come.
    pub sources: &'a [IpNet],
}

impl Entrance<'_> {
    /// Returns whether networks include all sources, or none of them; absent for some of them.
    fn within(&self, networks: &[IpNet]) -> Option<bool> {
        let is_in = |source: &&IpNet| networks.iter().any(|network| network.contains(*source));
        let touches = |source: &&IpNet| networks.iter().any(|network| source.contains(network));
        match self.sources.iter().filter(is_in).count() {
            0 if !self.sources.is_empty() && !self.sources.iter().any(|source| touches(&source)) => {
                Some(false)
            }
            some if some > 0 && some == self.sources.len() => Some(true),
            _ => None,
        }
    }
}

/// Recognises a program and what it shows; nothing where a pod runs another one.
type Judge = fn(&BackendFacts, &Pod, Entrance<'_>) -> Option<(&'static str, Shown)>;

/// Judges what a pod makes of the header.
pub fn judge(facts: &BackendFacts, pod: &Pod, entrance: Entrance<'_>) -> Judgement {
    let judges: [Judge; 4] =
        [ingress_nginx::judge, haproxy_ingress::judge, traefik::judge, envoy_gateway::judge];
    let (program, shown) = judges.iter().find_map(|judge| judge(facts, pod, entrance)).unwrap_or_else(|| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let images: Vec<&str> = containers.filter_map(|one| one.image.as_deref()).collect();
        (UNKNOWN, Err(Expectation::NotSeen(format!("image {}", images.join(", ")))))
    });
    match shown {
        Ok((expects, evidence, switch)) => Judgement { program, expects, evidence: vec![evidence], switch },
        Err(expects) => Judgement { program, expects, evidence: Vec::new(), switch: None },
    }
}

/// Returns the ConfigMaps, as `namespace/name`, that may show what a pod makes of the header.
pub fn config_maps(pod: &Pod) -> BTreeSet<String> {
    let mut maps = BTreeSet::new();
    let none = BackendFacts::default();
    for program in
        [ingress_nginx::program(&none, pod), haproxy_ingress::program(&none, pod)].into_iter().flatten()
    {
        maps.extend(
            ["configmap", "tcp-services-configmap"].into_iter().filter_map(|flag| program.map_of(flag)),
        );
    }
    if let Some(program) = traefik::program(&none, pod) {
        maps.extend(program.maps());
    }
    maps.into_iter().filter(|name| name.split('/').all(is_object_name)).collect()
}

/// Reads a list of networks and addresses; absent where a part is neither.
fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from))).collect()
}

/// Reads a boolean as Go's `strconv.ParseBool` does.
pub(crate) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

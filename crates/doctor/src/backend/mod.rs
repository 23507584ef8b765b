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
pub use envoy_gateway::{is_envoy_gateway, listener_ports};
use program::Program;
pub use program::{Mounted, has_container, is_object_name, mounted};

/// What an application makes of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It requires the header from every client.
    Required,
    /// It accepts connections with and without the header.
    Either,
    /// It reads the header, but takes no client address from this load balancer.
    Distrusted { required: bool },
    /// It takes the header for a part of the request.
    Off,
    /// Nothing that doctor may read shows it, for this reason.
    NotSeen(String),
    /// What shows it could not be read, for this reason.
    NotKnown(String),
}

impl Expectation {
    /// Returns whether connections with the header, or without it, are served; absent where that is not seen.
    pub(crate) fn takes(&self, header: bool) -> Option<bool> {
        match self {
            Self::Required | Self::Distrusted { required: true } => Some(header),
            Self::Either | Self::Distrusted { required: false } => Some(true),
            Self::Off => Some(!header),
            Self::NotSeen(_) | Self::NotKnown(_) => None,
        }
    }
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
    /// The addresses of the nodes.
    pub nodes: &'a [IpAddr],
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

/// A program that is known by its container.
struct Known {
    name: &'static str,
    /// The ends of its images, and its executables.
    images: &'static [&'static str],
    programs: &'static [&'static str],
    /// The ConfigMaps that may show what it does.
    maps: fn(&Program<'_>) -> BTreeSet<String>,
    shown: fn(&Program<'_>, Entrance<'_>) -> Shown,
}

const KNOWN: [Known; 3] = [ingress_nginx::KNOWN, haproxy_ingress::KNOWN, traefik::KNOWN];

/// The program that a pod runs, if it is a known one.
fn known<'a>(facts: &'a BackendFacts, pod: &'a Pod) -> Option<(&'static Known, Program<'a>)> {
    let of = |known: &'static Known| Some((known, Program::of(facts, pod, known.images, known.programs)?));
    KNOWN.iter().find_map(of)
}

/// Judges what a pod makes of the header.
pub fn judge(facts: &BackendFacts, pod: &Pod, entrance: Entrance<'_>) -> Judgement {
    let (program, shown) = match known(facts, pod) {
        Some((known, program)) => (known.name, (known.shown)(&program, entrance)),
        None if is_envoy_gateway(pod) => ("Envoy Gateway", envoy_gateway::shown(facts, pod, entrance)),
        None => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let images: Vec<&str> = containers.filter_map(|one| one.image.as_deref()).collect();
            (UNKNOWN, Err(Expectation::NotSeen(format!("image {}", images.join(", ")))))
        }
    };
    match shown {
        Ok((expects, evidence, switch)) => Judgement { program, expects, evidence: vec![evidence], switch },
        Err(expects) => Judgement { program, expects, evidence: Vec::new(), switch: None },
    }
}

/// Returns the ConfigMaps, as `namespace/name`, that may show what a pod makes of the header.
pub fn config_maps(pod: &Pod) -> BTreeSet<String> {
    let none = BackendFacts::default();
    let maps = known(&none, pod).map(|(known, program)| (known.maps)(&program)).unwrap_or_default();
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

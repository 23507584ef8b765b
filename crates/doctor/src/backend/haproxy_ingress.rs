//! HAProxy Ingress of haproxytech: it reads the header from listed networks, at its ports of HTTP and HTTPS.

use ipnet::IpNet;

use super::ingress_nginx::patch;
use super::program::Program;
use super::{Entrance, Expectation, Known, Shown, networks};
use crate::finding::Evidence;

const SWITCH: &str = "proxy-protocol";
const TCP: &str = "configmap-tcp-services";
/// The ports of HTTP and HTTPS: of releases without privileges, and of older ones.
const PORTS: [i32; 4] = [8080, 8443, 80, 443];

pub(super) const KNOWN: Known = Known {
    name: "HAProxy Ingress",
    images: &["haproxytech/kubernetes-ingress"],
    programs: &["haproxy-ingress-controller"],
    maps: |program| ["configmap", TCP].into_iter().filter_map(|flag| program.map_of(flag)).collect(),
    shown,
};

fn shown(program: &Program<'_>, entrance: Entrance<'_>) -> Shown {
    let given: Vec<i32> = ["http-bind-port", "https-bind-port"]
        .iter()
        .filter_map(|flag| program.flag(flag)?.parse().ok())
        .collect();
    if !given.contains(&entrance.target) && (given.len() == 2 || !PORTS.contains(&entrance.target)) {
        // At the port of a TCP service it reads no header.
        let target = entrance.target.to_string();
        let (name, line) = program.tcp_line(TCP, &target)?;
        return Ok((Expectation::Off, Evidence::new(format!("ConfigMap {name}"), target, line), None));
    }
    let map = program.map("configmap")?;
    let (name, data) = map.ok_or_else(|| Expectation::NotSeen("no flag names its ConfigMap".to_owned()))?;
    let value = data.get(SWITCH).map(String::as_str).unwrap_or_default();
    if value.starts_with("patterns/") {
        return Err(Expectation::NotSeen(format!("its networks are in a file: {value}")));
    }
    // It leaves out what is no address.
    let networks: Vec<IpNet> = value.split(',').filter_map(networks).flatten().collect();
    let own: Vec<String> = entrance.sources.iter().map(ToString::to_string).collect();
    let wanted = if own.is_empty() { "CIDR of the load balancer".to_owned() } else { own.join(",") };
    let expects = match (networks.is_empty(), entrance.within(&networks)) {
        (true, _) | (_, Some(false)) => Expectation::Off,
        (_, Some(true)) if is_around(program, entrance, &networks) => Expectation::Required,
        (_, Some(true)) => Expectation::Either,
        (_, None) => {
            let text =
                format!("it reads the header from {value} only, and connections may come from elsewhere");
            return Err(Expectation::NotSeen(text));
        }
    };
    let shown = if value.is_empty() { "absent" } else { value };
    Ok((expects, Evidence::new(format!("ConfigMap {name}"), SWITCH, shown), patch(&name, SWITCH, &wanted)))
}

/// Returns whether clients that come around the load balancer are in the networks, too: there it requires the header. The pod stands for
/// other pods.
fn is_around(program: &Program<'_>, entrance: Entrance<'_>, networks: &[IpNet]) -> bool {
    let mut clients = entrance.nodes.iter().copied().chain(program.addresses());
    clients.any(|client| networks.iter().any(|network| network.contains(&client)))
}

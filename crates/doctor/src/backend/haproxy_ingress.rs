//! HAProxy Ingress of haproxytech: it reads the header from listed networks, at its ports of HTTP and HTTPS.

use k8s_openapi::api::core::v1::Pod;

use super::ingress_nginx::patch;
use super::program::Program;
use super::{Entrance, Expectation, Shown, networks};
use crate::facts::BackendFacts;
use crate::finding::Evidence;

const SWITCH: &str = "proxy-protocol";
/// The ports of HTTP and HTTPS: of releases without privileges, and of older ones.
const PORTS: [i32; 4] = [8080, 8443, 80, 443];

pub(super) fn program<'a>(facts: &'a BackendFacts, pod: &'a Pod) -> Option<Program<'a>> {
    Program::of(facts, pod, &["haproxytech/kubernetes-ingress"], &["haproxy-ingress-controller"])
}

pub(super) fn judge(
    facts: &BackendFacts,
    pod: &Pod,
    entrance: Entrance<'_>,
) -> Option<(&'static str, Shown)> {
    Some(("HAProxy Ingress", shown(&program(facts, pod)?, entrance)))
}

fn shown(program: &Program<'_>, entrance: Entrance<'_>) -> Shown {
    let given: Vec<i32> = ["http-bind-port", "https-bind-port"]
        .iter()
        .filter_map(|flag| program.flag(flag)?.parse().ok())
        .collect();
    if !given.contains(&entrance.target) && (given.len() == 2 || !PORTS.contains(&entrance.target)) {
        let text = format!("nothing shows what listens on its port {}", entrance.target);
        return Err(Expectation::NotSeen(text));
    }
    let map = program.map("configmap")?;
    let (name, data) = map.ok_or_else(|| Expectation::NotSeen("no flag names its ConfigMap".to_owned()))?;
    let value = data.get(SWITCH).map(String::as_str).unwrap_or_default();
    let in_file = || Expectation::NotSeen(format!("its networks are in a file: {value}"));
    let networks = networks(value).ok_or_else(in_file)?;
    let own: Vec<String> = entrance.sources.iter().map(ToString::to_string).collect();
    let wanted = if own.is_empty() { "CIDR of the load balancer".to_owned() } else { own.join(",") };
    let expects = match (networks.is_empty(), entrance.within(&networks)) {
        (true, _) | (_, Some(false)) => Expectation::Off,
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

//! ingress-nginx: one switch for its ports of HTTP and HTTPS, and one for each line of its TCP services.

use serde_json::json;

use super::program::Program;
use super::{Entrance, Expectation, Known, Shown, go_bool, networks};
use crate::finding::{Evidence, Fix};

const SWITCH: &str = "use-proxy-protocol";
/// Its real clients are named by these networks; by all where nothing is said.
const TRUSTED: &str = "proxy-real-ip-cidr";
const TCP: &str = "tcp-services-configmap";

pub(super) const KNOWN: Known = Known {
    name: "ingress-nginx",
    images: &["ingress-nginx/controller", "rancher/nginx-ingress-controller", "nginx-ingress-controller"],
    programs: &["nginx-ingress-controller"],
    maps: |program| ["configmap", TCP].into_iter().filter_map(|flag| program.map_of(flag)).collect(),
    shown,
};

fn shown(program: &Program<'_>, entrance: Entrance<'_>) -> Shown {
    let target = entrance.target.to_string();
    let of_http = [("http-port", "80"), ("https-port", "443")];
    let is_http = of_http
        .iter()
        .any(|(flag, usual)| program.flag(flag).map_or(*usual == target, |port| port == target));
    if !is_http {
        return tcp_service(program, &target);
    }
    let (name, data) = program.map("configmap")?.unwrap_or_default();
    let value = data.get(SWITCH);
    // nginx keeps the default where the value is no boolean.
    let is_on = value.and_then(|value| go_bool(value)).unwrap_or_default();
    let object = if name.is_empty() { program.title() } else { format!("ConfigMap {name}") };
    let trusted = data.get(TRUSTED).filter(|_| is_on);
    if let Some(trusted) = trusted
        && entrance.within(&networks(trusted).unwrap_or_default()) == Some(false)
    {
        let own: Vec<String> = entrance.sources.iter().map(ToString::to_string).collect();
        let switch = patch(&name, TRUSTED, &format!("{trusted},{}", own.join(",")));
        return Ok((
            Expectation::Distrusted { required: true },
            Evidence::new(object, TRUSTED, trusted),
            switch,
        ));
    }
    let evidence = Evidence::new(object, SWITCH, value.map_or("absent", String::as_str));
    Ok((if is_on { Expectation::Required } else { Expectation::Off }, evidence, patch(&name, SWITCH, "true")))
}

/// Judges a port of `NAMESPACE/SERVICE:PORT:PROXY:PROXY`; the first PROXY makes nginx read the header, the second send one.
fn tcp_service(program: &Program<'_>, target: &str) -> Shown {
    let (name, line) = program.tcp_line(TCP, target)?;
    let parts: Vec<&str> = line.split(':').collect();
    let reads = parts.get(2).is_some_and(|part| part.eq_ignore_ascii_case("PROXY"));
    let on = format!("{}:PROXY", parts.iter().take(2).copied().collect::<Vec<_>>().join(":"));
    let evidence = Evidence::new(format!("ConfigMap {name}"), target, &line);
    Ok((if reads { Expectation::Required } else { Expectation::Off }, evidence, patch(&name, target, &on)))
}

/// Returns the command that sets a key of a ConfigMap, `namespace/name`.
pub(super) fn patch(name: &str, key: &str, value: &str) -> Option<Fix> {
    let (namespace, name) = name.split_once('/')?;
    let patch = json!({"data": {key: value}}).to_string();
    Some(Fix::kubectl(namespace, ["patch", "configmap", name, "--type", "merge", "--patch", &patch]))
}

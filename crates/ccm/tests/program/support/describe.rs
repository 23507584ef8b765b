//! Names of calls, and the state of both worlds as text: without ids and times, in a fixed order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{Method, Request};
use openstack_ccm_kube_sim::Sim as Kubernetes;
use openstack_ccm_openstack_api::transport;
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::Value;

/// Name of a call to the Kubernetes API, and whether it asks for a change.
pub(crate) fn kubernetes<B>(request: &Request<B>) -> (String, bool) {
    let query = request.uri().query().unwrap_or_default();
    let mut segments: Vec<&str> = request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
    let prefix = match segments.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        _ => 0,
    };
    segments.drain(..prefix.min(segments.len()));
    if segments.first() == Some(&"namespaces") && segments.len() > 2 {
        segments.drain(..2);
    }
    let named = segments.len() > 1;
    if named {
        segments[1] = "NAME";
    }
    let dry_run = query.contains("dryRun=");
    let verb = match *request.method() {
        Method::GET if query.contains("watch=") => "WATCH",
        Method::GET if prefix > 0 && !named => "LIST",
        _ if dry_run => "DRY-RUN",
        _ => request.method().as_str(),
    };
    let write = request.method() != Method::GET && !dry_run;
    (format!("{verb} {}", segments.join("/")), write)
}

/// Name of a call to OpenStack.
pub(crate) fn openstack(request: &transport::Request) -> String {
    let path = request.path.trim_start_matches("/v2.0/lbaas/").trim_start_matches("/v2.0/");
    let segments = path.split('/').map(|segment| if is_id(segment) { "ID" } else { segment });
    format!("{} {}", request.method, segments.collect::<Vec<_>>().join("/"))
}

fn is_id(segment: &str) -> bool {
    segment.len() == 36 && segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A text; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> String {
    let mut items: Vec<&str> = value.as_array().into_iter().flatten().map(text).collect();
    items.sort_unstable();
    items.join(", ")
}

/// Replaces ids in texts by what they stand for.
pub(crate) fn without_ids(kube: &Kubernetes, cloud: &Cloud) -> impl Fn(&str) -> String {
    let mut names = BTreeMap::new();
    for service in kube.list("services", "").unwrap() {
        let name = format!("<uid of {}>", text(&service["metadata"]["name"]));
        names.insert(text(&service["metadata"]["uid"]).to_owned(), name);
    }
    let system = kube.get("namespaces", "", "kube-system").unwrap();
    names.insert(text(&system["metadata"]["uid"]).to_owned(), "<uid of kube-system>".to_owned());
    for load_balancer in cloud.load_balancers() {
        names.insert(
            text(&load_balancer["id"]).to_owned(),
            format!("<id of {}>", text(&load_balancer["name"])),
        );
    }
    move |described| {
        names.iter().fold(described.to_owned(), |described, (id, name)| described.replace(id, name))
    }
}

/// What users of Kubernetes see of a Service.
pub(crate) fn service(service: &Value) -> String {
    let metadata = &service["metadata"];
    let mut lines = format!("Service {} {}\n", text(&metadata["name"]), text(&service["spec"]["type"]));
    for entry in ingress(service) {
        let _ = writeln!(lines, "  ingress {entry}");
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let _ = writeln!(lines, "  finalizer {}", text(finalizer));
    }
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        // It has the time in it.
        if key == "loadbalancer.openstack.org/settled" {
            continue;
        }
        let _ = writeln!(lines, "  annotation {key}: {}", text(value));
    }
    lines
}

/// The published entries in short: `203.0.113.10(Proxy)`.
pub(crate) fn ingress(service: &Value) -> Vec<String> {
    let entries = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let mode = entry["ipMode"].as_str().map(|mode| format!("({mode})")).unwrap_or_default();
            format!("{}{}{mode}", text(&entry["hostname"]), text(&entry["ip"]))
        })
        .collect()
}

/// Everything that load balancers have in the cloud.
pub(crate) fn cloud(cloud: &Cloud) -> String {
    let mut sections: Vec<String> =
        cloud.load_balancers().iter().map(|one| load_balancer(cloud, one)).collect();
    sections.sort();
    let mut floating_ips: Vec<String> =
        cloud.floating_ips().iter().map(|one| floating_ip(cloud, one)).collect();
    floating_ips.sort();
    sections.extend(floating_ips);
    let mut groups: Vec<String> =
        cloud.security_groups().iter().filter_map(|one| security_group(cloud, one)).collect();
    groups.sort();
    sections.extend(groups);
    let vip_ports = cloud.ports().iter().filter(|port| port["device_owner"] == "Octavia").count();
    let _ = writeln!(
        sections.last_mut().unwrap_or(&mut String::new()),
        "VIP ports: {vip_ports}, leaked: {}, pools: {}, listeners: {}",
        cloud.leaked_ports().len(),
        cloud.pools().len(),
        cloud.listeners().len()
    );
    if sections.is_empty() {
        return format!("nothing, VIP ports: {vip_ports}\n");
    }
    sections.concat()
}

fn load_balancer(cloud: &Cloud, one: &Value) -> String {
    let mut lines = format!(
        "load balancer {} {} on {}\n  description {:?}\n  tags {}\n",
        text(&one["name"]),
        text(&one["provisioning_status"]),
        text(&one["vip_address"]),
        text(&one["description"]),
        list(&one["tags"]),
    );
    let belongs = |object: &&Value| object["loadbalancers"][0]["id"] == one["id"];
    let pools: Vec<Value> = cloud.pools().iter().filter(belongs).cloned().collect();
    let mut children: Vec<String> =
        cloud.listeners().iter().filter(belongs).map(|one| listener(&pools, one)).collect();
    children.extend(pools.iter().map(|one| pool(cloud, one)));
    children.sort();
    lines.push_str(&children.concat());
    lines
}

fn listener(pools: &[Value], one: &Value) -> String {
    let pool = pools.iter().find(|pool| pool["id"] == one["default_pool_id"]);
    let mut line = format!(
        "  listener {}/{} {} {} -> {}",
        one["protocol_port"],
        text(&one["protocol"]),
        text(&one["name"]),
        text(&one["provisioning_status"]),
        pool.map_or("nothing", |pool| text(&pool["name"])),
    );
    if let Some(headers) = one["insert_headers"].as_object().filter(|headers| !headers.is_empty()) {
        let _ = write!(line, ", inserts {}", headers.keys().cloned().collect::<Vec<_>>().join(", "));
    }
    let _ = writeln!(line, ", from {}", list(&one["allowed_cidrs"]));
    line
}

fn pool(cloud: &Cloud, one: &Value) -> String {
    let mut lines = format!(
        "  pool {} {} {} {}",
        text(&one["name"]),
        text(&one["protocol"]),
        text(&one["lb_algorithm"]),
        text(&one["provisioning_status"]),
    );
    if let Some(persistence) = one["session_persistence"]["type"].as_str() {
        let _ = write!(lines, ", sticks to {persistence}");
    }
    lines.push('\n');
    let mut members: Vec<String> = cloud
        .members(text(&one["id"]))
        .iter()
        .map(|member| {
            let monitored = member["monitor_port"].as_u64().map(|port| format!(", monitored on {port}"));
            format!(
                "    member {} {}:{} {}{}\n",
                text(&member["name"]),
                text(&member["address"]),
                member["protocol_port"],
                text(&member["provisioning_status"]),
                monitored.unwrap_or_default()
            )
        })
        .collect();
    members.sort();
    lines.push_str(&members.concat());
    for monitor in cloud.health_monitors().iter().filter(|monitor| monitor["id"] == one["healthmonitor_id"]) {
        let _ = writeln!(
            lines,
            "    monitor {} every {} s {}",
            text(&monitor["type"]),
            monitor["delay"],
            text(&monitor["url_path"])
        );
    }
    lines
}

/// A security group of a Service, with its rules and the nodes whose ports carry it.
fn security_group(cloud: &Cloud, one: &Value) -> Option<String> {
    if !text(&one["name"]).starts_with("lb-sg-") {
        return None;
    }
    let mut lines = format!("security group {}\n  tags {}\n", text(&one["name"]), list(&one["tags"]));
    let rules = cloud.security_group_rules();
    let rules = rules.iter().filter(|rule| rule["security_group_id"] == one["id"]);
    let mut rules: Vec<String> = rules
        .map(|rule| {
            format!(
                "  {} {} {} from {}\n",
                text(&rule["direction"]),
                text(&rule["protocol"]),
                rule["port_range_min"],
                text(&rule["remote_ip_prefix"])
            )
        })
        .collect();
    let ports = cloud.ports();
    let carrying = ports
        .iter()
        .filter(|port| port["security_groups"].as_array().is_some_and(|all| all.contains(&one["id"])));
    rules.extend(
        carrying.map(|port| format!("  on the port of {}\n", text(&port["fixed_ips"][0]["ip_address"]))),
    );
    rules.sort();
    lines.push_str(&rules.concat());
    Some(lines)
}

fn floating_ip(cloud: &Cloud, one: &Value) -> String {
    let load_balancers = cloud.load_balancers();
    let user =
        load_balancers.iter().find(|lb| lb["vip_port_id"] == one["port_id"] && !one["port_id"].is_null());
    format!(
        "floating IP {} on {}\n  description {:?}\n  tags {}\n",
        text(&one["floating_ip_address"]),
        user.map_or("nothing", |user| text(&user["name"])),
        text(&one["description"]),
        list(&one["tags"]),
    )
}

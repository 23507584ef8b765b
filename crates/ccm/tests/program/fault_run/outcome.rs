//! How a run ended, without what another run would draw differently.

use serde_json::Value;

use super::annotation::{Setting, is_of_tags};
use super::story::{Edit, Story};
use crate::support::World;

/// What Services are, and what they show, line by line.
pub(super) fn served(world: &World) -> Vec<String> {
    let mut lines: Vec<String> =
        world.kube.list("services", "default").unwrap().iter().map(service_line).collect();
    lines.sort();
    lines
}

/// Cloud, Services and nodes, line by line. The lines are sorted, because objects without a name of their own come in the
/// order of their ids.
pub(super) fn describe(world: &World) -> Vec<String> {
    let services = world.kube.list("services", "default").unwrap();
    let mut state = world.cloud.end_state();
    drop_put_by(&mut state, &services);
    let mut cloud = serde_json::to_string_pretty(&state).unwrap();
    for service in &services {
        let (uid, name) = (service["metadata"]["uid"].as_str(), service["metadata"]["name"].as_str());
        cloud = cloud.replace(uid.unwrap(), &format!("<uid of {}>", name.unwrap()));
    }
    let cloud = without_gone(&cloud);
    let mut lines: Vec<String> =
        cloud.lines().filter(|line| !line.contains("\"mac_address\"")).map(without_numbers).collect();
    lines.extend(services.iter().map(service_line));
    lines.extend(world.kube.list("nodes", "").unwrap().iter().map(|node| node_line(world, node)));
    lines.sort();
    lines
}

/// Drops floating IPs that are [put by](put_by): a kill may make the program create a load balancer twice, and the floating IP of
/// the one that goes is kept.
fn drop_put_by(state: &mut Value, services: &[Value]) {
    if let Some(floating_ips) = state["floating_ips"].as_array_mut() {
        floating_ips.retain(|one| !is_put_by(one, services));
    }
}

/// How many floating IPs lead nowhere and are kept until their Services go.
pub(super) fn put_by(world: &World) -> usize {
    let services = world.kube.list("services", "default").unwrap();
    world.cloud.floating_ips().iter().filter(|one| is_put_by(one, &services)).count()
}

fn is_put_by(floating_ip: &Value, services: &[Value]) -> bool {
    let uids = services.iter().filter_map(|service| service["metadata"]["uid"].as_str());
    let tags: Vec<String> = uids.map(|uid| format!("openstack-ccm-service={uid}")).collect();
    let mut its_tags = floating_ip["tags"].as_array().into_iter().flatten();
    floating_ip["port_id"].is_null() && its_tags.any(|tag| tags.iter().any(|known| tag == known))
}

/// The lines of the end of a run that have to be those of the calm run. What matters at the creation only depends on when that was. What another
/// controller left is tagged with the next change that it needs, and which one that is depends on when it came. And where a
/// user forged an annotation by which the program knows its own, the id may pass for one that the user wrote, and a Service that
/// ceases to want a load balancer before it was served keeps what was forged.
pub(super) fn comparable(end: &[String], story: &Story) -> Vec<String> {
    const TAGS: [&str; 6] = [
        "\"tags\": [",
        "\"tags\": []",
        "]",
        "\"openstack-ccm-cluster=",
        "\"openstack-ccm-service=",
        "\"kube_service_",
    ];
    let taken_back = tags_taken_back(story);
    let is_tag = |line: &String| TAGS.iter().any(|tag| line.starts_with(tag));
    let of_another = |line: &String| !story.inherited.is_empty() && is_tag(line);
    let counts = |line: &String| !of_another(line) && !taken_back.contains(line);
    let lines = end.iter().filter(|line| !line.starts_with("\"flavor_id\"") && counts(line));
    // A value of earlier versions, which the next write takes away, if one is needed.
    let lines = lines.map(|line| without_key(line, "settled"));
    if !forges_outputs(story) {
        return lines.collect();
    }
    let without = |line: String| match line.contains("\"ClusterIP\"") {
        true => OUTPUTS.iter().fold(line, |line, key| without_key(&line, key)),
        false => without_key(&line, OUTPUTS[0]),
    };
    lines.map(without).collect()
}

/// Tags that a user asked for and replaced by others, or whose Service went, as lines. Tags are never taken off, also not a load balancer
/// that others use, and whether they were put on before depends on how far the program was. (The last ones are in force to the end, so that
/// everything must have them.)
fn tags_taken_back(story: &Story) -> Vec<String> {
    let edits: Vec<&Edit> = story.steps.iter().flat_map(|step| &step.edits).collect();
    let mut lines = Vec::new();
    for (place, edit) in edits.iter().enumerate() {
        let (service, settings) = match edit {
            Edit::Create { service, settings, .. } => (service, settings.as_slice()),
            Edit::Annotate { service, setting } => (service, std::slice::from_ref(setting)),
            _ => continue,
        };
        let ends = |setting: &Setting, later: &Edit| match later {
            Edit::Annotate { service: other, setting: later } => other == service && later.key == setting.key,
            Edit::Delete { service: other } | Edit::Retype { service: other } => other == service,
            _ => false,
        };
        let over = settings.iter().filter(|setting| {
            is_of_tags(setting.key) && edits[place + 1..].iter().any(|later| ends(setting, later))
        });
        lines.extend(
            over.flat_map(|setting| setting.value.split(',')).map(|tag| Value::from(tag.trim()).to_string()),
        );
    }
    lines
}

/// The line of a Service without one of its annotations.
fn without_key(line: &str, key: &str) -> String {
    let key = format!("\"loadbalancer.openstack.org/{key}\"");
    let forms = [format!(", {key}"), format!("{key}, "), key];
    forms.iter().fold(line.to_owned(), |line, form| line.replace(form, ""))
}

/// The annotations that the program writes about a load balancer.
const OUTPUTS: [&str; 3] = ["load-balancer-id", "owned-load-balancer-id", "load-balancer-address"];

fn forges_outputs(story: &Story) -> bool {
    let forged = |key: &str| OUTPUTS[1..].iter().any(|output| key.ends_with(&format!("/{output}")));
    let mut edits = story.steps.iter().flat_map(|step| &step.edits);
    edits.any(|edit| matches!(edit, Edit::Annotate { setting, .. } if forged(setting.key)))
}

/// The uids of Services that are gone: what is kept of them on purpose has them still.
fn without_gone(cloud: &str) -> String {
    const TAG: &str = "openstack-ccm-service=";
    let mut parts = cloud.split(TAG);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = if part.starts_with('<') {
            part.to_owned()
        } else {
            format!(
                "<gone>{}",
                part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit() || letter == '-')
            )
        };
        format!("{text}{TAG}{rest}")
    })
}

/// `ports/2` becomes `ports/`: which of several equal objects it is means nothing.
fn without_numbers(line: &str) -> String {
    let kinds =
        ["ports", "listeners", "pools", "members", "load_balancers", "floating_ips", "security_groups"];
    let mut line = line.trim().trim_end_matches(',').to_owned();
    for kind in kinds {
        let start = format!("{kind}/");
        let parts: Vec<&str> = line.split(start.as_str()).collect();
        let (first, rest) = (parts[0], &parts[1..]);
        let rest = rest.iter().map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
        line = std::iter::once(first).chain(rest).collect::<Vec<_>>().join(&start);
    }
    line
}

fn service_line(service: &Value) -> String {
    let metadata = &service["metadata"];
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    let modes: Vec<String> = ingress.iter().map(|entry| entry["ipMode"].to_string()).collect();
    let annotations: Vec<&String> =
        metadata["annotations"].as_object().into_iter().flat_map(|annotations| annotations.keys()).collect();
    format!(
        "{} {} {modes:?} {} {annotations:?}",
        metadata["name"], service["spec"]["type"], metadata["finalizers"]
    )
}

fn node_line(world: &World, node: &Value) -> String {
    let name = node["metadata"]["name"].as_str().unwrap();
    let labels: Vec<&String> =
        node["metadata"]["labels"].as_object().into_iter().flat_map(|labels| labels.keys()).collect();
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let network = conditions.iter().find(|condition| condition["type"] == "NetworkUnavailable");
    let port = world.cloud.nodes().into_iter().find(|one| one.name == name).map(|one| one.port_id);
    let pairs: Vec<String> = world
        .cloud
        .ports()
        .iter()
        .filter(|one| one["id"].as_str() == port.as_deref())
        .flat_map(|one| one["allowed_address_pairs"].as_array().cloned().unwrap_or_default())
        .map(|pair| pair["ip_address"].to_string())
        .collect();
    format!(
        "{name} initialised {} {} {labels:?} {} pairs {pairs:?}",
        node["spec"]["providerID"].is_string(),
        world.node_addresses(name),
        network.map_or(Value::Null, |condition| condition["reason"].clone()),
    )
}

/// Lines that only one of two ends has, as a short diff.
pub(super) fn difference(calm: &[String], rough: &[String]) -> String {
    let only = |sign: char, one: &[String], other: &[String]| -> String {
        let mut others = other.to_vec();
        let lines = one.iter().filter(|line| match others.iter().position(|other| other == *line) {
            Some(found) => {
                others.swap_remove(found);
                false
            }
            None => true,
        });
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    only('-', calm, rough) + &only('+', rough, calm)
}

//! Objects as rows, the form that `kubectl get` asks for.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Resource;
use crate::object::{flag, integer, list, name, text, texts};

/// One column: its title, and what it shows of an object.
struct Column {
    title: &'static str,
    show: fn(&Value, Timestamp) -> String,
}

const fn column(title: &'static str, show: fn(&Value, Timestamp) -> String) -> Column {
    Column { title, show }
}

const NAME: Column = column("Name", |object, _| name(object).to_owned());
const AGE: Column = column("Age", |object, now| age(text(object, "/metadata/creationTimestamp"), now));

const SERVICE: &[Column] = &[
    NAME,
    column("Type", |service, _| text(service, "/spec/type").to_owned()),
    column("Cluster-IP", |service, _| or_none(text(service, "/spec/clusterIP"))),
    column("External-IP", |service, _| external_address(service)),
    column("Port(s)", |service, _| ports(service)),
    AGE,
];
const NODE: &[Column] = &[
    NAME,
    column("Status", |node, _| node_status(node)),
    column("Roles", |node, _| or_none(&roles(node))),
    AGE,
    column("Version", |node, _| text(node, "/status/nodeInfo/kubeletVersion").to_owned()),
];
const NAMESPACE: &[Column] =
    &[NAME, column("Status", |namespace, _| text(namespace, "/status/phase").to_owned()), AGE];
const LEASE: &[Column] =
    &[NAME, column("Holder", |lease, _| text(lease, "/spec/holderIdentity").to_owned()), AGE];
const EVENT: &[Column] = &[
    column("Last Seen", |event, now| age(last_seen(event), now)),
    column("Type", |event, _| text(event, "/type").to_owned()),
    column("Reason", |event, _| text(event, "/reason").to_owned()),
    column("Object", |event, _| subject(event)),
    column("Message", |event, _| first_text(event, &["/message", "/note"]).trim().to_owned()),
];
const PLAIN: &[Column] = &[NAME, AGE];

fn columns(resource: &Resource) -> &'static [Column] {
    match resource.plural {
        "services" => SERVICE,
        "nodes" => NODE,
        "namespaces" => NAMESPACE,
        "leases" => LEASE,
        "events" => EVENT,
        _ => PLAIN,
    }
}

/// How much of its object a row carries: the parameter `includeObject`
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>). `kubectl get --sort-by`
/// asks for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    /// The value of the parameter; what is not known is refused by the server and counts as the default here.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }

    fn of(self, resource: &Resource, object: &Value) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Metadata => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"]}),
            // Items of a list do not name their kind; rows do.
            Self::Object => {
                let mut whole = object.clone();
                whole["kind"] = resource.kind.into();
                whole["apiVersion"] = resource.api_version().into();
                whole
            }
        }
    }
}

/// A `Table` with a row for each object.
pub(crate) fn render(
    resource: &Resource,
    objects: &[Value],
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let columns = columns(resource);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            let format = if column.title == "Name" { "name" } else { "" };
            json!({"name": column.title, "type": "string", "format": format, "description": "", "priority": 0})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<String> = columns.iter().map(|column| (column.show)(object, now)).collect();
            json!({"cells": cells, "object": include.of(resource, object)})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": definitions,
        "rows": rows})
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text.to_owned() }
}

fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn external_address(service: &Value) -> String {
    let entries = list(service, "/status/loadBalancer/ingress");
    let mut shown: Vec<&str> = entries
        .iter()
        .map(|entry| match text(entry, "/ip") {
            "" => text(entry, "/hostname"),
            ip => ip,
        })
        .collect();
    shown.extend(texts(service, "/spec/externalIPs"));
    match (text(service, "/spec/type"), shown.is_empty()) {
        ("ExternalName", _) => text(service, "/spec/externalName").to_owned(),
        ("LoadBalancer", true) => "<pending>".to_owned(),
        (_, true) => "<none>".to_owned(),
        (_, false) => shown.join(","),
    }
}

fn ports(service: &Value) -> String {
    let shown: Vec<String> = list(service, "/spec/ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (integer(port, "/port"), text(port, "/protocol"));
            match integer(port, "/nodePort") {
                0 => format!("{number}/{protocol}"),
                node_port => format!("{number}:{node_port}/{protocol}"),
            }
        })
        .collect();
    or_none(&shown.join(","))
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    roles.join(",")
}

fn first_text<'a>(object: &'a Value, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| text(object, pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn last_seen(event: &Value) -> &str {
    let pointers = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    first_text(event, &pointers)
}

fn subject(event: &Value) -> String {
    let kind = first_text(event, &["/involvedObject/kind", "/regarding/kind"]);
    let name = first_text(event, &["/involvedObject/name", "/regarding/name"]);
    format!("{}/{name}", kind.to_lowercase())
}

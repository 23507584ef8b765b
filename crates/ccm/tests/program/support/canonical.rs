//! Calls without what cannot be the same twice: ids and addresses of what is made, versions, and times.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange};
use openstack_ccm_openstack_sim::Sim as Cloud;
use openstack_ccm_tools::plan::journal::Call;
use serde_json::Value;

use super::line::Asked;

/// What is written of when everything agreed: it has a time in it.
const SETTLED: &str = "loadbalancer.openstack.org/settled";

/// A planned call in the form of one that was made.
pub(crate) fn asked(call: &Call) -> Asked {
    match call {
        Call::Cloud(write) => {
            let query: Vec<String> =
                write.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            Asked {
                method: write.method.clone(),
                path: format!("{}{query}", write.path),
                body: write.body.clone().unwrap_or_default(),
            }
        }
        Call::Cluster(write) => {
            Asked { method: write.method.clone(), path: write.path.clone(), body: write.body.clone() }
        }
    }
}

/// What ids and addresses stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The name that stands for an id or an address of what was made since.
    new: BTreeMap<String, String>,
    /// What an object belongs to, by its id: a name or a description that names the Service.
    owners: BTreeMap<String, String>,
    /// Ids and addresses that were there before.
    known: Vec<String>,
}

impl Names {
    pub(crate) fn before(cloud: &Cloud) -> Self {
        let mut names = Self::default();
        names.learn(cloud, false);
        names
    }

    /// With what stands for the placeholders of a plan.
    pub(crate) fn with_planned(mut self, calls: &[&Call]) -> Self {
        for call in calls {
            let Call::Cloud(write) = call else { continue };
            for ObjectChange { kind, parent, after, .. } in &write.changes {
                if let Some(after) = after {
                    self.object(*kind, after, parent.as_deref(), true);
                }
            }
        }
        self
    }

    /// With what stands for the ids that the cloud gave.
    pub(crate) fn with_done(mut self, cloud: &Cloud) -> Self {
        self.learn(cloud, true);
        self
    }

    fn learn(&mut self, cloud: &Cloud, new: bool) {
        let kinds = [
            (Kind::LoadBalancer, cloud.load_balancers()),
            (Kind::Listener, cloud.listeners()),
            (Kind::Pool, cloud.pools()),
            (Kind::HealthMonitor, cloud.health_monitors()),
            (Kind::FloatingIp, cloud.floating_ips()),
            (Kind::SecurityGroup, cloud.security_groups()),
            (Kind::SecurityGroupRule, cloud.security_group_rules()),
        ];
        for (kind, objects) in kinds {
            for object in &objects {
                self.object(kind, object, None, new);
            }
        }
        for pool in cloud.pools() {
            let id = text(&pool["id"]);
            for member in cloud.members(&id) {
                self.object(Kind::Member, &member, Some(&id), new);
            }
        }
    }

    fn object(&mut self, kind: Kind, object: &Value, parent: Option<&str>, new: bool) {
        let id = text(&object["id"]);
        let owner = self.owner(kind, object, parent);
        let name = match kind {
            Kind::FloatingIp | Kind::LoadBalancer => String::new(),
            Kind::Member => format!("{}:{}", text(&object["address"]), object["protocol_port"]),
            Kind::SecurityGroupRule => format!("{} {}", object["protocol"], object["port_range_min"]),
            _ => text(&object["name"]),
        };
        self.note(&id, &format!("<{kind} {name} of {owner}>"), new);
        for (key, what) in
            [("vip_address", "VIP"), ("vip_port_id", "port"), ("floating_ip_address", "address")]
        {
            if let Some(value) = object[key].as_str() {
                self.note(value, &format!("<{what} of {owner}>"), new);
            }
        }
        for (number, vip) in object["additional_vips"].as_array().into_iter().flatten().enumerate() {
            self.note(&text(&vip["ip_address"]), &format!("<VIP {} of {owner}>", number + 2), new);
        }
        self.owners.insert(id, owner);
    }

    fn note(&mut self, id: &str, name: &str, new: bool) {
        if !new {
            self.known.push(id.to_owned());
        } else if !self.known.iter().any(|known| known == id) {
            self.new.insert(id.to_owned(), name.to_owned());
        }
    }

    fn owner(&self, kind: Kind, object: &Value, parent: Option<&str>) -> String {
        let by_id =
            |id: &Value| self.owners.get(id.as_str().unwrap_or_default()).cloned().unwrap_or_default();
        match kind {
            Kind::Listener | Kind::Pool => by_id(&object["loadbalancers"][0]["id"]),
            Kind::HealthMonitor => by_id(&object["pools"][0]["id"]),
            Kind::Member => parent.and_then(|id| self.owners.get(id)).cloned().unwrap_or_default(),
            Kind::FloatingIp => text(&object["description"]),
            Kind::SecurityGroupRule => by_id(&object["security_group_id"]),
            Kind::LoadBalancer | Kind::SecurityGroup | Kind::Port | Kind::Router => text(&object["name"]),
        }
    }

    /// What a call is about: a Service, a node, or whatever its object belongs to.
    pub(crate) fn subject(&self, call: &Asked) -> String {
        let path = call.path.split('?').next().unwrap_or_default();
        if let Some(rest) = path.strip_prefix("/api/v1/") {
            let rest = rest.trim_end_matches("/status");
            return rest.rsplit('/').next().unwrap_or_default().to_owned();
        }
        let by_path = path.split('/').find_map(|segment| self.owners.get(segment));
        let body = call.body.as_object().and_then(|body| body.values().next());
        let by_body = body.and_then(|body| {
            let parents = ["loadbalancer_id", "listener_id", "pool_id", "security_group_id"];
            let parent = parents.iter().find_map(|key| self.owners.get(body[*key].as_str()?));
            parent.cloned().or_else(|| {
                Some(if path.ends_with("floatingips") { "description" } else { "name" })
                    .map(|key| text(&body[key]))
            })
        });
        // A rule that goes is known by nothing but its id.
        if path.contains("/security-group-rules/") {
            return "rules".to_owned();
        }
        let owner = by_path.cloned().or(by_body).unwrap_or_else(|| path.to_owned());
        service(&owner)
    }

    /// The call as text.
    pub(crate) fn line(&self, call: &Asked) -> String {
        let is_rule = call.path.contains("/security-group-rules/");
        let stand_in = |segment: &str| {
            if is_rule && segment.len() == 36 { "<rule>".to_owned() } else { self.stand_in(segment) }
        };
        let path: Vec<String> = call.path.split('/').map(stand_in).collect();
        format!("{} {} {}", call.method, path.join("/"), self.without(&call.body))
    }

    fn stand_in(&self, text: &str) -> String {
        if let Some(name) = self.new.get(text) {
            return name.clone();
        }
        // A hostname made of an address.
        let of_address = self.new.iter().find_map(|(address, name)| {
            let rest = text.strip_prefix(address.as_str())?;
            (rest.starts_with('.') && address.contains('.')).then(|| format!("{name}{rest}"))
        });
        of_address.unwrap_or_else(|| text.to_owned())
    }

    fn without(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.stand_in(text)),
            Value::Array(list) => list.iter().map(|value| self.without(value)).collect(),
            Value::Object(object) => object
                .iter()
                .filter(|(key, value)| *key != SETTLED && !(*key == "annotations" && is_empty(value)))
                .map(|(key, value)| match key.as_str() {
                    "resourceVersion" if !value.is_null() => (key.clone(), Value::from("...")),
                    "lastHeartbeatTime" | "lastTransitionTime" => (key.clone(), Value::from("...")),
                    _ => (key.clone(), self.without(value)),
                })
                .collect(),
            other => other.clone(),
        }
    }
}

/// Whether no annotation is written but the note.
fn is_empty(annotations: &Value) -> bool {
    annotations.as_object().is_some_and(|all| all.keys().all(|key| key == SETTLED))
}

/// Whether a call only writes what the program notes for itself: that depends on what it remembers.
pub(crate) fn is_note(call: &Asked) -> bool {
    let annotations = call.body["metadata"]["annotations"].as_object();
    let alone = |part: &Value| {
        part.as_object()
            .is_some_and(|part| part.keys().all(|key| matches!(key.as_str(), "annotations" | "uid")))
    };
    annotations.is_some_and(|all| all.keys().all(|key| key == SETTLED))
        && call.body.get("status").is_none()
        && alone(&call.body["metadata"])
}

/// The Service in a generated name or description; any other text as it is.
fn service(owner: &str) -> String {
    let by_name = owner.strip_prefix("kube_service_").and_then(|rest| rest.rsplit('_').next());
    let by_description = owner
        .strip_prefix("Floating IP for Kubernetes external service ")
        .and_then(|rest| rest.split(' ').next()?.split('/').nth(1));
    let by_group = owner.strip_prefix("lb-sg-").and_then(|rest| rest.split("-default-").nth(1));
    by_name.or(by_description).or(by_group).unwrap_or(owner).to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

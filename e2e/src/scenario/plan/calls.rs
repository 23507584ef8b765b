//! Calls as a plan has them, and as the logs of the real services have them, in one form.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::kubernetes::audit::Entry;
use crate::openstack::api::OpenStack;

/// The annotation in which the controller notes for itself when everything agreed: a plan does not say when.
const NOTE: &str = "loadbalancer.openstack.org/settled";

/// Calls by the log that shows them, because logs show no order between each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::scenario) struct Calls {
    /// To the API server.
    pub cluster: Vec<String>,
    pub octavia: Vec<String>,
    pub neutron: Vec<String>,
    /// To Octavia, about load balancers that the change is not about: Services are worked on at the same time.
    pub others: Vec<String>,
}

impl Calls {
    /// Those of a plan, one a line: `default/web POST load-balancer /v2.0/lbaas/loadbalancers {…}`.
    pub(in crate::scenario) fn planned(plan: &str, known: &Known) -> Result<Self> {
        let mut calls = Self::default();
        for line in plan.lines() {
            let mut words = line.splitn(5, ' ').skip(1);
            let mut word = || words.next().with_context(|| format!("no call: {line}"));
            let (method, service, path) = (word()?, word()?, word()?);
            let body = words.next().map_or(Ok(Value::Null), serde_json::from_str)?;
            match service {
                "kubernetes" if is_note(&body) => {}
                "kubernetes" => calls.cluster.push(of_cluster(method, path)),
                "load-balancer" if known.is_of_others(path) => calls.others.push(known.call(method, path)),
                "load-balancer" => calls.octavia.push(known.call(method, path)),
                _ => calls.neutron.push(known.call(method, path.trim_start_matches("/v2.0"))),
            }
        }
        Ok(calls)
    }

    /// Those that were made: the audit log of the API server, and the access logs, whose requests end with `?` and a query.
    pub(in crate::scenario) fn made(cluster: &[Entry], cloud: &[String], known: &Known) -> Self {
        let mut calls = Self {
            cluster: cluster.iter().filter(|one| !is_note(&one.sent)).map(|one| one.what.clone()).collect(),
            ..Self::default()
        };
        for request in cloud {
            let (method, path) = request.split_once(' ').unwrap_or_default();
            let path = path.strip_suffix('?').unwrap_or(path);
            let list = match path.contains("/lbaas/") {
                true if known.is_of_others(path) => &mut calls.others,
                true => &mut calls.octavia,
                false => &mut calls.neutron,
            };
            list.push(known.call(method, path));
        }
        calls
    }

    /// Without their order: several Services are worked on at the same time.
    pub(in crate::scenario) fn sorted(mut self) -> Self {
        for calls in [&mut self.cluster, &mut self.octavia, &mut self.neutron, &mut self.others] {
            calls.sort();
        }
        self
    }

    /// How many there are.
    pub(in crate::scenario) fn len(&self) -> usize {
        self.cluster.len() + self.octavia.len() + self.neutron.len() + self.others.len()
    }
}

/// Ids of what was there before: every other one is of something new, and differs between plan and deed.
pub(in crate::scenario) struct Known {
    ids: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Known {
    /// What is there now; `other` is part of the names of what belongs to another Service.
    pub(in crate::scenario) fn of(cloud: &OpenStack, other: Option<&str>) -> Result<Self> {
        let (mut ids, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (service, path, key) in [
            ("load-balancer", "/v2/lbaas/loadbalancers", "loadbalancers"),
            ("load-balancer", "/v2/lbaas/listeners", "listeners"),
            ("load-balancer", "/v2/lbaas/pools", "pools"),
            ("load-balancer", "/v2/lbaas/healthmonitors", "healthmonitors"),
            ("network", "/v2.0/floatingips", "floatingips"),
            ("network", "/v2.0/ports", "ports"),
            ("network", "/v2.0/security-groups", "security_groups"),
        ] {
            let objects = cloud.list(service, path, key)?;
            for object in &objects {
                let text = |key: &str| object[key].as_str().unwrap_or_default();
                ids.insert(text("id").to_owned());
                if other.is_some_and(|other| text("name").contains(other)) {
                    others.insert(text("id").to_owned());
                }
            }
        }
        Ok(Self { ids, others })
    }

    fn is_of_others(&self, path: &str) -> bool {
        path.split(['/', '?']).any(|part| self.others.contains(part))
    }

    fn call(&self, method: &str, path: &str) -> String {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let is_id =
            |part: &str| part.len() == 36 && part.chars().filter(|letter| *letter == '-').count() == 4;
        let parts = path.split('/').map(|part| match part {
            id if is_id(id) && !self.ids.contains(id) => "<new>",
            part => part,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        query.map_or_else(|| format!("{method} {path}"), |query| format!("{method} {path}?{query}"))
    }
}

/// `patch services/status web`, as the audit log has it.
fn of_cluster(method: &str, path: &str) -> String {
    let parts: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    let object = if parts[0] == "namespaces" { &parts[2..] } else { &parts[..] };
    let verb = method.to_lowercase();
    match object {
        [kind, name, part] => format!("{verb} {kind}/{part} {name}"),
        [kind, name] => format!("{verb} {kind} {name}"),
        _ => format!("{verb} {path}"),
    }
}

/// Whether nothing but the note is written.
fn is_note(body: &Value) -> bool {
    let annotations = body["metadata"]["annotations"].as_object();
    let metadata = body["metadata"].as_object();
    annotations.is_some_and(|all| all.keys().all(|key| key == NOTE))
        && metadata.is_some_and(|all| all.keys().all(|key| key == "annotations" || key == "uid"))
        && body.get("status").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "0a1b2c3d-0000-4000-8000-000000000001";
    const NEW: &str = "0a1b2c3d-0000-4000-8000-000000000002";

    #[test]
    fn a_call_that_was_planned_and_made_reads_the_same() {
        let known = Known { ids: [OLD.to_owned()].into(), others: BTreeSet::new() };
        let plan = format!(
            "default/web PATCH kubernetes /api/v1/namespaces/default/services/web/status {{\"status\":{{}}}}\n\
             default/web PATCH kubernetes /api/v1/namespaces/default/services/web/status \
             {{\"metadata\":{{\"annotations\":{{\"{NOTE}\":\"x\"}},\"uid\":\"1\"}}}}\n\
             default/web PUT load-balancer /v2.0/lbaas/pools/{NEW}/members {{}}\n\
             default/web DELETE load-balancer /v2.0/lbaas/loadbalancers/{OLD}?cascade=true\n\
             default/web PUT network /v2.0/floatingips/{NEW}/tags {{}}\n"
        );
        let made = [
            format!("PUT /v2.0/lbaas/pools/{NEW}/members?"),
            format!("DELETE /v2.0/lbaas/loadbalancers/{OLD}?cascade=true"),
            format!("PUT /floatingips/{NEW}/tags?"),
        ];
        let planned = Calls::planned(&plan, &known).unwrap();
        let made = Calls::made(&[], &made, &known);
        assert_eq!((&planned.octavia, &planned.neutron), (&made.octavia, &made.neutron));
        assert_eq!(planned.octavia[0], "PUT /v2.0/lbaas/pools/<new>/members");
        assert_eq!(planned.cluster, ["patch services/status web"]);
    }
}

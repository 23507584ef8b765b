//! What a failed case leaves for the one who looks into it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kubernetes::proxy::all_rules;
use crate::machine::process::run;
use crate::machine::say;
use crate::machine::watch::last_lines;
use crate::network::NODES;
use crate::stage::Stage;

/// Objects of Kubernetes that are kept, as far as there are any.
const OBJECTS: [(&str, &str); 7] = [
    ("services", "/api/v1/services"),
    ("nodes", "/api/v1/nodes"),
    ("endpointslices", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("events", "/apis/events.k8s.io/v1/events"),
    ("certificates", "/apis/cert-manager.io/v1/certificates"),
    ("challenges", "/apis/acme.cert-manager.io/v1/challenges"),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
];
/// Objects of OpenStack that are kept.
const CLOUD_OBJECTS: [(&str, &str, &str); 7] = [
    ("loadbalancers", "load-balancer", "/v2/lbaas/loadbalancers"),
    ("listeners", "load-balancer", "/v2/lbaas/listeners"),
    ("pools", "load-balancer", "/v2/lbaas/pools"),
    ("healthmonitors", "load-balancer", "/v2/lbaas/healthmonitors"),
    ("floatingips", "network", "/v2.0/floatingips"),
    ("ports", "network", "/v2.0/ports"),
    ("security-groups", "network", "/v2.0/security-groups"),
];

/// Writes rules, objects and logs into a folder, prints the lines that matter, and returns the folder's path.
pub(crate) fn keep(stage: &Stage, folder: &Path) -> String {
    let path = folder.display().to_string();
    if let Err(error) = std::fs::create_dir_all(folder) {
        return format!("none, {path} cannot be made: {error}");
    }
    // Evidence is collected as far as it can be had: the failure itself matters more than a missing file.
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).ok();
    for place in NODES {
        write(&format!("rules-{}.txt", place.name()), &all_rules(place));
    }
    for (name, service, request) in CLOUD_OBJECTS {
        let text = stage
            .cloud
            .user
            .get(service, request)
            .map_or_else(|error| format!("{error:#}"), |value| format!("{value:#}"));
        write(&format!("openstack-{name}.json"), &text);
    }
    write("openstack-members.json", &members(stage));
    if let Some(cluster) = &stage.cluster {
        for (name, request) in OBJECTS {
            let answer = cluster.plane.api.get(request);
            let text = answer.map_or_else(|error| format!("{error:#}"), |value| format!("{value:#}"));
            write(&format!("kubernetes-{name}.json"), &text);
        }
        copy(cluster.plane.folder(), folder, "cluster-logs", "*.log");
        // There are pods only where there are kubelets.
        copy(cluster.plane.folder(), folder, "pod-logs", "machine-*/pods/*");
        for log in logs_of_controllers(cluster.plane.folder()) {
            say_lines_that_matter(&log);
        }
    }
    copy(&stage.cloud.folders.logs(), folder, "openstack-logs", "*");
    copy(&stage.cloud.folders.state.join("state/octavia"), folder, "amphorae", "*");
    // The files of OVN's databases are text. There are none without the provider ovn.
    copy(&stage.cloud.folders.state.join("ovn"), folder, "ovn-databases", "ovn-*");
    if let Some(line) = stage.ingress.last_broken_header() {
        say(&format!("    nginx: {line}"));
    }
    path
}

/// The members of all pools, by pool.
fn members(stage: &Stage) -> String {
    let user = &stage.cloud.user;
    let pools = match user.list("load-balancer", "/v2/lbaas/pools?fields=id", "pools") {
        Ok(pools) => pools,
        Err(error) => return format!("{error:#}"),
    };
    let members = pools.iter().filter_map(|pool| pool["id"].as_str()).map(|id| {
        let answer = user.get("load-balancer", &format!("/v2/lbaas/pools/{id}/members"));
        (id.to_owned(), answer.unwrap_or_else(|error| format!("{error:#}").into()))
    });
    format!("{:#}", serde_json::Value::Object(members.collect()))
}

fn copy(from: &Path, folder: &Path, name: &str, pattern: &str) {
    let script = "mkdir -p \"$2\" && cp -r \"$1\"/$3 \"$2\"/";
    // As above: what cannot be copied is left out.
    run(Command::new("bash").args(["-c", script, "copy"]).arg(from).arg(folder.join(name)).arg(pattern)).ok();
}

/// Those of all replicas.
fn logs_of_controllers(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("openstack-ccm") && name.ends_with(".log")
    };
    files.filter(own).collect()
}

fn say_lines_that_matter(log: &Path) {
    let text = last_lines(log, 400);
    let matter = |line: &&str| line.contains("WARN") || line.contains("ERROR") || line.contains("panicked");
    let lines: Vec<&str> = text.lines().filter(matter).collect();
    for line in &lines[lines.len().saturating_sub(8)..] {
        say(&format!("    openstack-ccm: {line}"));
    }
}

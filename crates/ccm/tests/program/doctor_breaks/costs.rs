//! What a look costs: calls, and patience with a cloud that is silent.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use openstack_ccm_doctor::output::{FailOn, Outcome, json};
use serde_json::json;

use super::stage::{Kind, Stage, served, unserved};
use super::verdict::look;
use crate::support::service;

/// Services of a cluster with many.
const MANY: usize = 61;
/// Calls to the cloud beyond those of `plan`.
const BEYOND_PLAN: usize = 10;
/// Lists of one kind from the API server.
const LISTS: usize = 5;

/// Runs the program, and counts its calls to the cloud.
async fn calls(stage: &Stage, subcommand: &str) -> usize {
    let before = stage.world.cloud.log().calls().len();
    let flags = stage.flags();
    let subcommand = subcommand.to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_openstack-ccm"));
        program.arg(subcommand).arg("-A").args(flags).output().unwrap()
    });
    let output = run.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stage.world.cloud.log().calls().len() - before
}

#[tokio::test(start_paused = true)]
async fn many_services_cost_little_more_than_a_plan() {
    let mut world = unserved(Kind::Plain);
    let names: Vec<String> = (0..MANY).map(|number| format!("web-{number}")).collect();
    for (name, node_port) in names.iter().zip(30100..) {
        let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": node_port}]);
        world.create(&service(name, json!({"spec": {"selector": {"app": "web"}, "ports": ports}})));
        let mut slice = world.kube.get("endpointslices", "default", "web-ipv4").unwrap();
        slice["metadata"] = json!({"name": name, "labels": {"kubernetes.io/service-name": name}});
        world.kube.create(&slice).unwrap();
    }
    world.start().await;
    for name in &names {
        world.until_published(name).await;
    }
    world.quiet().await;
    world.stop().await;
    world.cloud.settle();
    let stage = Stage::look_at(Kind::Plain, world).await;

    let plan = calls(&stage, "plan").await;
    stage.world.kube.clear_requests();
    let doctor = calls(&stage, "doctor").await;
    assert!(doctor <= plan + BEYOND_PLAN, "doctor sends {doctor} calls, plan {plan}");
    let mut lists: BTreeMap<String, usize> = BTreeMap::new();
    for request in stage.world.kube.requests() {
        let path = request.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let kind = match parts.as_slice() {
            ["api", _, "namespaces", _, kind]
            | ["apis", _, _, "namespaces", _, kind]
            | ["api", _, kind]
            | ["apis", _, _, kind] => *kind,
            _ => continue,
        };
        *lists.entry(kind.to_owned()).or_default() += 1;
    }
    let most = lists.iter().max_by_key(|(_, count)| **count).unwrap();
    assert!(*most.1 <= LISTS, "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_silent_holds_nobody_up() {
    let stage = Stage::look_at(Kind::Plain, served(Kind::Plain).await).await;
    // It accepts connections, and nobody answers.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap();
    let conf = std::fs::read_to_string(stage.file("cloud.conf")).unwrap();
    let lines = conf.lines().map(|line| match line.starts_with("auth-url") {
        true => format!("auth-url=http://{address}/v3"),
        false => line.to_owned(),
    });
    std::fs::write(stage.file("cloud.conf"), lines.collect::<Vec<_>>().join("\n")).unwrap();

    let mut words = stage.command_line();
    words.push("--timeout=1s".to_owned());
    let outcome: Outcome = look(words).await.unwrap();
    let report = json::object(&outcome, FailOn::Error);
    let text = report.to_string();
    assert!(text.contains("Keystone did not answer within 1s"), "{text}");
    assert_eq!(report["exitCode"], 3, "{text}");
}

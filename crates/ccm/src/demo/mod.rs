//! `openstack-ccm demo`: shows the break and the cure on an embedded OpenStack and Kubernetes API.
//!
//! Everything that the tables show is measured in that run: real connections through load balancers that really forward,
//! a backend that really insists on the PROXY header, the controller run as a cluster runs it. Only the nodes are a model:
//! kube-proxy's rule for load balancer addresses (`kube_proxy`).

use std::io::Write as _;
use std::net::IpAddr;

use anyhow::Context as _;
use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

mod backend;
mod client;
mod kube_proxy;
mod report;
mod world;

use client::{Answer, FetchError};
use report::Chapter;
use world::{Client, OUTSIDE, POD_ON_NODE_1, POD_ON_NODE_2, SUFFIX, World};

/// Flags of the demonstration.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Leave a world running at the end, and print how to reach it with kubectl and the OpenStack client.
    #[arg(long)]
    keep: bool,
    /// Show the controller's log on standard error.
    #[arg(long)]
    log: bool,
}

/// What a request is expected to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An answer, and the backend saw the true client.
    Served,
    /// No answer, and the backend logged the missing header.
    BrokenHeader,
}

/// Tells the whole story.
///
/// # Errors
/// Something is not as stated, or could not be shown.
pub async fn run(arguments: DemoArgs) -> anyhow::Result<()> {
    if arguments.log {
        let arguments = crate::args::LoggingArgs { verbosity: 0, logging_format: "text".to_owned() };
        crate::logging::start(&arguments, None);
    }
    let files = std::env::temp_dir().join(format!("openstack-ccm-demo-{}", std::process::id()));
    let mut wrong = modern_cluster(&files).await?;
    wrong += old_cluster(&files).await?;
    if arguments.keep {
        keep(&files).await?;
    }
    // Left-overs of a demonstration in the folder for temporary files hurt nobody.
    let _ = std::fs::remove_dir_all(&files);
    anyhow::ensure!(wrong == 0, "{wrong} line(s) are not as stated");
    say("\nEverything above was measured in this run and is as stated.")
}

/// Kubernetes 1.36: the break and the cure.
async fn modern_cluster(files: &std::path::Path) -> anyhow::Result<usize> {
    let world = World::start(&files.join("modern"), ApiVersion::V1_36, "v1.36.3").await?;
    world
        .create_service(json!({
            "loadbalancer.openstack.org/proxy-protocol": "true",
            "loadbalancer.openstack.org/ip-mode": "vip",
        }))
        .await?;
    let (address, entry) =
        world.wait_for_entry("the load balancer is published", |entry| entry["ip"].is_string()).await?;
    let mut chapter = Chapter::new(
        "1. The break: Kubernetes 1.36, the status as controllers without ipMode write it",
        "Every node sends its own traffic for the address straight to a pod, so the PROXY header is missing.",
    );
    for (who, expected) in [
        (POD_ON_NODE_1, Expected::BrokenHeader),
        (POD_ON_NODE_2, Expected::BrokenHeader),
        (OUTSIDE, Expected::Served),
    ] {
        measure(&world, &mut chapter, "PROXY load balancer", &entry, who, address, expected).await?;
    }
    let mut wrong = chapter.print()?;

    world.annotate(json!({"loadbalancer.openstack.org/ip-mode": null})).await?;
    let (address, entry) =
        world.wait_for_entry("ipMode is Proxy", |entry| entry["ipMode"] == "Proxy").await?;
    let mut chapter = Chapter::new(
        "2. The cure: openstack-ccm as it is by default",
        "The API server keeps ipMode and the nodes honour it; their traffic goes through the load balancer.",
    );
    for who in [POD_ON_NODE_1, POD_ON_NODE_2, OUTSIDE] {
        measure(&world, &mut chapter, "ip-mode removed", &entry, who, address, Expected::Served).await?;
    }
    wrong += chapter.print()?;
    Ok(wrong)
}

/// Kubernetes 1.28, its upgrade while everything runs, and the end of the Service.
async fn old_cluster(files: &std::path::Path) -> anyhow::Result<usize> {
    let mut world = World::start(&files.join("old"), ApiVersion::V1_28, "v1.28.15").await?;
    world.create_service(json!({"loadbalancer.openstack.org/proxy-protocol": "v2"})).await?;
    let (address, entry) =
        world.wait_for_entry("a hostname is published", |entry| entry["hostname"].is_string()).await?;
    let mut chapter = Chapter::new(
        "3. The fallback: Kubernetes 1.28, which does not know ipMode",
        "The operator configured ingress-hostname-suffix; no node has a rule for a hostname. PROXY protocol v2 here.",
    );
    for who in [POD_ON_NODE_1, POD_ON_NODE_2, OUTSIDE] {
        measure(&world, &mut chapter, "API server 1.28", &entry, who, address, Expected::Served).await?;
    }
    let mut wrong = chapter.print()?;

    let mut chapter = Chapter::new(
        "4. The upgrade, while everything runs",
        "A new API server alone is not enough: old nodes would ignore the mode. With the last node it turns by itself.",
    );
    world.upgrade_api_server(ApiVersion::V1_36).await?;
    world.wait_until_asked().await?;
    world.upgrade_node(0, "v1.36.3").await?;
    let (address, entry) =
        world.wait_for_entry("the hostname stays", |entry| entry["hostname"].is_string()).await?;
    for who in [POD_ON_NODE_1, POD_ON_NODE_2] {
        measure(&world, &mut chapter, "API server and node-1 1.36", &entry, who, address, Expected::Served)
            .await?;
    }
    world.upgrade_node(1, "v1.36.3").await?;
    let (address, entry) =
        world.wait_for_entry("ipMode is Proxy", |entry| entry["ipMode"] == "Proxy").await?;
    for who in [POD_ON_NODE_1, POD_ON_NODE_2, OUTSIDE] {
        measure(&world, &mut chapter, "node-2 1.36, too", &entry, who, address, Expected::Served).await?;
    }
    wrong += chapter.print()?;
    wrong += clean_up(&world).await?;
    Ok(wrong)
}

/// The Service goes, and with it everything in the cloud.
async fn clean_up(world: &World) -> anyhow::Result<usize> {
    world.delete_service().await?;
    let mut chapter = Chapter::new(
        "5. The end: the Service is deleted",
        "Its finalizer holds it until the cloud is empty; nothing is left behind.",
    );
    let left = world.left_behind();
    let result = if left.is_empty() { "nothing is left".to_owned() } else { left.join(", ") };
    chapter.line("Service deleted", "-", "load balancers, floating IPs, VIP ports", result, left.is_empty());
    chapter.print()
}

/// Sends one request and adds what came of it to the chapter.
async fn measure(
    world: &World,
    chapter: &mut Chapter,
    situation: &str,
    entry: &Value,
    who: Client,
    address: IpAddr,
    expected: Expected,
) -> anyhow::Result<()> {
    // The hostname resolves to the address, as names under the operator's suffix do.
    let host = entry["hostname"].as_str().map_or_else(|| address.to_string(), str::to_owned);
    let known = address.to_string() == host || format!("{address}.{SUFFIX}") == host;
    anyhow::ensure!(known, "{host} is not a name of {address}");
    world.backend.take_log();
    let answer = world.ask(who, address, &host).await?;
    let log = world.backend.take_log().join("; ");
    let (result, stated) = judge(&answer, &log, who, expected);
    chapter.line(situation, shown(entry), format!("{} ({})", who.name, who.address), result, stated);
    Ok(())
}

fn judge(answer: &Result<Answer, FetchError>, log: &str, who: Client, expected: Expected) -> (String, bool) {
    match answer {
        Ok(answer) => {
            let seen = answer.body.trim();
            let served = answer.status == 200 && seen == format!("client={}", who.address);
            (format!("{}, the backend saw {seen}", answer.status), expected == Expected::Served && served)
        }
        Err(error) => {
            let broken = log.contains("broken header") && matches!(error, FetchError::NoAnswer);
            (format!("{error}; backend: {log}"), expected == Expected::BrokenHeader && broken)
        }
    }
}

fn shown(entry: &Value) -> String {
    let part = |key: &str| entry[key].as_str().map(|value| format!("{key}: {value}"));
    ["ip", "hostname", "ipMode"].into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

/// Leaves a world running until Ctrl-C.
async fn keep(files: &std::path::Path) -> anyhow::Result<()> {
    let world = World::start(&files.join("kept"), ApiVersion::V1_36, "v1.36.3").await?;
    world.create_service(json!({"loadbalancer.openstack.org/proxy-protocol": "true"})).await?;
    world.wait_for_entry("ipMode is Proxy", |entry| entry["ipMode"] == "Proxy").await?;
    let folder = world.files().display();
    say(&format!(
        "\nA world with Kubernetes 1.36 is left running. In another terminal:\n\
         \n  kubectl --kubeconfig {folder}/kubeconfig get services,nodes,events\
         \n  OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml openstack --os-cloud lab loadbalancer list\n\
         \nCtrl-C ends it."
    ))?;
    tokio::signal::ctrl_c().await.context("Ctrl-C cannot be handled")
}

fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}").context("standard output is closed")
}

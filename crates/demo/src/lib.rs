//! `openstack-ccm demo`: shows the problem and the solution on an embedded OpenStack and Kubernetes API.
//!
//! Everything that the tables show is measured in the run: with real connections through load balancers that forward, a backend
//! that requires the PROXY header, and the controller as it runs in a cluster. Only the nodes are a model: of kube-proxy's rule
//! for load balancer addresses (`kube_proxy`).

use std::net::IpAddr;
use std::path::Path;

use openstack_ccm_advertise::node::Version;
use openstack_ccm_doctor::code::Code;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_manager::args::LoggingArgs;
use openstack_ccm_manager::{logging, signals};
use openstack_ccm_tools::output::print_line;
use serde_json::{Value, json};

pub mod args;
mod backend;
mod client;
mod diagnosis;
mod ingress;
mod kube_proxy;
mod report;
mod world;

use args::DemoArgs;
use client::{Answer, FetchError};
use report::{Asked, Chapter, Heading, Measurement, Outcome, Style};
use world::{CLIENTS, Client, OUTSIDE, POD_ON_NODE_1, POD_ON_NODE_2, SUFFIX, World};

/// Runs the whole demonstration.
///
/// # Errors
/// A step does not go as expected, could not be shown, or was interrupted.
pub async fn run(arguments: DemoArgs) -> anyhow::Result<()> {
    if arguments.log {
        let arguments = LoggingArgs { verbosity: 0, logging_format: "text".to_owned() };
        logging::start(&arguments);
    }
    let files = std::env::temp_dir().join(format!("openstack-ccm-demo-{}", std::process::id()));
    // Held from the beginning to the end: the controllers in this process get the same signals, and must not be the only receivers.
    let stop = signals::stop_on_signals()?;
    let mut interrupted = std::pin::pin!(stop.cancelled());
    let shown = tokio::select! {
        biased;
        shown = story(&arguments, &files) => shown,
        _ = &mut interrupted => Err(anyhow::anyhow!("interrupted: only what is shown above was measured")),
    };
    let result = match shown {
        Ok(Some(kept)) => {
            interrupted.await;
            drop(kept);
            print_line("\nThe simulated cluster has ended, and its files are removed.")
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // Left-over files of a demonstration in the temporary folder do no harm.
    let _ = std::fs::remove_dir_all(&files);
    result
}

/// Returns the cluster to keep running, if any. With it the demo has succeeded: Ctrl-C then only ends this cluster.
async fn story(arguments: &DemoArgs, files: &Path) -> anyhow::Result<Option<World>> {
    let style = Style::new(arguments.verbose);
    style.begin()?;
    let mut wrong = modern_cluster(files, style).await?;
    wrong += lying_node(files, style).await?;
    wrong += old_cluster(files, style).await?;
    anyhow::ensure!(wrong == 0, "{wrong} result(s) are not as expected");
    print_line(
        "\nCut off: nodes send their pods' traffic past the load balancer, so the PROXY\n\
         header is missing. With ipMode: Proxy or a hostname it goes through.",
    )?;
    if arguments.keep { keep(files).await.map(Some) } else { Ok(None) }
}

/// Shows the problem and the solution on Kubernetes 1.36.
async fn modern_cluster(files: &Path, style: Style) -> anyhow::Result<usize> {
    let world = World::start(&files.join("modern"), ApiVersion::V1_36, "v1.36.3", None).await?;
    world
        .create_service(json!({
            "loadbalancer.openstack.org/proxy-protocol": "true",
            "loadbalancer.openstack.org/ip-mode": "vip",
        }))
        .await?;
    let published =
        world.wait_for_entry("the load balancer is published", |entry| entry["ip"].is_string()).await?;
    let mut chapter = Chapter::new(Heading {
        name: "Break",
        cluster: "1.36, ipMode left unset",
        published: "ip, ipMode: VIP",
        title: "1. The break: Kubernetes 1.36, the status as controllers without ipMode write it",
        explanation: "Every node sends its own traffic for the address straight to a pod, so the PROXY header is missing.",
    });
    let pods = [POD_ON_NODE_1, POD_ON_NODE_2];
    measure(&world, &mut chapter, "PROXY load balancer", &published, &pods, Outcome::CutOff).await?;
    measure(&world, &mut chapter, "PROXY load balancer", &published, &[OUTSIDE], Outcome::Works).await?;
    let mut wrong = chapter.print(style)?;
    wrong += diagnose(&world, Some(Code::D201), style).await?;

    world.annotate(json!({"loadbalancer.openstack.org/ip-mode": null})).await?;
    let published = world.wait_for_entry("ipMode is Proxy", is_proxy).await?;
    let mut chapter = Chapter::new(Heading {
        name: "Cure",
        cluster: "1.36, openstack-ccm",
        published: "ip, ipMode: Proxy",
        title: "2. The cure: openstack-ccm as it is by default",
        explanation: "The API server keeps ipMode and the nodes honour it; their traffic goes through the load balancer.",
    });
    measure(&world, &mut chapter, "ip-mode removed", &published, &CLIENTS, Outcome::Works).await?;
    wrong += chapter.print(style)?;
    wrong += diagnose(&world, None, style).await?;
    Ok(wrong)
}

/// Shows a node with a kubelet of 1.36 and a kube-proxy of 1.29: the canary detects it, and the Service gets a hostname.
async fn lying_node(files: &Path, style: Style) -> anyhow::Result<usize> {
    let old = Some(Version(1, 29, 0));
    let world = World::start(&files.join("lying"), ApiVersion::V1_36, "v1.36.3", old).await?;
    world.create_service(json!({"loadbalancer.openstack.org/proxy-protocol": "v2"})).await?;
    let published = world.wait_for_entry("a hostname is published", has_hostname).await?;
    let mut chapter = Chapter::new(Heading {
        name: "Canary",
        cluster: "1.36, one kube-proxy 1.29",
        published: "hostname",
        title: "3. The canary: every kubelet says 1.36, but the kube-proxy of node-2 is 1.29",
        explanation: "The version of node-2 lies. The canary's pod there saw that ipMode is ignored, so a hostname is published.",
    });
    measure(&world, &mut chapter, "node-2 is unfit", &published, &CLIENTS, Outcome::Works).await?;
    chapter.print(style)
}

/// Shows Kubernetes 1.28, its upgrade while everything runs, and the deletion of the Service.
async fn old_cluster(files: &Path, style: Style) -> anyhow::Result<usize> {
    let mut world = World::start(&files.join("old"), ApiVersion::V1_28, "v1.28.15", None).await?;
    world.create_service(json!({"loadbalancer.openstack.org/proxy-protocol": "v2"})).await?;
    let published = world.wait_for_entry("a hostname is published", has_hostname).await?;
    let mut chapter = Chapter::new(Heading {
        name: "Fallback",
        cluster: "1.28, which lacks ipMode",
        published: "hostname",
        title: "4. The fallback: Kubernetes 1.28, which does not know ipMode",
        explanation: "The operator configured ingress-hostname-suffix; no node has a rule for a hostname. PROXY protocol v2 here.",
    });
    measure(&world, &mut chapter, "API server 1.28", &published, &CLIENTS, Outcome::Works).await?;
    let mut wrong = chapter.print(style)?;
    wrong += upgrade(&mut world, style).await?;
    wrong += clean_up(&world, style).await?;
    Ok(wrong)
}

/// Upgrades the cluster to a version with `ipMode` while everything runs.
async fn upgrade(world: &mut World, style: Style) -> anyhow::Result<usize> {
    let mut chapter = Chapter::new(Heading {
        name: "Upgrade",
        cluster: "1.28 to 1.36, node by node",
        published: "hostname, then Proxy",
        title: "5. The upgrade, while everything runs",
        explanation: "A new API server alone is not enough: old nodes would ignore ipMode. After the last node, Proxy is published.",
    });
    world.upgrade_api_server(ApiVersion::V1_36).await?;
    world.wait_until_asked().await?;
    world.upgrade_node(0, "v1.36.3").await?;
    let published = world.wait_for_entry("the hostname stays", has_hostname).await?;
    let (situation, pods) = ("API server and node-1 1.36", [POD_ON_NODE_1, POD_ON_NODE_2]);
    measure(world, &mut chapter, situation, &published, &pods, Outcome::Works).await?;
    world.upgrade_node(1, "v1.36.3").await?;
    let published = world.wait_for_entry("ipMode is Proxy", is_proxy).await?;
    measure(world, &mut chapter, "node-2 1.36, too", &published, &CLIENTS, Outcome::Works).await?;
    chapter.print(style)
}

/// Deletes the Service, and with it all its cloud objects.
async fn clean_up(world: &World, style: Style) -> anyhow::Result<usize> {
    world.delete_service().await?;
    let mut chapter = Chapter::new(Heading {
        name: "Clean-up",
        cluster: "the Service is deleted",
        published: "nothing left behind",
        title: "6. The end: the Service is deleted",
        explanation: "Its finalizer holds it until the cloud is empty; nothing is left behind.",
    });
    let left = world.left_behind();
    chapter.line(Measurement {
        situation: "Service deleted".to_owned(),
        published: "-".to_owned(),
        asked: Asked::Cloud,
        who: "load balancers, floating IPs, VIP ports".to_owned(),
        outcome: if left.is_empty() { Outcome::Works } else { Outcome::Fails },
        result: if left.is_empty() { "nothing is left".to_owned() } else { left.join(", ") },
        expected: left.is_empty(),
    });
    chapter.print(style)
}

fn has_hostname(entry: &Value) -> bool {
    entry["hostname"].is_string()
}

fn is_proxy(entry: &Value) -> bool {
    entry["ipMode"] == "Proxy"
}

/// Lets each client send a request, and adds the results to the chapter.
async fn measure(
    world: &World,
    chapter: &mut Chapter,
    situation: &str,
    (address, entry): &(IpAddr, Value),
    clients: &[Client],
    expected: Outcome,
) -> anyhow::Result<()> {
    // The hostname resolves to the address, as names under the operator's suffix do.
    let host = entry["hostname"].as_str().map_or_else(|| address.to_string(), str::to_owned);
    let known = address.to_string() == host || format!("{address}.{SUFFIX}") == host;
    anyhow::ensure!(known, "{host} is not a name of {address}");
    for who in clients.iter().copied() {
        world.backend.take_log();
        let answer = world.ask(who, *address, &host).await?;
        let log = world.backend.take_log().join("; ");
        let (result, outcome) = judge(&answer, &log, who);
        chapter.line(Measurement {
            situation: situation.to_owned(),
            published: shown(entry),
            asked: if who == OUTSIDE { Asked::Outside } else { Asked::Pod },
            who: format!("{} ({})", who.name, who.address),
            outcome,
            result,
            expected: outcome == expected,
        });
    }
    Ok(())
}

/// Judges an answer: it works if the backend saw the true client; a pod is cut off if the backend logged a missing header.
fn judge(answer: &Result<Answer, FetchError>, log: &str, who: Client) -> (String, Outcome) {
    match answer {
        Ok(answer) => {
            let seen = answer.body.trim();
            let served = answer.status == 200 && seen == format!("client={}", who.address);
            let outcome = if served { Outcome::Works } else { Outcome::Fails };
            (format!("{}, the backend saw {seen}", answer.status), outcome)
        }
        Err(error) => {
            let broken = log.contains("broken header") && matches!(error, FetchError::NoAnswer);
            let outcome = if broken { Outcome::CutOff } else { Outcome::Fails };
            (format!("{error}; backend: {log}"), outcome)
        }
    }
}

fn shown(entry: &Value) -> String {
    let part = |key: &str| entry[key].as_str().map(|value| format!("{key}: {value}"));
    ["ip", "hostname", "ipMode"].into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

/// Shows doctor's outcome for the Service; returns 1 unless it has exactly the expected error.
async fn diagnose(world: &World, expected: Option<Code>, style: Style) -> anyhow::Result<usize> {
    let found = diagnosis::look(world).await?;
    let codes = diagnosis::errors(&found);
    style.diagnosis(&found, codes.first().copied())?;
    Ok(usize::from(codes != Vec::from_iter(expected)))
}

/// Starts a world that keeps running.
async fn keep(files: &Path) -> anyhow::Result<World> {
    let world = World::start(&files.join("kept"), ApiVersion::V1_36, "v1.36.3", None).await?;
    world.create_service(json!({"loadbalancer.openstack.org/proxy-protocol": "true"})).await?;
    world.wait_for_entry("ipMode is Proxy", is_proxy).await?;
    let folder = world.files().display();
    print_line(format_args!(
        "\nA simulated cluster with Kubernetes 1.36 and OpenStack is running. In another terminal:\n\
         \n  export KUBECONFIG={folder}/kubeconfig\
         \n  kubectl get services,nodes; kubectl get events --sort-by=.lastTimestamp\
         \n  kubectl create service loadbalancer web --tcp=80:8080\
         \n  OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml openstack --os-cloud lab loadbalancer list\n\
         \nThe other subcommands work on it; the cluster is called demo:\n\
         \n  export CLOUD_CONFIG={folder}/cloud.conf CLUSTER_NAME=demo\
         \n  openstack-ccm doctor default/ingress\
         \n  openstack-ccm status\
         \n  openstack-ccm check-config --online --services\
         \n  openstack-ccm plan default/ingress --as-if loadbalancer.openstack.org/proxy-protocol-\
         \n  openstack-ccm adopt\
         \n  openstack-ccm orphans\
         \n  openstack-ccm hand-back\n\
         \nNothing runs in pods here, so `canary --once` measures nothing. Ctrl-C or SIGTERM ends it."
    ))?;
    Ok(world)
}

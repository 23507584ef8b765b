//! The canary against the truth: for each kube-proxy its verdict is what a pod on that node sees at a real load balancer
//! with PROXY protocol. Then what follows from verdicts.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::fallback::SUFFIX;
use super::fallback::by_name;
use super::steps::{self, Reach, clients_inside, green, published_through};
use super::{CURRENT, DUAL_STACK, GATE_OFF, GATE_ON, OLD};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::canary::{CanaryPods, NAMESPACE, SERVICES, Whose, flags};
use crate::kubernetes::objects::{ServiceSketch, set_kubelet};
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::machine::process::run as run_command;
use crate::machine::wait::{soon, until};
use crate::machine::world::in_namespace;
use crate::network::ask::{Outcome, from_namespace};
use crate::network::{NODES, NodePlace};
use crate::stage::Stage;

const SCENARIO: &str = "20 canary";
/// A Service with PROXY protocol, and one of IPv6.
const TRUTH: &str = "truth";
const TRUTH_V6: &str = "truth-six";
/// The node whose kube-proxy changes in the matrix, and the other one.
const NODE: NodePlace = NODES[0];
const OTHER: NodePlace = NODES[1];
/// Longest time until a verdict follows: the pods of this scenario are in a hurry.
const FOLLOWS: Duration = Duration::from_secs(60);

/// kube-proxy, mode, and whether it honours `ipMode`. nftables came with 1.29.
const MATRIX: [(ServerKind, Mode, bool); 7] = [
    (OLD, Mode::Iptables, false),
    (GATE_OFF, Mode::Iptables, false),
    (GATE_OFF, Mode::Nftables, false),
    (GATE_ON, Mode::Iptables, true),
    (GATE_ON, Mode::Nftables, true),
    (CURRENT, Mode::Nftables, true),
    (CURRENT, Mode::Iptables, true),
];

/// All of it on a cluster of 1.36.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let canary = prepare(stage, &[(TRUTH, "IPv4")], false)?;
    for (kind, mode, honours) in MATRIX {
        let case = format!("kube-proxy {} {}", kind.text(), mode.text());
        stage.end_proxy(NODE)?;
        stage.start_proxy(NODE, kind, mode)?;
        stage.check(SCENARIO, &case, |stage| verdict_is_truth(stage, &canary, honours, &[TRUTH]));
    }
    stage.check(SCENARIO, "packets of a look", |_| packets(&canary));
    consequences(stage, &canary)?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[TRUTH]));
    Ok(())
}

/// The verdict on a cluster of one version, whose nodes honour `ipMode`.
pub(crate) fn on_one_version(stage: &mut Stage, kind: ServerKind, mode: Mode) -> Result<()> {
    let canary = prepare(stage, &[(TRUTH, "IPv4")], false)?;
    let case = format!("kube-proxy {} {}", kind.text(), mode.text());
    stage.check(SCENARIO, &case, |stage| verdict_is_truth(stage, &canary, true, &[TRUTH]));
    stage.check(SCENARIO, &format!("{case}, clean-up"), |stage| steps::release(stage, &[TRUTH]));
    Ok(())
}

/// The verdict over both families of a dual-stack cluster.
pub(crate) fn in_both_families(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    stage.cluster()?.launch.load_balancer_settings(&networks, "subnet-id =")?;
    let services = [TRUTH, TRUTH_V6];
    let canary = prepare(stage, &[(TRUTH, "IPv4"), (TRUTH_V6, "IPv6")], true)?;
    stage.check(SCENARIO, "both families, status", |stage| both_families(&stage.api()?));
    let gate_off = ServerKind { dual_stack: true, ..GATE_OFF };
    for (kind, honours) in [(gate_off, false), (DUAL_STACK, true)] {
        stage.end_proxy(NODE)?;
        stage.start_proxy(NODE, kind, Mode::Iptables)?;
        let case = format!("both families, kube-proxy {}", kind.text());
        stage.check(SCENARIO, &case, |stage| verdict_is_truth(stage, &canary, honours, &services));
    }
    stage.check(SCENARIO, "both families, clean-up", |stage| {
        steps::remove(stage, &services).map(|()| "the Services are gone".into())
    });
    Ok(())
}

/// Services with PROXY protocol that are published with `Proxy` whatever the nodes are, and a canary whose status the
/// controller has written.
fn prepare(stage: &mut Stage, services: &[(&str, &'static str)], dual_stack: bool) -> Result<CanaryPods> {
    let api = stage.api()?;
    for (name, family) in services {
        let mut sketch = ServiceSketch::proxy(name, "v2", true);
        sketch.families = if *family == "IPv6" { &["IPv6"] } else { &["IPv4"] };
        sketch.create(&api, &[NODE, OTHER])?;
    }
    let program = stage.program().to_owned();
    let logs = stage.cluster()?.plane.folder().to_owned();
    let canary = CanaryPods::prepare(&api, Whose::Controller, &program, &logs)?;
    let mut all = flags()?;
    all.push("--feature-gates=LoadBalancerIPMode=true".into());
    stage.cluster()?.launch.flags = all;
    stage.start_controller()?;
    for place in [NODE, OTHER] {
        canary.start(place, dual_stack)?;
    }
    stage.check(SCENARIO, if dual_stack { "both families, published" } else { "published" }, |_| {
        let addresses: Vec<String> =
            services.iter().map(|(name, _)| published_through(&api, name)).collect::<Result<_>>()?;
        let shown = soon("the leader has written the status of the canary", || statuses(&api))?;
        Ok(format!("{}; canary {shown}", addresses.join(", ")))
    });
    Ok(canary)
}

fn statuses(api: &Kubernetes) -> Result<String> {
    let mut shown = Vec::new();
    for (service, mode) in SERVICES.into_iter().zip(["VIP", "Proxy"]) {
        let object = api.get(&format!("/api/v1/namespaces/{NAMESPACE}/services/{service}"))?;
        let entries = object["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        ensure!(!entries.is_empty(), "{service} has no status");
        let all = entries.iter().all(|entry| entry["ipMode"] == mode);
        ensure!(all, "{service} needs {mode}: {entries:?}");
        let words =
            entries.iter().map(|entry| format!("{} {}", entry["ip"], entry["ipMode"]).replace('"', ""));
        shown.push(format!("{service} {}", words.collect::<Vec<_>>().join(" and ")));
    }
    Ok(shown.join(", "))
}

fn both_families(api: &Kubernetes) -> Result<String> {
    let shown = statuses(api)?;
    for part in ["192.0.2.1 VIP", "2001:db8::1 VIP", "192.0.2.2 Proxy", "2001:db8::2 Proxy"] {
        ensure!(shown.contains(part), "{part} is missing: {shown}");
    }
    Ok(shown)
}

/// The pod of a node says by its readiness what another pod there sees at real load balancers.
fn verdict_is_truth(
    stage: &mut Stage,
    canary: &CanaryPods,
    expected: bool,
    services: &[&str],
) -> Result<String> {
    let api = stage.api()?;
    let addresses: Vec<String> =
        services.iter().map(|name| steps::address(&api, name)).collect::<Result<_>>()?;
    let truth = || -> Result<Vec<bool>> { addresses.iter().map(|address| passes(address)).collect() };
    until("a pod sees what this kube-proxy does", FOLLOWS, || {
        let seen = truth()?;
        ensure!(seen.iter().all(|passes| *passes == expected), "through the load balancer: {seen:?}");
        Ok(())
    })?;
    until("the canary says so", FOLLOWS, || {
        let said = canary.said(NODE);
        ensure!(said == Some((true, expected)), "conclusive and fit: {said:?}");
        Ok(())
    })?;
    // It is no passing moment.
    std::thread::sleep(Duration::from_secs(3));
    let (seen, said) = (truth()?, canary.said(NODE));
    ensure!(
        seen.iter().all(|passes| *passes == expected) && said == Some((true, expected)),
        "{seen:?}, {said:?}"
    );
    let verdict = if expected { "fit, 2/2 ready" } else { "unfit, 1/2 ready" };
    let traffic = if expected { "passes the load balancer" } else { "is cut (no PROXY header)" };
    Ok(format!("verdict {verdict}; a pod's request to {} {traffic}", addresses.join(" and ")))
}

/// Whether a pod on the node gets through the load balancer: otherwise nginx misses the header and closes the connection.
fn passes(address: &str) -> Result<bool> {
    match from_namespace(&NODE.client(), address, 80)? {
        Outcome::Closed => Ok(false),
        outcome if outcome.client().is_some() => Ok(true),
        outcome => anyhow::bail!("a pod asked {address}: {outcome}"),
    }
}

/// Packets that the looks of one pod take, counted in its namespace.
fn packets(canary: &CanaryPods) -> Result<String> {
    const SECONDS: u32 = 20;
    /// `--period` of these pods, and of those of the chart.
    const PERIODS: (u32, u32) = (2, 30);
    until("the verdict is settled", FOLLOWS, || {
        ensure!(canary.said(NODE) == Some((true, true)), "{:?}", canary.said(NODE));
        Ok(())
    })?;
    let rules = ["-A OUTPUT -p tcp --dport 8080", "-A INPUT -p tcp --sport 8080"];
    let iptables = |words: &str| {
        run_command(in_namespace(&NODE.client(), "iptables").arg("-w").args(words.split_whitespace()))
    };
    for rule in rules {
        iptables(rule)?;
    }
    std::thread::sleep(Duration::from_secs(SECONDS.into()));
    let listed = iptables("-L -v -n -x")?;
    let counted: u32 = listed
        .lines()
        .filter(|line| line.contains("dpt:8080") || line.contains("spt:8080"))
        .filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok())
        .sum();
    for rule in rules {
        iptables(&rule.replace("-A", "-D"))?;
    }
    let looks = SECONDS / PERIODS.0;
    ensure!(counted > 0 && counted < looks * 60, "{counted} packets for {looks} looks");
    let hour = counted * (3600 / PERIODS.1) / looks;
    Ok(format!(
        "{counted} packets for {looks} looks of a fit node, about {hour} an hour at the chart's period"
    ))
}

/// What follows from verdicts, with a controller that decides by them.
fn consequences(stage: &mut Stage, canary: &CanaryPods) -> Result<()> {
    let api = stage.api()?;
    let networks = stage.cloud.networks.clone();
    stage.stop_controller()?;
    let suffix = format!("ingress-hostname-suffix = {SUFFIX}");
    stage.cluster()?.launch.load_balancer_settings(&networks, &suffix)?;
    stage.cluster()?.launch.flags = flags()?;
    for place in [NODE, OTHER] {
        stage.end_proxy(place)?;
        stage.start_proxy(place, GATE_ON, Mode::Iptables)?;
        set_kubelet(&api, place, GATE_ON)?;
    }
    settled(canary, (true, true))?;
    stage.start_controller()?;
    stage.check(SCENARIO, "nodes 1.29 with the gate on: Proxy without a flag", by_proxy);
    stage.end_proxy(OTHER)?;
    stage.start_proxy(OTHER, GATE_OFF, Mode::Iptables)?;
    for place in [NODE, OTHER] {
        set_kubelet(&api, place, CURRENT)?;
    }
    stage.check(SCENARIO, "kubelet 1.36 with kube-proxy 1.29: the version lies, by hostname", |stage| {
        by_name(stage, TRUTH, Reach::Internal)
    });
    stage.end_proxy(OTHER)?;
    stage.start_proxy(OTHER, CURRENT, Mode::Iptables)?;
    stage.check(SCENARIO, "its kube-proxy is replaced by 1.36 while all runs: Proxy again", by_proxy);
    stage.kill_proxy(OTHER)?;
    stage.check(SCENARIO, "a kube-proxy dies and leaves its rules: nothing changes", |stage| {
        stays(stage, canary, OTHER, (true, true), Duration::from_secs(25))
    });
    stage.start_proxy(OTHER, CURRENT, Mode::Iptables)?;
    stage.check(
        SCENARIO,
        "the canary's port is blocked on a node: not conclusive, nothing changes",
        |stage| blocked(stage, canary),
    );
    Ok(())
}

fn settled(canary: &CanaryPods, expected: (bool, bool)) -> Result<()> {
    for place in [NODE, OTHER] {
        until("the canary has its verdict", FOLLOWS, || {
            ensure!(canary.said(place) == Some(expected), "{}: {:?}", place.name(), canary.said(place));
            Ok(())
        })?;
    }
    Ok(())
}

fn by_proxy(stage: &mut Stage) -> Result<String> {
    let address = published_through(&stage.api()?, TRUTH)?;
    let seen = green(&address, &clients_inside(stage, Reach::Internal))?;
    let cluster = stage.cluster()?;
    let controller = cluster.controller.as_ref().context("no controller runs")?;
    let verdicts = soon("the controller has a verdict of the canary for each node", || {
        let lines = controller.metrics("openstack_ccm_node_ip_mode")?;
        let fit = |line: &&String| line.contains("verdict=\"fit\"") && line.contains("source=\"canary\"");
        ensure!(lines.iter().filter(fit).count() == 2, "{lines:?}");
        Ok(lines.len())
    })?;
    Ok(format!("GREEN: {address} ipMode Proxy, {seen}; {verdicts} nodes fit by the canary"))
}

/// The word of a pod and the publication are the same all the time.
fn stays(
    stage: &Stage,
    canary: &CanaryPods,
    place: NodePlace,
    said: (bool, bool),
    long: Duration,
) -> Result<String> {
    let api = stage.api()?;
    let began = std::time::Instant::now();
    while began.elapsed() < long {
        let now = canary.said(place);
        ensure!(now == Some(said), "conclusive and fit: {now:?}");
        let ingress = api.ingress(TRUTH)?;
        ensure!(ingress[0]["ipMode"] == "Proxy", "{ingress}");
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(format!("for {} s: conclusive {}, fit {}, ipMode Proxy", long.as_secs(), said.0, said.1))
}

/// As a NetworkPolicy would do it.
fn blocked(stage: &Stage, canary: &CanaryPods) -> Result<String> {
    let rule = |action: &str| {
        let words = format!("-w {action} OUTPUT -p tcp --dport 8080 -j DROP");
        run_command(in_namespace(&OTHER.client(), "iptables").args(words.split_whitespace()))
    };
    rule("-I")?;
    let looked = until("the verdict has lapsed", FOLLOWS, || {
        ensure!(canary.said(OTHER) == Some((false, false)), "{:?}", canary.said(OTHER));
        Ok(())
    })
    .and_then(|()| stays(stage, canary, OTHER, (false, false), Duration::from_secs(15)));
    rule("-D")?;
    let looked = looked?;
    settled(canary, (true, true))?;
    Ok(format!("{looked}; fit again when it is open"))
}

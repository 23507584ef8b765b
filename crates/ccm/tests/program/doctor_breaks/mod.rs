//! Green means that it arrives: everything that can be broken on the way to a Service is broken, packets are sent from pods, nodes and
//! outside, and doctor has to say what they did.
//!
//! The real program serves a world of each kind once; every break is done to a copy of it. What becomes of packets follows from the
//! simulators alone (`Sim::send` of the cloud, `Sim::leave` and `Sim::arrive` of the cluster), which know nothing of doctor.
//!
//! `DOCTOR_PAIRS=10000` has so many random pairs of breaks done, and each break also in worlds where it should do nothing new; `make faults` does that.
//! With `DOCTOR_FIRST` the pairs begin with this seed, and nothing else is done.
//!
//! | module | holds |
//! | --- | --- |
//! | `cluster` | what others make in a cluster |
//! | `kube_proxy` | the service proxy, as kubeadm installs it |
//! | `programs` | the applications, as their charts install them |
//! | `stage` | a served world |
//! | `packets` | what becomes of packets |
//! | `breaks` | what is broken |
//! | `role` | what whoever looks may do |
//! | `histories` | how else a healthy world comes to be |
//! | `agreement` | what `plan` and `status` say beside it |
//! | `costs` | how many calls a look takes, and how long it waits |
//! | `verdict` | what doctor says, and whether that agrees |

mod agreement;
mod breaks;
mod cluster;
mod costs;
mod histories;
mod kube_proxy;
mod packets;
mod programs;
mod role;
mod stage;
mod verdict;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use rstest::rstest;

use breaks::{Break, configures};
use stage::{Kind, Stage};
use verdict::{Alone, Disagreements, compare};

/// Pairs without `DOCTOR_PAIRS`, of all worlds together.
const PAIRS: u64 = 200;
/// Pairs that once showed something wrong.
const PINNED: &[(Kind, [&str; 2])] = &[
    // Slices are older than the labels of their pod.
    (
        Kind::Plain,
        ["egress to the pods and to the address", "a pod with other labels, and a slice that nobody updates"],
    ),
    (
        Kind::Udp,
        [
            "a pod with other labels, and a slice that nobody updates",
            "egress of another namespace to the pods only",
        ],
    ),
    // Half of the packets arrive.
    (Kind::Proxy, ["external IP of the Service itself", "nginx: a rollout that is half done"]),
    (
        Kind::Proxy,
        ["first listener leads to a pool with the other header", "nginx: a rollout that is half done"],
    ),
    (Kind::Overlay, ["pods of kube-proxy that are not replaced yet", "nginx: a rollout that is half done"]),
    // The load balancer goes on sending what it sent.
    (Kind::Traefik, ["a value that is none", "Traefik: by a file that nobody sees"]),
    // All nodes short-circuit it, and so apply the source ranges.
    (Kind::Ranges, ["nginx: no ConfigMap named", "gate on for one that does not know it"]),
    (Kind::Traefik, ["ingress from outside only", "old kube-proxy by tag and digest"]),
    (
        Kind::Overlay,
        [
            "a pod that was evicted, and a slice that nobody updates",
            "the last endpoint ends and still serves",
        ],
    ),
];
/// After so many the rest would show nothing new.
const ENOUGH: usize = 40;

#[rstest]
#[case::proxy(Kind::Proxy)]
#[case::plain(Kind::Plain)]
#[case::udp(Kind::Udp)]
#[case::local(Kind::Local)]
#[case::monitored(Kind::Monitored)]
#[case::ranges(Kind::Ranges)]
#[case::managed(Kind::Managed)]
#[case::shared(Kind::Shared)]
#[case::internal(Kind::Internal)]
#[case::hostname(Kind::Hostname)]
#[case::dual_stack(Kind::DualStack)]
#[case::overlay(Kind::Overlay)]
#[case::traefik(Kind::Traefik)]
#[case::haproxy(Kind::Haproxy)]
#[case::envoy(Kind::Envoy)]
#[case::plain_envoy(Kind::PlainEnvoy)]
#[tokio::test(start_paused = true)]
async fn doctor_says_what_packets_do(#[case] kind: Kind) {
    let wish = Wish::read();
    let seeds = wish.seeds(kind);
    if wish.first.is_some() && seeds.is_empty() {
        return;
    }
    let stage = Stage::of(kind).await;
    let mut found = Vec::new();
    if wish.first.is_none() {
        found.extend(healthy(&stage).await);
        found.extend(each(&stage, &breaks::fitting(kind, wish.count.is_some())).await);
    }
    let fitting = breaks::fitting(kind, true);
    let named = |name: &&str| fitting.iter().find(|one| one.name == *name).copied().unwrap();
    let pinned = PINNED.iter().filter(|(of, _)| *of == kind && wish.first.is_none());
    let pinned = pinned.map(|(_, names)| ("pinned".to_owned(), names.each_ref().map(&named)));
    let drawn = seeds.iter().map(|seed| (repeat(*seed), draw(&fitting, *seed)));
    found.extend(pairs(&stage, pinned.chain(drawn)).await);
    assert!(found.is_empty(), "{kind:?}: {} disagreements\n{}", found.len(), found.join("\n"));
}

/// Every break alone.
async fn each(stage: &Stage, fitting: &[&Break]) -> Vec<String> {
    let mut found = Vec::new();
    for one in fitting {
        stage.heal();
        (one.does)(stage);
        stage.check_health();
        let disagreements = compare(stage, &[one], None).await;
        if !disagreements.is_empty() {
            found.push(told(one.name, &disagreements));
        }
    }
    found
}

/// What doctor finds where nothing is broken, for somebody with the role that it prints.
async fn healthy(stage: &Stage) -> Vec<String> {
    let role = role::enforce(&stage.world);
    let disagreements = compare(stage, &[], None).await;
    let mut found: Vec<String> = Vec::new();
    if !disagreements.is_empty() {
        found.push(told("healthy", &disagreements));
    }
    match verdict::diagnose(stage).await {
        Ok(report) => found.extend(verdict::codes(&report).into_iter().map(|one| format!("healthy: {one}"))),
        Err(error) => found.push(format!("healthy: {error}")),
    }
    stage.world.kube.remove_fault(role);
    found
}

fn told(what: &str, disagreements: &Disagreements) -> String {
    let lines: Vec<String> =
        disagreements.iter().map(|(text, of)| format!("    {text}\n        {}", of.join("; "))).collect();
    format!("{what}\n{}", lines.join("\n"))
}

/// The command that does a pair again.
fn repeat(seed: u64) -> String {
    format!(
        "DOCTOR_FIRST={seed} DOCTOR_PAIRS=1 cargo test --workspace --all-features --test program doctor_breaks"
    )
}

/// What is asked for.
struct Wish {
    /// `DOCTOR_FIRST`
    first: Option<u64>,
    /// `DOCTOR_PAIRS`
    count: Option<u64>,
}

impl Wish {
    fn read() -> Self {
        let number = |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
        Self { first: number("DOCTOR_FIRST"), count: number("DOCTOR_PAIRS") }
    }

    /// The seeds of the pairs in a world of this kind.
    fn seeds(&self, kind: Kind) -> Vec<u64> {
        let first = self.first.unwrap_or_default();
        let worlds = u64::try_from(Kind::ALL.len()).unwrap();
        let own = u64::try_from(Kind::ALL.iter().position(|one| *one == kind).unwrap()).unwrap();
        (first..first + self.count.unwrap_or(PAIRS)).filter(|seed| seed % worlds == own).collect()
    }
}

/// A random pair of breaks.
fn draw<'a>(fitting: &[&'a Break], seed: u64) -> [&'a Break; 2] {
    let mut rng = Rng::with_seed(seed);
    let mut draw = || fitting[rng.usize(..fitting.len())];
    let [first, mut second] = [draw(), draw()];
    // A header that is changed twice is as it was.
    while first.name == second.name || (configures(first) && configures(second)) {
        second = draw();
    }
    [first, second]
}

/// Pairs of breaks, each with what it is called.
async fn pairs<'a>(stage: &Stage, all: impl Iterator<Item = (String, [&'a Break; 2])>) -> Vec<String> {
    let mut found = Vec::new();
    for (title, pair) in all {
        if found.len() >= ENOUGH {
            break;
        }
        let Some(alone) = break_both(stage, pair) else { continue };
        let disagreements = compare(stage, &pair, Some(&alone)).await;
        if !disagreements.is_empty() {
            found.push(told(&format!("{title}: {} + {}", pair[0].name, pair[1].name), &disagreements));
        }
    }
    found
}

/// Does both, and returns what each does alone; nothing where one leaves nothing for the other to be done to.
fn break_both(stage: &Stage, pair: [&Break; 2]) -> Option<Alone> {
    let mut alone = Alone::default();
    for one in pair {
        stage.heal();
        (one.does)(stage);
        stage.check_health();
        alone.note(stage);
    }
    stage.heal();
    (pair[0].does)(stage);
    catch_unwind(AssertUnwindSafe(|| (pair[1].does)(stage))).ok()?;
    stage.check_health();
    Some(alone)
}

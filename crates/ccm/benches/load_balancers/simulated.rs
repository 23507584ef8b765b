//! Time on the paused clock, and every call.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::support::{Call, Side, World};

/// What is left for later is done by then.
const LATER: Duration = Duration::from_secs(120);

/// What an operation took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Simulated {
    /// From the start of the operation until it is done, in seconds.
    pub(crate) time: f64,
    /// What Octavia alone needs, which works on all load balancers at once, in seconds.
    pub(crate) own: f64,
    /// Load balancers that it was about.
    pub(crate) load_balancers: usize,
    /// Calls to OpenStack by name.
    pub(crate) openstack: BTreeMap<String, usize>,
    /// Those that ask for a change.
    pub(crate) openstack_writes: usize,
    /// Calls to Kubernetes by name.
    pub(crate) kubernetes: BTreeMap<String, usize>,
    /// Those that ask for a change.
    pub(crate) kubernetes_writes: usize,
}

impl Simulated {
    /// All calls to OpenStack.
    pub(crate) fn openstack_calls(&self) -> usize {
        self.openstack.values().sum()
    }

    /// All calls to Kubernetes.
    pub(crate) fn kubernetes_calls(&self) -> usize {
        self.kubernetes.values().sum()
    }

    /// With the calls that were made later; the time stays.
    pub(crate) fn and(mut self, later: &Self) -> Self {
        let sum = |all: &mut BTreeMap<String, usize>, more: &BTreeMap<String, usize>| {
            more.iter().for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
        };
        sum(&mut self.openstack, &later.openstack);
        sum(&mut self.kubernetes, &later.kubernetes);
        self.openstack_writes += later.openstack_writes;
        self.kubernetes_writes += later.kubernetes_writes;
        self
    }
}

/// Measures an operation, which is over when `operation` ends. What is done afterwards, until nothing happens any more,
/// is counted too.
pub(crate) async fn measure(
    world: &mut World,
    own: Duration,
    load_balancers: usize,
    operation: impl AsyncFnOnce(&mut World),
) -> Simulated {
    world.take_calls();
    let start = Instant::now();
    operation(world).await;
    let time = start.elapsed();
    world.quiet().await;
    counted(&world.take_calls(), time, own, load_balancers)
}

/// The same for an operation of which something is left for later: `rest` is long enough for everything else. Answers
/// what the operation took, and what was left, whose time is from the start of the operation until its last call.
pub(crate) async fn measure_in_two(
    world: &mut World,
    own: Duration,
    load_balancers: usize,
    operation: impl AsyncFnOnce(&mut World),
    rest: Duration,
) -> (Simulated, Simulated) {
    world.take_calls();
    let start = Instant::now();
    operation(world).await;
    let time = start.elapsed();
    tokio::time::sleep(rest).await;
    let first = counted(&world.take_calls(), time, own, load_balancers);
    tokio::time::sleep(LATER).await;
    let calls = world.take_calls();
    let time = until_the_last(&calls, start, world.settings.latency);
    (first, counted(&calls, time, Duration::ZERO, load_balancers))
}

/// The same for an operation without a visible end: it is over with its last call.
pub(crate) async fn measure_until_quiet(
    world: &mut World,
    load_balancers: usize,
    operation: impl AsyncFnOnce(&mut World),
) -> Simulated {
    world.take_calls();
    let start = Instant::now();
    operation(world).await;
    world.quiet().await;
    let calls = world.take_calls();
    let time = until_the_last(&calls, start, world.settings.latency);
    counted(&calls, time, Duration::ZERO, load_balancers)
}

/// The time until the last call to OpenStack was answered.
fn until_the_last(calls: &[Call], start: Instant, latency: Duration) -> Duration {
    let last = calls.iter().filter(|call| call.side == Side::OpenStack).map(|call| call.at).max();
    last.map_or(Duration::ZERO, |last| last - start + latency)
}

fn counted(calls: &[Call], time: Duration, own: Duration, load_balancers: usize) -> Simulated {
    let by_name = |side: Side| {
        let mut names = BTreeMap::new();
        for call in calls.iter().filter(|call| call.side == side) {
            *names.entry(call.name.clone()).or_default() += 1;
        }
        names
    };
    let writes = |side: Side| calls.iter().filter(|call| call.side == side && call.write).count();
    Simulated {
        time: time.as_secs_f64(),
        own: own.as_secs_f64(),
        load_balancers,
        openstack: by_name(Side::OpenStack),
        openstack_writes: writes(Side::OpenStack),
        kubernetes: by_name(Side::Kubernetes),
        kubernetes_writes: writes(Side::Kubernetes),
    }
}

//! `plan -A` for a cluster with many Services, by the real binary: it should take lists, and no read for each object.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::cloud::serving;
use crate::program::{Usage, idle_stage};

/// Services of the cluster.
const SERVICES: usize = 500;

/// What a plan took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// Services of the cluster.
    pub(crate) services: usize,
    /// Until the program had ended, in seconds of real time.
    pub(crate) time: f64,
    /// Memory and processor.
    pub(crate) usage: Usage,
    /// Calls to OpenStack: lists and other reads, and those about one object.
    pub(crate) openstack: (usize, usize),
    /// The same to Kubernetes.
    pub(crate) kubernetes: (usize, usize),
    /// Calls that ask for a change.
    pub(crate) writes: usize,
}

/// Plans what is served already, so that nothing is to be done.
pub(crate) async fn run() -> Planned {
    let mut world = serving(SERVICES, 3, "").await;
    world.stop().await;
    let stage = idle_stage(&world).await;
    let start = Instant::now();
    let usage = stage.asks(&["plan", "-A"]).await;
    let time = start.elapsed().as_secs_f64();
    let (cloud, cluster) = (world.cloud.log().calls(), world.kube.requests());
    let writes = cloud
        .iter()
        .filter(|call| call.method != "GET" && !call.path.contains("/auth/tokens"))
        .count()
        + cluster
            .iter()
            .filter(|request| request.method != "GET" && request.query.iter().all(|(key, _)| key != "dryRun"))
            .count();
    let count = |paths: Vec<&str>| {
        let single = paths.iter().filter(|path| is_of_one(path)).count();
        (paths.len() - single, single)
    };
    Planned {
        services: SERVICES,
        time,
        usage,
        openstack: count(cloud.iter().map(|call| call.path.as_str()).collect()),
        kubernetes: count(cluster.iter().map(|request| request.path.as_str()).collect()),
        writes,
    }
}

/// Whether a path leads to one object, or to the children of one.
fn is_of_one(path: &str) -> bool {
    let is_id = |part: &str| part.len() == 36 && part.matches('-').count() == 4;
    let of_namespace = path.contains("/namespaces/");
    of_namespace || path.contains("/nodes/") || path.split('/').any(is_id)
}

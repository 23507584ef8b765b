//! Our simulators, served over TCP.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use openstack_ccm_kube_sim::{ApiVersion, Server as KubeServer, Sim as KubeSim};
use openstack_ccm_openstack_sim::{OctaviaRelease, Server as CloudServer, Service, Sim as CloudSim};
use tokio::runtime::Runtime;

use super::OVN;
use super::script::{Api, Conversation};
use super::side::{Side, Worker, owned};
use super::transcript::Transcript;

/// Longer than any conversation: work ends only when the conversation says that it waits.
const UNFINISHED: Duration = Duration::from_secs(86_400);

/// A fresh simulator and its server.
pub(crate) struct Simulated {
    side: Side,
    _server: Running,
    _runtime: Runtime,
}

enum Running {
    Cloud { _server: CloudServer },
    Cluster { _server: KubeServer },
}

impl Simulated {
    /// Starts one; `name` is a version of Kubernetes such as `1.29 gate on`, or an older release of OpenStack such as
    /// `openstack 2024.1`.
    pub(crate) fn start(api: Api, name: &str) -> Result<Self> {
        let runtime = Runtime::new()?;
        let (side, server) = match api {
            Api::OpenStack | Api::Compute | Api::Ovn => cloud(&runtime, name)?,
            Api::Kubernetes => cluster(&runtime, name)?,
        };
        Ok(Self { side, _server: server, _runtime: runtime })
    }

    /// Holds a conversation.
    pub(crate) fn play(mut self, conversation: &Conversation) -> Result<Transcript> {
        conversation.play(&mut self.side)
    }
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn cloud(runtime: &Runtime, name: &str) -> Result<(Side, Running)> {
    let sim = CloudSim::builder().octavia(octavia(name)).build();
    sim.set_delays(UNFINISHED);
    // What the Neutron of the worlds has beyond the simulator's.
    ["trunk", "trunk-details"].iter().for_each(|alias| sim.add_extension(alias));
    if name == OVN {
        sim.add_octavia_provider(OVN);
    }
    let server = runtime.block_on(sim.serve(anywhere()))?;
    let seed = sim.seed();
    let constants = owned(&[
        ("subnet", seed.subnet_id.clone()),
        ("network", seed.network_id.clone()),
        ("public", seed.public_network_id.clone()),
        ("project", seed.project_id.clone()),
        ("router", seed.router_id.clone()),
        ("flavor", seed.flavor_id.clone()),
        ("image", "00000000-0000-4000-8000-00000000000e".to_owned()),
        ("password", openstack_ccm_openstack_sim::PASSWORD.to_owned()),
    ]);
    let tokens = ["demo", "admin"].map(|user| (user.to_owned(), sim.token_of(user)));
    let base = format!("http://{}", server.address());
    let urls =
        Service::ALL.map(|service| (service.to_string(), format!("{base}/{}", service.catalog_type())));
    let side = Side::new(urls.into(), tokens.into(), constants, Worker::Simulated(sim))?;
    Ok((side, Running::Cloud { _server: server }))
}

fn octavia(name: &str) -> OctaviaRelease {
    match name {
        "openstack yoga" => OctaviaRelease::V10,
        "openstack 2023.1" => OctaviaRelease::V12,
        "openstack 2024.1" => OctaviaRelease::V14,
        "openstack 2025.1" => OctaviaRelease::V16,
        _ => OctaviaRelease::V19,
    }
}

fn cluster(runtime: &Runtime, name: &str) -> Result<(Side, Running)> {
    let version = match name {
        "1.28" => ApiVersion::V1_28,
        "1.29 gate off" => ApiVersion::V1_29,
        "1.29 gate on" => ApiVersion::V1_29_GATE_ON,
        "1.36" => ApiVersion::V1_36,
        _ => bail!("{name} is not simulated"),
    };
    let sim = KubeSim::new(version);
    let server = runtime.block_on(KubeServer::bind(&sim, anywhere())).context("the simulated API server")?;
    let urls = BTreeMap::from([(String::new(), server.url())]);
    let side = Side::new(urls, BTreeMap::new(), BTreeMap::new(), Worker::None)?;
    Ok((side, Running::Cluster { _server: server }))
}

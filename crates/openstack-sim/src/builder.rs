//! Choosing how a simulator begins.

use std::time::Duration;

use jiff::Timestamp;

use crate::octavia;
use crate::octavia::major_version::OctaviaRelease;
use crate::seed;
use crate::sim::Sim;
use crate::world::World;

/// How a simulator begins.
#[derive(Debug, Clone)]
pub struct SimBuilder {
    nodes: usize,
    cluster_cidr: String,
    ipv6: bool,
    token_lifetime: Duration,
    octavia: OctaviaRelease,
    octavia_api: Option<u8>,
}

impl Default for SimBuilder {
    fn default() -> Self {
        Self {
            nodes: 3,
            cluster_cidr: "198.18.0.0/24".to_owned(),
            ipv6: false,
            token_lifetime: Duration::from_secs(3600),
            octavia: OctaviaRelease::default(),
            octavia_api: None,
        }
    }
}

impl SimBuilder {
    /// How many node servers there are from the beginning: `node-1`, `node-2`, ...; 3 by default.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// The IPv4 subnet of the network `cluster`, in which the nodes are; 198.18.0.0/24 by default.
    pub fn cluster_cidr(mut self, cidr: &str) -> Self {
        cidr.clone_into(&mut self.cluster_cidr);
        self
    }

    /// Whether the network `cluster` has an IPv6 subnet beside the IPv4 one; not by default.
    pub fn ipv6(mut self, ipv6: bool) -> Self {
        self.ipv6 = ipv6;
        self
    }

    /// How long tokens live; one hour by default.
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.token_lifetime = lifetime;
        self
    }

    /// Which release of Octavia answers; the newest by default.
    pub fn octavia(mut self, release: OctaviaRelease) -> Self {
        self.octavia = release;
        self
    }

    /// The newest API version 2.x that Octavia knows; that of its release by default.
    pub fn octavia_api(mut self, minor: u8) -> Self {
        self.octavia_api = Some(minor);
        self
    }

    /// The simulator.
    pub fn build(self) -> Sim {
        let mut world = World::new(Timestamp::now());
        let seed = seed::plant(&mut world, &self.cluster_cidr, self.ipv6, self.token_lifetime);
        let minor = self.octavia_api.unwrap_or(self.octavia.api_minor());
        world.load_balancing.api_minor = minor.min(octavia::NEWEST_MINOR);
        world.load_balancing.release = self.octavia;
        for number in 1..=self.nodes {
            seed::add_node(&mut world, &seed, &format!("node-{number}"));
        }
        Sim::with_world(world, seed)
    }
}

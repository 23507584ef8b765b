//! What Nova keeps: flavors and servers. Addresses are not here: they are read from the servers' ports.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Nova's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compute {
    /// Flavors by id.
    pub(crate) flavors: BTreeMap<String, Flavor>,
    /// Servers by id.
    pub(crate) servers: BTreeMap<String, NovaServer>,
    /// Names of the availability zones.
    pub(crate) availability_zones: Vec<String>,
    /// The image of the seeded servers.
    pub(crate) image_id: String,
    /// The newest microversion 2.x of this deployment, where it is an older one.
    pub(crate) newest_microversion: Option<u16>,
}

#[derive(Debug, Clone)]
pub(crate) struct Flavor {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Memory in MiB.
    pub(crate) ram: u64,
    /// Root disk in GiB.
    pub(crate) disk: u64,
    pub(crate) vcpus: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct NovaServer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) project_id: String,
    pub(crate) user_id: String,
    pub(crate) flavor_id: String,
    pub(crate) image_id: String,
    /// `ACTIVE`, `SHUTOFF`, or whatever a test has set.
    pub(crate) status: String,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) tags: Vec<String>,
    pub(crate) availability_zone: String,
    pub(crate) host_id: String,
    pub(crate) access_ipv4: String,
    pub(crate) access_ipv6: String,
    pub(crate) created: String,
    pub(crate) updated: String,
    /// The order of creation: lists have the newest first.
    pub(crate) order: u64,
    /// Ports that were there before the server: they stay when it goes.
    pub(crate) given_ports: Vec<String>,
}

impl NovaServer {
    /// Nova's inner state that belongs to the status.
    pub(crate) fn vm_state(&self) -> &str {
        match self.status.as_str() {
            "ACTIVE" => "active",
            "SHUTOFF" => "stopped",
            "PAUSED" => "paused",
            "SUSPENDED" => "suspended",
            "BUILD" => "building",
            "DELETED" => "deleted",
            _ => "error",
        }
    }

    /// Nova's power state: 1 running, 3 paused, 4 shut down, 0 unknown.
    pub(crate) fn power_state(&self) -> u8 {
        match self.status.as_str() {
            "ACTIVE" => 1,
            "PAUSED" => 3,
            "SHUTOFF" | "SUSPENDED" => 4,
            _ => 0,
        }
    }
}

//! Everything that exists in the simulated cloud, as plain data: no HTTP, no clock of its own, no tasks.
//!
//! A [`World`] can be cloned, which is how tests keep a state to come back to or to compare with.

pub(crate) mod compute;
pub(crate) mod identity;
pub(crate) mod key_management;
pub(crate) mod load_balancing;
pub(crate) mod members;
pub(crate) mod network;
pub(crate) mod operation;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::service::Service;
use compute::Compute;
use identity::Identity;
use key_management::KeyManagement;
use load_balancing::LoadBalancing;
use network::Network;

/// The namespace of the ids: they are drawn from a counter, so two runs of one test see the same ids.
const ID_NAMESPACE: Uuid = Uuid::from_u128(0x6f70_656e_7374_6163_6b2d_7369_6d00_0001);

/// The state of the simulated cloud.
#[derive(Debug, Clone)]
pub struct World {
    epoch: Timestamp,
    now: Duration,
    sequence: u64,
    /// The base URL of each service, without a trailing slash.
    pub(crate) endpoints: BTreeMap<Service, String>,
    pub(crate) identity: Identity,
    pub(crate) network: Network,
    pub(crate) compute: Compute,
    pub(crate) load_balancing: LoadBalancing,
    pub(crate) key_management: KeyManagement,
}

impl World {
    /// An empty cloud that began to exist at `epoch`.
    pub(crate) fn new(epoch: Timestamp) -> Self {
        let endpoints = Service::ALL
            .into_iter()
            .map(|service| (service, format!("http://openstack.test/{service}")))
            .collect();
        Self {
            epoch,
            now: Duration::ZERO,
            sequence: 0,
            endpoints,
            identity: Identity::default(),
            network: Network::without_trunks(),
            compute: Compute::default(),
            load_balancing: LoadBalancing::default(),
            key_management: KeyManagement::default(),
        }
    }

    /// The time since the beginning of this world.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Lets time pass; it never runs backwards.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// A new id in the form of a UUID.
    pub(crate) fn new_id(&mut self) -> String {
        self.new_uuid().hyphenated().to_string()
    }

    /// A new id in the form that Keystone uses: 32 hexadecimal digits.
    pub(crate) fn new_hex_id(&mut self) -> String {
        self.new_uuid().simple().to_string()
    }

    fn new_uuid(&mut self) -> Uuid {
        self.sequence += 1;
        Uuid::new_v5(&ID_NAMESPACE, &self.sequence.to_be_bytes())
    }

    /// A MAC address as Neutron draws them.
    pub(crate) fn new_mac_address(&mut self) -> String {
        let bytes = self.new_uuid().into_bytes();
        format!("fa:16:3e:{:02x}:{:02x}:{:02x}", bytes[0], bytes[1], bytes[2])
    }

    /// A point in time of this world on the calendar.
    pub(crate) fn calendar(&self, at: Duration) -> Timestamp {
        let since = SignedDuration::try_from(at).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(since).unwrap_or(self.epoch)
    }

    /// The present as Octavia and Barbican write it: `2026-11-21T07:15:48`.
    pub(crate) fn plain_time(&self) -> String {
        self.calendar(self.now).strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// The present as Neutron and Nova write it: with `Z`.
    pub(crate) fn zulu_time(&self) -> String {
        format!("{}Z", self.plain_time())
    }

    /// A point in time as Keystone writes it: with microseconds and `Z`.
    pub(crate) fn microsecond_time(&self, at: Duration) -> String {
        self.calendar(at).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// The base URL of a service, without a trailing slash.
    pub(crate) fn endpoint(&self, service: Service) -> &str {
        self.endpoints.get(&service).map_or("", String::as_str)
    }

    /// The URL that `WWW-Authenticate` names.
    pub(crate) fn identity_url(&self) -> String {
        format!("{}/v3", self.endpoint(Service::Identity))
    }
}

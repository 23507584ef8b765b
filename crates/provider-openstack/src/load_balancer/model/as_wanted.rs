//! What is there where a digest says that it is as wanted.

use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::listener::ListenerKey;
use super::member::Member;
use super::monitor::MonitorSpec;
use super::observed::{Children, ObservedListener, ObservedMember, ObservedMonitor, ObservedPool};
use super::tree::{Desired, DesiredListener, DesiredPool};

impl Children {
    /// Children for which nothing is to be done. Nobody has read their ids, so each has that of its port: no step may name
    /// them.
    #[must_use]
    pub(crate) fn as_wanted(desired: &Desired) -> Self {
        let Desired { listeners, .. } = desired;
        Self {
            listeners: listeners.iter().map(|(key, wanted)| listener(*key, wanted)).collect(),
            pools: listeners.iter().map(|(key, wanted)| pool(*key, &wanted.pool)).collect(),
        }
    }
}

impl ObservedMember {
    /// A member that is as wanted.
    #[must_use]
    pub(crate) fn as_wanted(member: &Arc<Member>) -> Self {
        Self { id: String::new(), status: ProvisioningStatus::Active, member: Arc::clone(member) }
    }
}

fn listener(key: ListenerKey, wanted: &DesiredListener) -> ObservedListener {
    let wanted = &wanted.listener;
    ObservedListener {
        id: key.to_string(),
        name: wanted.name.clone(),
        ours: true,
        status: ProvisioningStatus::Active,
        protocol: wanted.protocol.clone(),
        port: wanted.port,
        default_pool_id: Some(key.to_string()),
        attributes: wanted.attributes.clone(),
        tags: wanted.tags.clone(),
    }
}

fn pool(key: ListenerKey, wanted: &DesiredPool) -> ObservedPool {
    let DesiredPool { pool: wanted, members, monitor: wanted_monitor } = wanted;
    ObservedPool {
        id: key.to_string(),
        name: wanted.name.clone(),
        ours: true,
        status: ProvisioningStatus::Active,
        protocol: wanted.protocol.clone(),
        attributes: wanted.attributes.clone(),
        tags: wanted.tags.clone(),
        used_by: [key.to_string()].into(),
        members: members.iter().map(ObservedMember::as_wanted).collect(),
        monitor: wanted_monitor.as_ref().map(monitor),
    }
}

fn monitor(wanted: &MonitorSpec) -> ObservedMonitor {
    let MonitorSpec { name, kind, attributes, tags } = wanted.clone();
    ObservedMonitor { id: String::new(), name, status: ProvisioningStatus::Active, kind, attributes, tags }
}

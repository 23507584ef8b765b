//! What the tests want forwarded, and where things are.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use openstack_ccm_openstack_sim::forward::{
    Address, Listener, ListenerProtocol, Member, Monitor, MonitorKind, Pool, PoolProtocol, Wanted,
};

/// The VIP of the load balancer.
pub(crate) const VIP: &str = "198.18.0.93";
/// The port of the listener.
pub(crate) const PORT: u16 = 80;

pub(crate) fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

/// A TCP listener on [`VIP`] and [`PORT`] with this pool.
pub(crate) fn listener(pool: Pool) -> Listener {
    Listener {
        id: "listener".to_owned(),
        addresses: vec![Address::vip(ip(VIP))],
        port: PORT,
        protocol: ListenerProtocol::Tcp,
        allowed_cidrs: Vec::new(),
        insert_x_forwarded_for: false,
        pool: Some(pool),
    }
}

/// A pool whose members are these, named in their order `member-1`, `member-2`, ...
pub(crate) fn pool(protocol: PoolProtocol, members: &[SocketAddr]) -> Pool {
    let member = |(index, target): (usize, &SocketAddr)| Member {
        id: format!("member-{}", index + 1),
        address: target.ip(),
        port: target.port(),
        monitor_address: None,
        monitor_port: None,
    };
    Pool { protocol, members: members.iter().enumerate().map(member).collect(), monitor: None }
}

/// A monitor that needs no patience.
pub(crate) fn monitor(kind: MonitorKind) -> Monitor {
    Monitor { kind, delay: Duration::from_millis(10), timeout: Duration::from_secs(5), rise: 1, fall: 1 }
}

pub(crate) fn only(listener: Listener) -> Wanted {
    Wanted { listeners: vec![listener] }
}

//! The kinds of objects that this program writes, and the paths under which they are.

use std::fmt;

use crate::transport::Service;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Octavia.
    LoadBalancer,
    /// Octavia.
    Listener,
    /// Octavia.
    Pool,
    /// Octavia, below a pool.
    Member,
    /// Octavia.
    HealthMonitor,
    /// Neutron.
    FloatingIp,
    /// Neutron.
    SecurityGroup,
    /// Neutron.
    SecurityGroupRule,
    /// Neutron.
    Port,
    /// Neutron.
    Router,
}

impl Kind {
    /// All of them, in the order in which a reader wants to see them.
    pub const ALL: [Self; 10] = [
        Self::LoadBalancer,
        Self::Listener,
        Self::Pool,
        Self::Member,
        Self::HealthMonitor,
        Self::FloatingIp,
        Self::SecurityGroup,
        Self::SecurityGroupRule,
        Self::Port,
        Self::Router,
    ];

    pub(super) const fn is_octavias(self) -> bool {
        matches!(self, Self::LoadBalancer | Self::Listener | Self::Pool | Self::Member | Self::HealthMonitor)
    }

    pub(super) const fn of_service(self) -> Service {
        if self.is_octavias() { Service::LoadBalancer } else { Service::Network }
    }

    /// Last part of the path of the list, key of a list and of one object in a body, and what people call it.
    const fn names(self) -> [&'static str; 4] {
        match self {
            Self::LoadBalancer => ["loadbalancers", "loadbalancers", "loadbalancer", "load balancer"],
            Self::Listener => ["listeners", "listeners", "listener", "listener"],
            Self::Pool => ["pools", "pools", "pool", "pool"],
            Self::Member => ["members", "members", "member", "member"],
            Self::HealthMonitor => ["healthmonitors", "healthmonitors", "healthmonitor", "health monitor"],
            Self::FloatingIp => ["floatingips", "floatingips", "floatingip", "floating IP"],
            Self::SecurityGroup => ["security-groups", "security_groups", "security_group", "security group"],
            Self::SecurityGroupRule => {
                ["security-group-rules", "security_group_rules", "security_group_rule", "security group rule"]
            }
            Self::Port => ["ports", "ports", "port", "port"],
            Self::Router => ["routers", "routers", "router", "router"],
        }
    }

    /// Last part of the path of the list.
    pub(super) const fn collection(self) -> &'static str {
        self.names()[0]
    }

    /// Key of a list in a body.
    pub(super) const fn list_root(self) -> &'static str {
        self.names()[1]
    }

    /// Key of one object in a body.
    pub(super) const fn root(self) -> &'static str {
        self.names()[2]
    }

    /// Path of the list; members are below their pools.
    pub(super) fn path(self) -> String {
        let above = if self.is_octavias() { "/v2.0/lbaas" } else { "/v2.0" };
        format!("{above}/{}", self.collection())
    }
}

impl fmt::Display for Kind {
    /// As people call it: `load balancer`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.names()[3])
    }
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) kind: Kind,
    /// The object; absent where the path names the list.
    pub(super) id: Option<&'a str>,
    /// What follows the object.
    pub(super) below: Vec<&'a str>,
}

impl<'a> Target<'a> {
    /// Reads a path. `None` for what this program never writes, such as servers and subnets.
    pub(super) fn parse(service: Service, path: &'a str) -> Option<Self> {
        let rest = match service {
            Service::LoadBalancer => path.strip_prefix("/v2.0/lbaas/")?,
            Service::Network => path.strip_prefix("/v2.0/")?,
            Service::Compute | Service::KeyManager | Service::Identity => return None,
        };
        let mut segments = rest.split('/');
        let collection = segments.next()?;
        let kind = Kind::ALL
            .into_iter()
            .filter(|kind| kind.of_service() == service && *kind != Kind::Member)
            .find(|kind| kind.collection() == collection)?;
        Some(Self { kind, id: segments.next(), below: segments.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_what_they_name() {
        let target = Target::parse(Service::LoadBalancer, "/v2.0/lbaas/pools/p1/members/m1").unwrap();
        assert_eq!((target.kind, target.id), (Kind::Pool, Some("p1")));
        assert_eq!(target.below, ["members", "m1"]);
        let target = Target::parse(Service::Network, "/v2.0/floatingips").unwrap();
        assert_eq!((target.kind, target.id), (Kind::FloatingIp, None));
        assert_eq!(Target::parse(Service::Network, "/v2.0/subnets"), None);
        assert_eq!(Target::parse(Service::Compute, "/v2.1/ports"), None);
    }
}

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

    pub(super) const fn of_service(self) -> Service {
        match self {
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Member | Self::HealthMonitor => {
                Service::LoadBalancer
            }
            Self::FloatingIp | Self::SecurityGroup | Self::SecurityGroupRule | Self::Port | Self::Router => {
                Service::Network
            }
        }
    }

    /// Last part of the path of the list.
    pub(super) const fn collection(self) -> &'static str {
        match self {
            Self::LoadBalancer => "loadbalancers",
            Self::Listener => "listeners",
            Self::Pool => "pools",
            Self::Member => "members",
            Self::HealthMonitor => "healthmonitors",
            Self::FloatingIp => "floatingips",
            Self::SecurityGroup => "security-groups",
            Self::SecurityGroupRule => "security-group-rules",
            Self::Port => "ports",
            Self::Router => "routers",
        }
    }

    /// Key of one object in a body.
    pub(super) const fn root(self) -> &'static str {
        match self {
            Self::LoadBalancer => "loadbalancer",
            Self::Listener => "listener",
            Self::Pool => "pool",
            Self::Member => "member",
            Self::HealthMonitor => "healthmonitor",
            Self::FloatingIp => "floatingip",
            Self::SecurityGroup => "security_group",
            Self::SecurityGroupRule => "security_group_rule",
            Self::Port => "port",
            Self::Router => "router",
        }
    }

    /// Key of a list in a body.
    pub(super) const fn list_root(self) -> &'static str {
        match self {
            Self::SecurityGroup => "security_groups",
            Self::SecurityGroupRule => "security_group_rules",
            Self::LoadBalancer
            | Self::Listener
            | Self::Pool
            | Self::Member
            | Self::HealthMonitor
            | Self::FloatingIp
            | Self::Port
            | Self::Router => self.collection(),
        }
    }

    /// Path of the list; members are below their pools.
    pub(super) fn path(self) -> String {
        match self.of_service() {
            Service::LoadBalancer => format!("/v2.0/lbaas/{}", self.collection()),
            Service::Compute | Service::Network | Service::KeyManager | Service::Identity => {
                format!("/v2.0/{}", self.collection())
            }
        }
    }

    pub(super) const fn is_octavias(self) -> bool {
        matches!(self.of_service(), Service::LoadBalancer)
    }
}

impl fmt::Display for Kind {
    /// As people call it: `load balancer`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::LoadBalancer => "load balancer",
            Self::Listener => "listener",
            Self::Pool => "pool",
            Self::Member => "member",
            Self::HealthMonitor => "health monitor",
            Self::FloatingIp => "floating IP",
            Self::SecurityGroup => "security group",
            Self::SecurityGroupRule => "security group rule",
            Self::Port => "port",
            Self::Router => "router",
        })
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

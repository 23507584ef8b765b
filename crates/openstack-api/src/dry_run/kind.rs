//! The kinds of objects that this program writes, and their paths.

use std::fmt;

use crate::transport::Service;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    LoadBalancer,
    Listener,
    Pool,
    /// A member, whose path is below its pool.
    Member,
    HealthMonitor,
    FloatingIp,
    SecurityGroup,
    SecurityGroupRule,
    Port,
    Router,
}

impl Kind {
    /// All kinds, in the order for display.
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

    /// Returns the last part of the list's path, the keys of a list and of one object in a body, and the name for users.
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

    /// Returns the key of a list in a body.
    pub(super) const fn list_root(self) -> &'static str {
        self.names()[1]
    }

    /// Returns the key of one object in a body.
    pub(super) const fn root(self) -> &'static str {
        self.names()[2]
    }

    /// Returns the path of the list; lists of members are below their pools.
    pub(super) fn list(self) -> String {
        let above = if self.is_octavias() { "/v2.0/lbaas" } else { "/v2.0" };
        format!("{above}/{}", self.names()[0])
    }

    /// Returns the path of one object; paths of members are below their pools.
    pub(super) fn path(self, id: &str) -> String {
        format!("{}/{id}", self.list())
    }
}

impl fmt::Display for Kind {
    /// Writes the name for users: `load balancer`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.names()[3])
    }
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) kind: Kind,
    /// The path of the list.
    pub(super) list: String,
    /// The id of the object; absent where the path is that of the list.
    pub(super) id: Option<&'a str>,
    /// The segments after the object.
    pub(super) below: &'a [&'a str],
}

impl<'a> Target<'a> {
    /// Parses the segments of a path. `None` for objects that this program never writes, such as servers and subnets.
    pub(super) fn of(service: Service, segments: &'a [&'a str]) -> Option<Self> {
        let ((Service::LoadBalancer, ["", "v2.0", "lbaas", collection, rest @ ..])
        | (Service::Network, ["", "v2.0", collection, rest @ ..])) = (service, segments)
        else {
            return None;
        };
        let kind = Kind::ALL
            .into_iter()
            .filter(|kind| kind.of_service() == service && *kind != Kind::Member)
            .find(|kind| kind.names()[0] == *collection)?;
        Some(match (kind, rest) {
            (Kind::Pool, [pool, "members", rest @ ..]) => {
                Self::below(Kind::Member, format!("{}/members", kind.path(pool)), rest)
            }
            _ => Self::below(kind, kind.list(), rest),
        })
    }

    fn below(kind: Kind, list: String, rest: &'a [&'a str]) -> Self {
        let (id, below) = rest.split_first().map_or((None, rest), |(id, below)| (Some(*id), below));
        Self { kind, list, id, below }
    }
}

/// Returns the pool in the path of a member or of a list of members.
pub(super) fn pool_of(kind: Kind, path: &str) -> Option<&str> {
    if kind != Kind::Member {
        return None;
    }
    path.split_once("/pools/")?.1.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_show_what_they_name() {
        let segments: Vec<&str> = "/v2.0/lbaas/pools/p1/members/m1".split('/').collect();
        let target = Target::of(Service::LoadBalancer, &segments).unwrap();
        assert_eq!((target.kind, target.id), (Kind::Member, Some("m1")));
        assert_eq!(pool_of(target.kind, &target.list), Some("p1"));
        assert_eq!(target.list, "/v2.0/lbaas/pools/p1/members");
        let segments: Vec<&str> = "/v2.0/floatingips/f1/tags/a".split('/').collect();
        let target = Target::of(Service::Network, &segments).unwrap();
        assert_eq!(
            (target.kind, target.id, target.below),
            (Kind::FloatingIp, Some("f1"), ["tags", "a"].as_slice())
        );
        assert_eq!(Target::of(Service::Network, &["", "v2.0", "subnets"]), None);
        assert_eq!(Target::of(Service::Compute, &["", "v2.1", "ports"]), None);
    }
}

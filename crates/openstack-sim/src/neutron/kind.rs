//! The kinds of Neutron resources and how each is called.

use super::has_extension;
use crate::world::World;
use crate::world::network::{Collection, Network};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Network,
    Subnet,
    Port,
    FloatingIp,
    SecurityGroup,
    SecurityGroupRule,
    Router,
    Trunk,
}

impl ResourceKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 8] = [
        Self::Network,
        Self::Subnet,
        Self::Port,
        Self::FloatingIp,
        Self::SecurityGroup,
        Self::SecurityGroupRule,
        Self::Router,
        Self::Trunk,
    ];

    /// The kind with this path segment.
    pub(crate) fn of_collection(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.path() == path)
    }

    /// Whether this deployment has the plug-in that serves it.
    pub(crate) fn is_served(self, world: &World) -> bool {
        self != Self::Trunk || has_extension(world, "trunk")
    }

    /// The path segment.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Network => "networks",
            Self::Subnet => "subnets",
            Self::Port => "ports",
            Self::FloatingIp => "floatingips",
            Self::SecurityGroup => "security-groups",
            Self::SecurityGroupRule => "security-group-rules",
            Self::Router => "routers",
            Self::Trunk => "trunks",
        }
    }

    /// The key of a list in a body.
    pub(crate) fn collection(self) -> &'static str {
        match self {
            Self::Network => "networks",
            Self::Subnet => "subnets",
            Self::Port => "ports",
            Self::FloatingIp => "floatingips",
            Self::SecurityGroup => "security_groups",
            Self::SecurityGroupRule => "security_group_rules",
            Self::Router => "routers",
            Self::Trunk => "trunks",
        }
    }

    /// The key of one resource in a body; also the name of the quota and of the policy rules.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Subnet => "subnet",
            Self::Port => "port",
            Self::FloatingIp => "floatingip",
            Self::SecurityGroup => "security_group",
            Self::SecurityGroupRule => "security_group_rule",
            Self::Router => "router",
            Self::Trunk => "trunk",
        }
    }

    /// The revision number of a new resource: it depends on how many steps Neutron takes to make one.
    pub(crate) fn first_revision(self) -> u64 {
        match self {
            Self::Network | Self::Port | Self::SecurityGroup => 1,
            Self::Subnet | Self::FloatingIp | Self::SecurityGroupRule | Self::Trunk => 0,
            Self::Router => 3,
        }
    }

    /// The resources of this kind.
    pub(crate) fn resources(self, network: &Network) -> &Collection {
        match self {
            Self::Network => &network.networks,
            Self::Subnet => &network.subnets,
            Self::Port => &network.ports,
            Self::FloatingIp => &network.floating_ips,
            Self::SecurityGroup => &network.security_groups,
            Self::SecurityGroupRule => &network.security_group_rules,
            Self::Router => &network.routers,
            Self::Trunk => &network.trunks,
        }
    }

    /// The resources of this kind, to change them.
    pub(crate) fn resources_mut(self, network: &mut Network) -> &mut Collection {
        match self {
            Self::Network => &mut network.networks,
            Self::Subnet => &mut network.subnets,
            Self::Port => &mut network.ports,
            Self::FloatingIp => &mut network.floating_ips,
            Self::SecurityGroup => &mut network.security_groups,
            Self::SecurityGroupRule => &mut network.security_group_rules,
            Self::Router => &mut network.routers,
            Self::Trunk => &mut network.trunks,
        }
    }
}

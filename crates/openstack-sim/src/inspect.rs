//! Looking at the world from outside: collections as an administrator would read them.

use serde_json::{Value, json};

use crate::neutron;
use crate::octavia::views;
use crate::sim::Sim;
use crate::world::World;
use crate::world::identity::Caller;

impl Sim {
    fn neutron(&self, kind: neutron::ResourceKind) -> Vec<Value> {
        let admin = Caller {
            user_id: String::new(),
            project_id: String::new(),
            roles: std::collections::BTreeSet::from(["admin".to_owned()]),
        };
        self.read(|world| {
            kind.resources(&world.network)
                .values()
                .map(|resource| neutron::views::view(world, &admin, kind, resource))
                .collect()
        })
    }

    pub fn networks(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::Network)
    }

    pub fn subnets(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::Subnet)
    }

    /// The ports, those of routers and floating IPs too.
    pub fn ports(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::Port)
    }

    /// The ports that Octavia made for load balancers that do not exist.
    pub fn leaked_ports(&self) -> Vec<Value> {
        let used: Vec<Value> = self.load_balancers().iter().map(|lb| lb["vip_port_id"].clone()).collect();
        self.ports()
            .into_iter()
            .filter(|port| ["Octavia", "ovn-lb:vip"].iter().any(|owner| port["device_owner"] == *owner))
            .filter(|port| !used.contains(&port["id"]))
            .collect()
    }

    pub fn floating_ips(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::FloatingIp)
    }

    /// The security groups with their rules.
    pub fn security_groups(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::SecurityGroup)
    }

    pub fn security_group_rules(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::SecurityGroupRule)
    }

    pub fn routers(&self) -> Vec<Value> {
        self.neutron(neutron::ResourceKind::Router)
    }

    pub fn load_balancers(&self) -> Vec<Value> {
        self.octavia(|world| {
            let state = &world.load_balancing;
            views::load_balancers(state, state.load_balancers.values())
        })
    }

    pub fn load_balancer(&self, name: &str) -> Option<Value> {
        self.load_balancers().into_iter().find(|lb| lb["name"] == name)
    }

    pub fn listeners(&self) -> Vec<Value> {
        self.octavia(|world| {
            let minor = world.load_balancing.api_minor;
            world.load_balancing.listeners.values().map(|one| views::listener(one, minor)).collect()
        })
    }

    pub fn pools(&self) -> Vec<Value> {
        self.octavia(|world| {
            let state = &world.load_balancing;
            state.pools.values().map(|pool| views::pool(state, pool)).collect()
        })
    }

    /// The members of a pool, oldest first.
    pub fn members(&self, pool_id: &str) -> Vec<Value> {
        self.octavia(|world| {
            let state = &world.load_balancing;
            state.members_of(pool_id).into_iter().map(|one| views::member(one, state.api_minor)).collect()
        })
    }

    pub fn health_monitors(&self) -> Vec<Value> {
        self.octavia(|world| {
            let minor = world.load_balancing.api_minor;
            world
                .load_balancing
                .health_monitors
                .values()
                .map(|one| views::health_monitor(one, minor))
                .collect()
        })
    }

    fn octavia(&self, look: impl FnOnce(&World) -> Vec<Value>) -> Vec<Value> {
        self.read(look)
    }

    /// The servers: id, name, status and metadata.
    pub fn servers(&self) -> Vec<Value> {
        self.read(|world| {
            world
                .compute
                .servers
                .values()
                .map(|one| json!({"id": one.id, "name": one.name, "status": one.status, "hostId": one.host_id, "metadata": one.metadata}))
                .collect()
        })
    }
}

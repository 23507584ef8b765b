//! What a test or an operator can turn: people, nodes, time, quotas, versions, health.

use std::time::Duration;

use crate::actor::Actor;
use crate::octavia::capacity::Capacity;
use crate::seed::{self, Node};
use crate::sim::Sim;
use crate::world::World;
use crate::world::load_balancing::{LoadBalancer, Operating, Provisioning};
use crate::world::operation::OperationKind;
use crate::{nova, octavia};

impl Sim {
    /// A valid token of the user `demo` in the project `demo`.
    pub fn token(&self) -> String {
        self.token_of(seed::USER)
    }

    /// A valid token of a seeded user (`admin`, `demo`, `plain`, `stranger`, `octavia`, ...) in its project; empty when
    /// there is no such user.
    pub fn token_of(&self, user: &str) -> String {
        self.write(|world| seed::token_of(world, user))
    }

    /// Revokes every token: the next request with one gets 401.
    pub fn revoke_tokens(&self) {
        self.write(|world| world.identity.tokens.values_mut().for_each(|token| token.revoked = true));
    }

    pub fn admin(&self) -> Actor<'_> {
        Actor::new(self, self.token_of("admin"))
    }

    /// The user `demo`, beside whoever else uses that account.
    pub fn user(&self) -> Actor<'_> {
        Actor::new(self, self.token())
    }

    /// A user of another project with the same roles.
    pub fn stranger(&self) -> Actor<'_> {
        Actor::new(self, self.token_of("stranger"))
    }

    /// Adds a node server.
    pub fn add_node(&self, name: &str) -> Node {
        let seed = self.seed().clone();
        self.write(|world| seed::add_node(world, &seed, name))
    }

    /// Removes a node server with its ports. Returns whether there was one.
    pub fn remove_node(&self, name: &str) -> bool {
        let found = self.nodes().into_iter().find(|node| node.name == name);
        found.is_some_and(|node| {
            self.write(|world| nova::servers::remove(world, &node.server_id));
            true
        })
    }

    /// The node servers by name.
    pub fn nodes(&self) -> Vec<Node> {
        self.read(|world| seed::nodes(world, self.seed()))
    }

    /// Sets the status of the server with this name, such as `ACTIVE`, `SHUTOFF` or `ERROR`.
    pub fn set_server_status(&self, name: &str, status: &str) {
        self.write(|world| {
            let ids: Vec<String> = world
                .compute
                .servers
                .values()
                .filter(|one| one.name == name)
                .map(|one| one.id.clone())
                .collect();
            for id in ids {
                nova::servers::set_status(world, &id, status);
            }
        });
    }

    /// Puts a load balancer into `provisioning_status` ERROR with this `operating_status`, as a failover does that found no
    /// compute host, or as an outage of Octavia's workers leaves it: what hangs on it serves or not, whatever the status
    /// says. Returns whether there is one that is ACTIVE and was finished.
    pub fn break_load_balancer(&self, name: &str, operating: &str) -> bool {
        let operating = match operating {
            "ONLINE" => Operating::Online,
            "DEGRADED" => Operating::Degraded,
            "ERROR" => Operating::Error,
            "NO_MONITOR" => Operating::NoMonitor,
            _ => Operating::Offline,
        };
        self.write(|world| {
            let now = world.plain_time();
            let mut all = world.load_balancing.load_balancers.values_mut();
            let found = all.find(|one| {
                one.built
                    && one.entity.text("name") == name
                    && one.entity.provisioning == Provisioning::Active
            });
            found.is_some_and(|one| {
                one.entity.set_provisioning(Provisioning::Error, &now);
                one.entity.operating = operating;
                true
            })
        })
    }

    /// Shows a load balancer with this `updated_at`, as when the clock of the database was set back. Returns whether there is one.
    pub fn set_updated_at(&self, name: &str, time: &str) -> bool {
        self.change_load_balancer(name, |one| one.entity.updated_at = Some(time.to_owned()))
    }

    /// Shows a load balancer without `vip_port_id`, as clouds do whose VIPs are no ports of Neutron. Returns whether there is one.
    pub fn hide_vip_port(&self, name: &str) -> bool {
        self.change_load_balancer(name, |one| one.hides_port = true)
    }

    /// Shows a floating IP that leads to an address without the port of it, as Contrail does (terraform-provider-openstack#704). Answers
    /// whether there is one.
    pub fn hide_floating_ip_port(&self, id: &str) -> bool {
        self.write(|world| {
            let found = world.network.floating_ips.get_mut(id);
            found.is_some_and(|one| {
                one.set("port_id", "");
                true
            })
        })
    }

    /// So many connections have passed a load balancer. Returns whether there is one.
    pub fn set_total_connections(&self, id: &str, total: u64) -> bool {
        self.change_load_balancer(id, |one| one.connections = total)
    }

    fn change_load_balancer(&self, id_or_name: &str, change: impl FnOnce(&mut LoadBalancer)) -> bool {
        self.write(|world| {
            let mut all = world.load_balancing.load_balancers.values_mut();
            let found = all.find(|one| one.entity.id == id_or_name || one.entity.text("name") == id_or_name);
            found.map(change).is_some()
        })
    }

    /// Begins a change of a listener, pool, member or health monitor whose end Octavia loses: its load balancer was locked and is ACTIVE
    /// again, and it stays PENDING_UPDATE. Returns whether there is one.
    pub fn lose_change_of(&self, child_id: &str) -> bool {
        self.write(|world| {
            let now = world.plain_time();
            let state = &mut world.load_balancing;
            let ids: Vec<String> = state.load_balancers.keys().cloned().collect();
            let on = ids.into_iter().find(|id| {
                let mut children = state.children_mut(id).into_iter();
                let child = children.find(|child| child.id == child_id);
                child.is_some_and(|child| {
                    child.set_provisioning(Provisioning::PendingUpdate, &now);
                    true
                })
            });
            let load_balancer = on.and_then(|id| state.load_balancers.get_mut(&id));
            load_balancer.is_some_and(|one| {
                one.entity.set_provisioning(Provisioning::Active, &now);
                true
            })
        })
    }

    /// How long operations of a kind take from now on; zero means that they are finished when next looked at.
    pub fn set_delay(&self, kind: OperationKind, delay: Duration) {
        self.write(|world| world.load_balancing.delays.insert(kind, delay));
    }

    /// How long operations of every kind take from now on.
    pub fn set_delays(&self, delay: Duration) {
        for kind in OperationKind::ALL {
            self.set_delay(kind, delay);
        }
    }

    /// Bounds what Octavia can do at once from now on. The delays are what operations take with nothing beside them then.
    pub fn set_capacity(&self, capacity: Option<Capacity>) {
        self.write(|world| world.set_capacity(capacity));
    }

    /// Finishes all unfinished work that no rule holds, whatever its delay.
    pub fn settle(&self) {
        self.write(World::hurry);
        self.write(|_| ());
    }

    /// The newest API version 2.x that Octavia knows from now on; newer attributes are unknown to it.
    pub fn set_octavia_api(&self, minor: u8) {
        self.write(|world| world.load_balancing.api_minor = minor.min(octavia::NEWEST_MINOR));
    }

    /// Limits how many load balancers, listeners, pools, members or health monitors the project `demo` may have
    /// (`load_balancer`, `listener`, `pool`, `member`, `health_monitor`); -1 for no limit.
    pub fn set_octavia_quota(&self, resource: &str, limit: i64) {
        let project = self.seed().project_id.clone();
        self.write(|world| {
            world.load_balancing.quotas.entry(project).or_default().insert(resource.to_owned(), limit);
        });
    }

    /// No new member may have this address from now on (`[networking] reserved_ips`).
    pub fn reserve_member_address(&self, address: &str) {
        self.write(|world| world.load_balancing.reserved_ips.insert(address.to_owned()));
    }

    /// New members may have all addresses again but for that of the metadata service.
    pub fn free_member_addresses(&self) {
        self.write(|world| world.load_balancing.reserved_ips.clear());
    }

    /// Limits how many Neutron resources the project `demo` may have (`port`, `floatingip`, `security_group`, ...).
    pub fn set_neutron_quota(&self, resource: &str, limit: i64) {
        let project = self.seed().project_id.clone();
        self.write(|world| {
            world.network.quotas.entry(project).or_default().insert(resource.to_owned(), limit);
        });
    }

    /// Makes Neutron lack an API extension, such as `extraroute-atomic`.
    pub fn remove_extension(&self, alias: &str) {
        self.write(|world| world.network.missing_extensions.insert(alias.to_owned()));
    }

    /// Gives Neutron an API extension that it lacks: those for trunks, `trunk` and `trunk-details`, are not there at first.
    pub fn add_extension(&self, alias: &str) {
        self.write(|world| world.network.missing_extensions.remove(alias));
    }

    /// Adds a load balancer flavor.
    pub fn add_octavia_flavor(&self, name: &str) -> String {
        self.write(|world| {
            let id = world.new_id();
            let view = serde_json::json!({
                "id": id, "name": name, "description": "", "enabled": true, "flavor_profile_id": null,
            });
            world.load_balancing.flavors.insert(id.clone(), view);
            id
        })
    }

    /// Adds a load balancer availability zone.
    pub fn add_octavia_availability_zone(&self, name: &str) {
        self.write(|world| {
            let view = serde_json::json!({"name": name, "description": "", "enabled": true});
            world.load_balancing.availability_zones.insert(name.to_owned(), view);
        });
    }

    /// Adds a load balancer provider, and has it make the load balancers that name none (`default_provider_driver`).
    pub fn set_default_octavia_provider(&self, name: &str) {
        self.add_octavia_provider(name);
        self.write(|world| world.load_balancing.default_provider = Some(name.to_owned()));
    }

    /// Adds a load balancer provider, such as `ovn`.
    pub fn add_octavia_provider(&self, name: &str) {
        self.write(|world| world.load_balancing.providers.push((name.to_owned(), String::new())));
    }
}

//! What a test can turn about servers: flavors, zones, noted addresses, trunks, and the versions of Nova.

use serde_json::{Value, json};

use crate::neutron::trunks;
use crate::sim::Sim;
use crate::world::compute::{Flavor, NovaServer};

impl Sim {
    /// Adds a flavor of servers and answers its id.
    pub fn add_flavor(&self, name: &str) -> String {
        self.write(|world| {
            let id = world.new_id();
            let flavor = Flavor { id: id.clone(), name: name.to_owned(), ram: 512, disk: 1, vcpus: 1 };
            world.compute.flavors.insert(id.clone(), flavor);
            id
        })
    }

    /// Removes a flavor; servers of it stay.
    pub fn remove_flavor(&self, id: &str) {
        self.write(|world| world.compute.flavors.remove(id));
    }

    pub fn set_server_flavor(&self, name: &str, flavor_id: &str) {
        self.change_servers(name, |server| flavor_id.clone_into(&mut server.flavor_id));
    }

    /// Sets the IPv4 address that the owner noted for the servers with this name.
    pub fn set_server_access_ipv4(&self, name: &str, address: &str) {
        self.change_servers(name, |server| address.clone_into(&mut server.access_ipv4));
    }

    /// A migration: Nova's `hostId` is a hash of the host's name, empty without one, and its zone is that of the host.
    pub fn move_server(&self, name: &str, host_id: &str, zone: &str) {
        self.change_servers(name, |server| {
            host_id.clone_into(&mut server.host_id);
            zone.clone_into(&mut server.availability_zone);
        });
    }

    /// Adds to the metadata of the servers with this name.
    pub fn set_server_metadata(&self, name: &str, key: &str, value: &str) {
        self.change_servers(name, |server| {
            server.metadata.insert(key.to_owned(), Value::from(value));
        });
    }

    fn change_servers(&self, name: &str, change: impl Fn(&mut NovaServer)) {
        self.write(|world| {
            world.compute.servers.values_mut().filter(|server| server.name == name).for_each(change);
        });
    }

    /// The newest microversion 2.x that Nova has from now on.
    pub fn set_nova_microversion(&self, minor: u16) {
        self.write(|world| world.compute.newest_microversion = Some(minor));
    }

    /// Makes a trunk of a port, with a sub-port on another network; answers the id of the sub-port.
    pub fn add_sub_port(&self, parent_port_id: &str, network_id: &str, vlan: u16) -> String {
        let port = json!({"port": {"network_id": network_id, "name": format!("vlan-{vlan}")}});
        let (_, answer) = self.user().post("network", "/v2.0/ports", &port);
        let sub_port_id = answer["port"]["id"].as_str().unwrap_or_default().to_owned();
        ["trunk", "trunk-details"].iter().for_each(|alias| self.add_extension(alias));
        self.write(|world| trunks::add_sub_port(world, parent_port_id, &sub_port_id, vlan));
        sub_port_id
    }
}

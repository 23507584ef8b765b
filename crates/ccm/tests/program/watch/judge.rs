//! What a write may do.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_openstack_sim::{
    FloatingIpTraffic, ListenerTraffic, LoadBalancerTraffic, MemberTraffic, Traffic, Write,
};

use super::wish::{Key, NodeState, Wish};
use super::{GENERATED, Moment, Owner, Record, since};

/// Begins the tag with the uid of a cluster.
const IDENTITY_TAG: &str = "openstack-ccm-cluster=";

/// What a write did against the rules.
pub(super) fn judge(record: &Record, write: &Write<'_>) -> Vec<String> {
    let judge = Judge { record, before: write.before, after: write.after, cluster: write.user_agent };
    let mut wrong = judge.foreign();
    wrong.extend(judge.load_balancers());
    wrong.extend(judge.listeners());
    wrong.extend(judge.members());
    wrong.extend(judge.floating_ips());
    let what = format!("{} {} of {}", write.method, write.path, write.user_agent);
    wrong.into_iter().map(|wrong| format!("{what}: {wrong}")).collect()
}

struct Judge<'a> {
    record: &'a Record,
    before: &'a Traffic,
    after: &'a Traffic,
    cluster: &'a str,
}

impl Judge<'_> {
    fn birth(&self, id: &str) -> Moment {
        self.record.births.get(id).copied().unwrap_or_default()
    }

    fn served(&self, id: &str) -> bool {
        self.record.served.contains(id)
    }

    /// Whether a Service asked for something since a moment. One that never was asks for everything to go.
    fn asked(&self, owner: &Owner, moment: Moment, asks: impl Fn(&Wish) -> bool) -> bool {
        let wishes = self.record.wishes_since(owner, moment);
        wishes.is_empty() || wishes.iter().any(|(_, wish)| !wish.alive || asks(wish))
    }

    /// Whether a load balancer was made for the cluster that writes, or one of its Services names what a person made.
    fn may_write(&self, load_balancer_id: &str, traffic: &Traffic) -> bool {
        let Some(one) = traffic.load_balancers.get(load_balancer_id) else { return true };
        if one.name.starts_with(GENERATED) {
            let is_named = Owner::of_name(&one.name).is_some_and(|owner| owner.cluster == self.cluster);
            return is_named && !self.is_tagged_by_another(one);
        }
        let cluster = self.record.clusters.get(self.cluster);
        let mut wishes = cluster.into_iter().flat_map(|cluster| cluster.services.values().flatten());
        wishes.any(|(_, wish)| wish.load_balancer_id.as_deref() == Some(load_balancer_id))
    }

    /// Whether a load balancer has the identity of another cluster than the one that writes: names are not unique.
    fn is_tagged_by_another(&self, one: &LoadBalancerTraffic) -> bool {
        let kube = self.record.clusters.get(self.cluster).and_then(|cluster| cluster.kube.as_ref());
        let namespace = kube.and_then(|kube| kube.get("namespaces", "", "kube-system").ok());
        let mut identities = one.tags.iter().filter_map(|tag| tag.strip_prefix(IDENTITY_TAG));
        namespace.is_some_and(|namespace| identities.any(|identity| namespace["metadata"]["uid"] != identity))
    }

    /// Objects of others that were changed or removed. Octavia locks a load balancer for every change below it, so that a
    /// look at the load balancer is enough.
    fn foreign(&self) -> Vec<String> {
        let (before, after) = (self.before, self.after);
        let changed = before.load_balancers.iter().filter(|(id, one)| {
            after.load_balancers.get(*id).map(|after| after.fingerprint) != Some(one.fingerprint)
        });
        let mut wrong: Vec<String> = changed
            .filter(|(id, _)| !self.may_write(id, before))
            .map(|(_, one)| format!("load balancer {} is somebody else's", one.name))
            .collect();
        let changed = before.floating_ips.iter().filter(|(id, one)| {
            after.floating_ips.get(*id).map(|after| after.fingerprint) != Some(one.fingerprint)
        });
        wrong.extend(
            changed
                .filter(|(_, one)| !self.may_write_floating_ip(one))
                .map(|(_, one)| format!("floating IP {} is somebody else's", one.address)),
        );
        wrong
    }

    fn may_write_floating_ip(&self, one: &FloatingIpTraffic) -> bool {
        if let Some(owner) = Owner::of_description(&one.description) {
            return owner.cluster == self.cluster;
        }
        let cluster = self.record.clusters.get(self.cluster);
        let mut wishes = cluster.into_iter().flat_map(|cluster| cluster.services.values().flatten());
        wishes.any(|(_, wish)| wish.address.as_deref() == Some(one.address.as_str()))
    }

    /// Who has what on a load balancer, and since when.
    fn users(&self, load_balancer_id: &str) -> BTreeMap<Owner, Moment> {
        let listeners =
            self.before.listeners.iter().filter(|(_, one)| one.load_balancer_id == load_balancer_id);
        let mut users: BTreeMap<Owner, Moment> =
            listeners.filter_map(|(id, one)| Some((Owner::of_name(&one.name)?, self.birth(id)))).collect();
        let name = self.before.load_balancers.get(load_balancer_id).map(|one| one.name.as_str());
        if let Some(owner) = name.and_then(Owner::of_name) {
            users.entry(owner).or_insert(self.birth(load_balancer_id));
        }
        users
    }

    fn load_balancers(&self) -> Vec<String> {
        let gone = self
            .before
            .load_balancers
            .iter()
            .filter(|(id, one)| one.built && !self.after.load_balancers.contains_key(*id))
            .filter(|(id, one)| !self.is_unused_duplicate(id, one));
        gone.flat_map(|(id, one)| {
            let users = self.users(id).into_iter();
            let keeping = users.filter(|(owner, birth)| {
                !self.asked(owner, *birth, |wish| {
                    wish.load_balancer_id.as_ref().is_some_and(|named| named != id)
                })
            });
            keeping
                .map(|(owner, _)| format!("load balancer {} is removed, and {owner} wants it", one.name))
                .collect::<Vec<_>>()
        })
        .collect()
    }

    /// Whether a load balancer was made twice, the other one stays, and no client was ever led to this one.
    fn is_unused_duplicate(&self, id: &str, one: &LoadBalancerTraffic) -> bool {
        let Some(owner) = Owner::of_name(&one.name) else { return false };
        let on_vip =
            |floating_ip: &&FloatingIpTraffic| floating_ip.port_id.as_ref() == Some(&one.vip_port_id);
        let mut addresses = vec![one.vip_address.as_str()];
        addresses.extend(self.before.floating_ips.values().filter(on_vip).map(|one| one.address.as_str()));
        self.after.load_balancers.values().any(|other| other.name == one.name)
            && !self.record.was_published(&owner, &addresses, self.birth(id))
    }

    fn listeners(&self) -> Vec<String> {
        let served = self.before.listeners.iter().filter(|(id, one)| {
            one.up && self.served(id) && self.after.load_balancers.contains_key(&one.load_balancer_id)
        });
        served
            .filter_map(|(id, one)| match self.after.listeners.get(id) {
                Some(after) if after.up => self.swapped(one, after),
                Some(_) | None => self.listener_removed(id, one),
            })
            .collect()
    }

    fn listener_removed(&self, id: &str, one: &ListenerTraffic) -> Option<String> {
        let Some(owner) = Owner::of_name(&one.name) else {
            return Some(format!("listener {} is not its own, and removed", one.name));
        };
        let key = key_of(one);
        let asks = |wish: &Wish| {
            !wish.ports.contains_key(&key)
                || wish.protocols(&key).is_some_and(|(listener, _)| listener != one.protocol)
                || moves(wish, one)
        };
        let asked = self.asked(&owner, self.birth(id), asks);
        (!asked)
            .then(|| format!("listener {} ({} {}) of {owner} is removed", one.name, one.protocol, one.port))
    }

    fn swapped(&self, before: &ListenerTraffic, after: &ListenerTraffic) -> Option<String> {
        let pool_id = before.pool_id.as_ref()?;
        let pool = self.before.pools.get(pool_id).filter(|_| self.served(pool_id))?;
        if after.pool_id.as_ref() == Some(pool_id) && self.after.pools.contains_key(pool_id) {
            return None;
        }
        let owner = Owner::of_name(&before.name)?;
        let key = key_of(before);
        let asks = |wish: &Wish| {
            !wish.ports.contains_key(&key)
                || wish.protocols(&key).is_some_and(|(_, protocol)| protocol != pool.protocol)
                || moves(wish, before)
        };
        if !self.asked(&owner, self.birth(pool_id), asks) && !self.is_succeeded(before, pool_id, after) {
            return Some(format!("pool {} ({}) of {owner} is replaced", pool.name, pool.protocol));
        }
        let is_empty = !self.after.members.values().any(|one| Some(&one.pool_id) == after.pool_id.as_ref());
        let mut old = self.before.members.iter().filter(|(_, one)| one.pool_id == *pool_id);
        // Members that may go may be missing in the new pool.
        let emptied = is_empty && old.any(|(id, one)| self.member_removed(before, id, one).is_some());
        emptied.then(|| format!("listener {} of {owner} gets a pool without members", before.name))
    }

    /// Whether the pool that a listener gets speaks the same and has all members of the one before that are wanted: a monitor of another
    /// type, or members on another subnet, come with a pool of their own.
    fn is_succeeded(&self, before: &ListenerTraffic, pool_id: &str, after: &ListenerTraffic) -> bool {
        let Some(new_id) = &after.pool_id else { return false };
        let (old, new) = (self.before.pools.get(pool_id), self.after.pools.get(new_id));
        let same = old.zip(new).is_some_and(|(old, new)| old.protocol == new.protocol && new.active);
        let has = |member: &MemberTraffic| {
            self.after.members.values().any(|one| {
                one.up && (&one.pool_id, &one.address, one.port) == (new_id, &member.address, member.port)
            })
        };
        let mut members = self.before.members.iter().filter(|(_, one)| one.pool_id == *pool_id && one.up);
        same && members.all(|(id, one)| has(one) || self.member_removed(before, id, one).is_none())
    }

    fn members(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for listener in self.before.listeners.values() {
            let Some(pool_id) = &listener.pool_id else { continue };
            // What else goes with its pool was judged with that.
            if !self.after.pools.contains_key(pool_id) {
                continue;
            }
            let gone = self.before.members.iter().filter(|(id, one)| {
                one.pool_id == *pool_id && one.up && self.served(id) && !self.stays(id, one)
            });
            wrong.extend(gone.filter_map(|(id, one)| self.member_removed(listener, id, one)));
        }
        wrong
    }

    /// Whether a member is still there, or another one of its address and port.
    fn stays(&self, id: &str, member: &MemberTraffic) -> bool {
        let same = |other: &MemberTraffic| {
            other.up
                && (&other.pool_id, &other.address, other.port)
                    == (&member.pool_id, &member.address, member.port)
        };
        self.after.members.get(id).is_some_and(|one| one.up) || self.after.members.values().any(same)
    }

    fn member_removed(&self, listener: &ListenerTraffic, id: &str, one: &MemberTraffic) -> Option<String> {
        let Some(owner) = Owner::of_name(&listener.name) else {
            return Some(format!(
                "member {} of {}, which is not its own, is removed",
                one.address, listener.name
            ));
        };
        let (key, birth) = (key_of(listener), self.birth(id));
        let nodes = self.nodes_since(&owner, &one.address, birth);
        let asks = |wish: &Wish| {
            wish.ports.get(&key) != Some(&Some(u64::from(one.port)))
                || moves(wish, listener)
                || nodes.iter().any(|node| !wish.selects(node))
        };
        let asked = self.asked(&owner, birth, asks);
        let left = nodes.is_empty()
            || nodes.iter().any(|node| !node.included || !node.addresses.contains(&one.address));
        (!asked && !left)
            .then(|| format!("member {}:{} of {} is removed", one.address, one.port, listener.name))
    }

    /// The states since a moment of the nodes that ever had an address; empty where one is gone, or was lost shortly before.
    fn nodes_since(&self, owner: &Owner, address: &str, moment: Moment) -> Vec<NodeState> {
        let Some(cluster) = self.record.clusters.get(&owner.cluster) else { return Vec::new() };
        let histories = cluster.nodes.iter().map(|(name, history)| (name, since(history, moment)));
        let of_address: Vec<_> = histories
            .filter(|(_, history)| {
                let mut states = history.iter().filter_map(|(_, node)| node.as_ref());
                states.any(|node| node.addresses.contains(address))
            })
            .collect();
        if of_address.iter().any(|(name, _)| cluster.was_lost_shortly_before(name)) {
            return Vec::new();
        }
        let states = of_address.into_iter().flat_map(|(_, history)| history).map(|(_, node)| node.clone());
        states.collect::<Option<_>>().unwrap_or_default()
    }

    fn floating_ips(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (id, one) in self.before.floating_ips.iter().filter(|(id, _)| self.served(id)) {
            let Some(port_id) = &one.port_id else { continue };
            if self.after.floating_ips.get(id).is_some_and(|after| after.port_id.as_ref() == Some(port_id)) {
                continue;
            }
            let mut led = self.before.load_balancers.iter().filter(|(_, lb)| lb.vip_port_id == *port_id);
            let Some((lb_id, _)) = led.find(|(_, lb)| lb.built) else { continue };
            let birth = self.birth(id);
            let users: BTreeSet<Owner> = self.users(lb_id).into_keys().collect();
            let keeping = users.into_iter().filter(|owner| {
                !self.asked(owner, birth, |wish| {
                    wish.internal
                        || wish.address.as_ref().is_some_and(|address| *address != one.address)
                        || wish.load_balancer_id.as_ref().is_some_and(|named| named != lb_id)
                })
            });
            wrong.extend(keeping.map(|owner| format!("floating IP {} is taken from {owner}", one.address)));
        }
        wrong
    }
}

/// Whether a Service wants to be on another load balancer.
fn moves(wish: &Wish, listener: &ListenerTraffic) -> bool {
    wish.load_balancer_id.as_ref().is_some_and(|named| *named != listener.load_balancer_id)
}

fn key_of(listener: &ListenerTraffic) -> Key {
    let transport = match listener.protocol.as_str() {
        "UDP" | "SCTP" => listener.protocol.clone(),
        _ => "TCP".to_owned(),
    };
    (transport, u64::from(listener.port))
}

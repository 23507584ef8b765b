//! Reading from the world what a listener does with connections: pure, and read anew for each connection.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::proxy_header::Version;
use crate::world::World;
use crate::world::load_balancing::{Listener, LoadBalancer, Member, Operating, Pool, Provisioning};

/// A place where a listener is to be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frontend {
    pub(crate) listener_id: String,
    /// One of the addresses of its load balancer.
    pub(crate) vip: String,
    /// The port of the listener.
    pub(crate) port: u16,
}

/// How the bytes of a connection are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are passed on.
    Stream,
    /// Requests are read, headers are added.
    Http,
}

/// What happens to a connection of a listener now.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) mode: Mode,
    /// Who may connect; empty means everybody.
    pub(crate) allowed: Vec<IpNet>,
    /// The PROXY header that members get.
    pub(crate) proxy: Option<Version>,
    /// Headers that are added to requests, with their values but for the client's address.
    pub(crate) insert: Vec<Header>,
    /// Whether there is a pool that is up.
    pub(crate) has_pool: bool,
    /// Address and port of the members that take connections.
    pub(crate) members: Vec<(String, u16)>,
    /// Whether a client always gets the same member.
    pub(crate) sticky: bool,
}

/// An `X-Forwarded-` header that the load balancer adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    For,
    Port,
    Proto,
}

impl Route {
    /// Whether a client may connect.
    pub(crate) fn allows(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.allowed.is_empty() || self.allowed.iter().any(|range| range.contains(&client))
    }

    /// The members in the order in which they are to be tried for a client; `turn` counts connections.
    pub(crate) fn candidates(&self, client: IpAddr, turn: usize) -> Vec<(String, u16)> {
        if self.members.is_empty() {
            return Vec::new();
        }
        let first = if self.sticky { hash(client) } else { turn } % self.members.len();
        self.members[first..].iter().chain(&self.members[..first]).cloned().collect()
    }
}

fn hash(client: IpAddr) -> usize {
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    usize::try_from(hasher.finish() % u64::from(u32::MAX)).unwrap_or_default()
}

/// Every place where a listener is to be reached now. UDP, SCTP, TLS termination and metrics are not forwarded.
pub(crate) fn frontends(world: &World) -> Vec<Frontend> {
    let state = &world.load_balancing;
    let mut frontends = Vec::new();
    for listener in state.listeners.values().filter(|listener| forwards(listener)) {
        let lb = state.load_balancers.get(&listener.load_balancer_id);
        let Some(lb) = lb.filter(|lb| serves(lb)) else { continue };
        let port = listener.entity.port("protocol_port").unwrap_or_default();
        frontends.extend(vips(lb).map(|vip| Frontend { listener_id: listener.entity.id.clone(), vip, port }));
    }
    frontends
}

/// The addresses of a load balancer.
pub(super) fn vips(lb: &LoadBalancer) -> impl Iterator<Item = String> + '_ {
    std::iter::once(lb.vip.address.clone())
        .chain(lb.additional_vips.iter().map(|(_, address)| address.clone()))
}

/// Whether a load balancer forwards at all.
pub(super) fn serves(lb: &LoadBalancer) -> bool {
    lb.built && lb.entity.is_up() && is_alive(lb.entity.provisioning)
}

fn is_alive(status: Provisioning) -> bool {
    match status {
        Provisioning::Active | Provisioning::PendingUpdate | Provisioning::Error => true,
        Provisioning::PendingCreate | Provisioning::PendingDelete => false,
    }
}

fn forwards(listener: &Listener) -> bool {
    matches!(listener.entity.text("protocol"), "TCP" | "HTTP" | "HTTPS") && is_open(listener)
}

/// Whether a listener takes packets.
pub(super) fn is_open(listener: &Listener) -> bool {
    listener.entity.is_up()
        && matches!(listener.entity.provisioning, Provisioning::Active | Provisioning::PendingUpdate)
}

/// What happens to a connection of a listener; `None` when it is gone.
pub(crate) fn route(world: &World, listener_id: &str) -> Option<Route> {
    let state = &world.load_balancing;
    let listener = state.listeners.get(listener_id)?;
    let pool = listener
        .default_pool_id
        .as_ref()
        .and_then(|id| state.pools.get(id))
        .filter(|pool| pool.entity.is_up());
    let mode = if listener.entity.text("protocol") == "HTTP" { Mode::Http } else { Mode::Stream };
    let proxy = pool.and_then(|pool| Version::of_pool(pool.entity.text("protocol")));
    let cidrs = listener.entity.attributes.get("allowed_cidrs").and_then(Value::as_array);
    Some(Route {
        mode,
        allowed: cidrs
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter_map(|cidr| cidr.parse().ok())
            .collect(),
        proxy,
        insert: headers(listener, proxy),
        has_pool: pool.is_some(),
        members: pool.map(|pool| members(world, pool)).unwrap_or_default(),
        sticky: pool.is_some_and(is_sticky),
    })
}

/// With a PROXY pool the real load balancer inserts only `X-Forwarded-Proto`, without a word.
fn headers(listener: &Listener, proxy: Option<Version>) -> Vec<Header> {
    let wanted = |name: &str| listener.entity.attributes["insert_headers"][name] == "true";
    let mut headers = Vec::new();
    if proxy.is_none() && wanted("X-Forwarded-For") {
        headers.push(Header::For);
    }
    if proxy.is_none() && wanted("X-Forwarded-Port") {
        headers.push(Header::Port);
    }
    if wanted("X-Forwarded-Proto") {
        headers.push(Header::Proto);
    }
    headers
}

fn is_sticky(pool: &Pool) -> bool {
    let persistence = &pool.entity.attributes["session_persistence"]["type"];
    pool.entity.text("lb_algorithm") == "SOURCE_IP" || persistence == "SOURCE_IP"
}

/// The members that take connections: backups only when no other is left.
fn members(world: &World, pool: &Pool) -> Vec<(String, u16)> {
    let fit: Vec<&Member> = world
        .load_balancing
        .members_of(&pool.entity.id)
        .into_iter()
        .filter(|member| takes_connections(member))
        .collect();
    let is_backup = |member: &Member| member.entity.attributes["backup"] == true;
    let backups_only = fit.iter().all(|member| is_backup(member));
    fit.into_iter()
        .filter(|member| backups_only || !is_backup(member))
        .filter_map(|member| {
            Some((member.entity.text("address").to_owned(), member.entity.port("protocol_port")?))
        })
        .collect()
}

fn takes_connections(member: &Member) -> bool {
    is_alive(member.entity.provisioning)
        && member.entity.is_up()
        && member.entity.attributes["weight"] != 0
        && matches!(member.entity.operating, Operating::Online | Operating::NoMonitor)
}

/// The VIP behind an address that a client uses: the address itself, or what a floating IP points to.
pub(crate) fn vip_behind(world: &World, address: &str) -> String {
    let floating = world.network.floating_ips.values().find(|one| one.text("floating_ip_address") == address);
    floating.map_or_else(|| address.to_owned(), |one| one.text("fixed_ip_address").to_owned())
}

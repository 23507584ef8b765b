//! What the provider driver ovn refuses, in its own words: `driver.py` and `common/constants.py` of ovn-octavia-provider. Octavia puts before
//! them which provider it is, and answers 501.

use serde_json::{Map, Value};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use crate::world::World;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
/// The second since a later release.
const ALGORITHMS: [&str; 2] = ["SOURCE_IP_PORT", "SOURCE_IP"];
const MONITORS: [&str; 2] = ["UDP-CONNECT", "TCP"];

/// How a change of a pool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolUpdate {
    /// As with other providers.
    Whole,
    /// The driver says nothing of the listeners, which stay PENDING until something else changes them.
    WithoutListeners,
    /// The driver fails.
    Failed,
}

/// What comes of a change of these attributes of a pool: the driver (11.0) counts on `admin_state_up`.
pub(crate) fn pool_update(world: &World, load_balancer_id: &str, names: &[String]) -> PoolUpdate {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if !is_ovn(world, load_balancer_id) || has("admin_state_up") {
        PoolUpdate::Whole
    } else if has("session_persistence") {
        PoolUpdate::Failed
    } else {
        PoolUpdate::WithoutListeners
    }
}

/// Whether a pool is on a load balancer of ovn.
pub(super) fn has_pool(world: &World, pool_id: &str) -> bool {
    world.load_balancing.pools.get(pool_id).is_some_and(|pool| is_ovn(world, &pool.load_balancer_id))
}

fn is_ovn(world: &World, load_balancer_id: &str) -> bool {
    let lb = world.load_balancing.load_balancers.get(load_balancer_id);
    lb.is_some_and(|lb| lb.entity.text("provider") == "ovn")
}

/// Checks the members of a batch.
///
/// # Errors
/// The driver does not support one of them.
pub(crate) fn check_batch(
    world: &World,
    load_balancer_id: &str,
    members: &[Map<String, Value>],
) -> Result<(), OctaviaFault> {
    let monitored = |member: &Map<String, Value>| {
        ["monitor_port", "monitor_address"]
            .iter()
            .any(|name| member.get(*name).is_some_and(|value| !value.is_null()))
    };
    if is_ovn(world, load_balancer_id) && members.iter().any(monitored) {
        return Err(refusal("OVN provider does not support monitor options"));
    }
    members.iter().try_for_each(|member| check(world, load_balancer_id, ObjectKind::Member, member))
}

/// Refuses the question for what flavors can set.
///
/// # Errors
/// The provider is ovn, whose driver does not answer it.
pub(crate) fn check_capabilities(provider: &str) -> Result<(), OctaviaFault> {
    let text = "Provider 'ovn' does not support a requested action: This provider does not support getting the supported flavor metadata.";
    if provider == "ovn" { Err(OctaviaFault::NotImplemented(text.to_owned())) } else { Ok(()) }
}

fn refusal(text: &str) -> OctaviaFault {
    OctaviaFault::NotImplemented(format!("Provider 'ovn' does not support a requested option: {text}"))
}

/// Whether a member has an address of another family than its load balancer.
fn mixes_families(world: &World, load_balancer_id: &str, given: &Map<String, Value>) -> bool {
    let lb = world.load_balancing.load_balancers.get(load_balancer_id);
    let address = given.get("address").and_then(Value::as_str).unwrap_or_default();
    lb.is_some_and(|lb| {
        lb.additional_vips.is_empty() && lb.vip.address.contains(':') != address.contains(':')
    })
}

/// Checks what is given for an object below a load balancer, where that is one of ovn.
///
/// # Errors
/// The driver does not support it.
pub(crate) fn check(
    world: &World,
    load_balancer_id: &str,
    kind: ObjectKind,
    given: &Map<String, Value>,
) -> Result<(), OctaviaFault> {
    if !is_ovn(world, load_balancer_id) {
        return Ok(());
    }
    let refused = |name: &str, known: &[&str]| {
        let text = given.get(name).and_then(Value::as_str)?;
        (!known.contains(&text)).then(|| text.to_owned())
    };
    let is_set = |name: &str| match given.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let text = match kind {
        ObjectKind::Listener | ObjectKind::Pool => {
            let protocol = refused("protocol", &PROTOCOLS).map(|text| format!("{text} protocol"));
            let algorithm = refused("lb_algorithm", &ALGORITHMS).map(|text| format!("{text} algorithm"));
            let cidrs = is_set("allowed_cidrs").then(|| "allowed_cidrs option".to_owned());
            protocol.or(algorithm).or(cidrs).map(|text| format!("OVN provider does not support {text}"))
        }
        ObjectKind::HealthMonitor => refused("type", &MONITORS).map(|text| {
            let known = MONITORS.join(", ");
            format!("OVN provider does not support {text} health monitor type. Supported types: {known}")
        }),
        ObjectKind::Member if is_set("monitor_port") || is_set("monitor_address") => {
            Some("OVN Load Balancer does not support different member monitor address or port.".to_owned())
        }
        ObjectKind::Member => mixes_families(world, load_balancer_id, given).then(|| {
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer."
                .to_owned()
        }),
        ObjectKind::LoadBalancer => None,
    };
    text.map_or(Ok(()), |text| Err(refusal(&text)))
}

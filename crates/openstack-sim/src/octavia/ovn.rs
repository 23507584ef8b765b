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
    let lb = world.load_balancing.load_balancers.get(load_balancer_id);
    if lb.is_none_or(|lb| lb.entity.text("provider") != "ovn") {
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
        ObjectKind::Member => (is_set("monitor_port") || is_set("monitor_address")).then(|| {
            "OVN Load Balancer does not support different member monitor address or port.".to_owned()
        }),
        ObjectKind::LoadBalancer => None,
    };
    text.map_or(Ok(()), |text| {
        let text = format!("Provider 'ovn' does not support a requested option: {text}");
        Err(OctaviaFault::NotImplemented(text))
    })
}

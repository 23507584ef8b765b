//! Settings that have an effect only at the creation of a load balancer, and differ from it now. Pure.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use crate::load_balancer::annotations::{
    AVAILABILITY_ZONE, Annotation, FLAVOR_ID, LB_PROVIDER, NETWORK_ID, PORT_ID, SUBNET_ID,
};
use crate::load_balancer::objects::{Features, ObservedLoadBalancer, Ownership};
use crate::load_balancer::settings::{Aspect, Settings};

/// A setting of the Service requires a new load balancer.
const NEEDS_RECREATION: &str = "LoadBalancerNeedsRecreation";

/// Returns the warning about settings that require a new load balancer. Only the Service's own settings count, since cloud.conf
/// applies to new load balancers. `None` if nothing differs, or if the load balancer was made for another owner.
pub(crate) fn notice(
    service: &Service,
    settings: &Settings,
    features: Features,
    existing: &ObservedLoadBalancer,
) -> Option<Notice> {
    if existing.ownership == Ownership::Guest {
        return None;
    }
    let made_with = &existing.made_with;
    let asked = |annotation: &Annotation| service.annotations.contains_key(annotation.key);
    let provider = settings.provider.as_ref().filter(|_| !settings.is_unreadable(Aspect::Creation));
    let flavor = settings.flavor_id.as_ref().filter(|_| features.flavors);
    let zone = settings.availability_zone.as_ref().filter(|_| features.availability_zones);
    let vip = &settings.vip;
    // A port determines its subnet and network.
    let (subnet, network) =
        if vip.port_id.is_some() { (None, None) } else { (vip.subnet_id.as_ref(), vip.network_id.as_ref()) };
    let mut differences: Vec<String> = [
        (&LB_PROVIDER, provider, made_with.provider.as_ref()),
        (&FLAVOR_ID, flavor, made_with.flavor_id.as_ref()),
        (&AVAILABILITY_ZONE, zone, made_with.availability_zone.as_ref()),
        (&PORT_ID, vip.port_id.as_ref(), existing.vip_port_id.as_ref()),
        (&SUBNET_ID, subnet, existing.vip_subnet_id.as_ref()),
        (&NETWORK_ID, network, made_with.vip_network_id.as_ref()),
    ]
    .into_iter()
    .filter(|(annotation, wanted, has)| asked(annotation) && wanted.is_some() && wanted != has)
    .map(|(annotation, wanted, has)| difference(&format!("annotation {}", annotation.key), wanted, has))
    .collect();
    let elsewhere = vip.addresses().filter(|asked| existing.vip_addresses().all(|address| address != *asked));
    differences.extend(elsewhere.map(|address| {
        let has = existing.vip_addresses().find(|has| has.is_ipv4() == address.is_ipv4());
        difference(vip.asked_by, Some(&address), has.as_ref())
    }));
    (!differences.is_empty()).then(|| {
        let message = format!(
            "{existing} keeps its present values, which Octavia cannot change after creation: {}; revert the change, or delete the \
             Service and create it again",
            differences.join(", ")
        );
        Notice::warning(NEEDS_RECREATION, message)
    })
}

fn difference<T: ToString>(key: &str, wanted: Option<&T>, has: Option<&T>) -> String {
    let text = |value: Option<&T>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
    format!("{key} asks for {}, the load balancer has {}", text(wanted), text(has))
}

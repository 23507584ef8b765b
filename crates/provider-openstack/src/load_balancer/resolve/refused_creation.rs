//! Explains why the cloud refused to create a load balancer: Octavia names its attribute but no valid values, and older versions do
//! not distinguish an exhausted quota from an address in use.

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::neutron::{Port, PortFilter};
use tracing::info;

use super::Resolver;
use crate::load_balancer::annotations::{AVAILABILITY_ZONE, FLAVOR_ID, LB_PROVIDER};
use crate::load_balancer::objects::tree::Vip;

/// A refused creation of a load balancer.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The failure, with what to correct.
    pub(crate) failure: Failure,
    /// Requested addresses that are used by others.
    pub(crate) taken: Vec<IpAddr>,
}

/// The cause of a conflict over a new load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InTheWay {
    /// The address is in use.
    Address,
    /// Octavia does not say: the address, the quota of ports, or the addresses of the subnet.
    Unknown,
}

impl InTheWay {
    fn of(refusal: &Failure) -> Option<Self> {
        let text = refusal.message.to_ascii_lowercase();
        let says = |words: &str| text.contains(words);
        if refusal.class != FailureClass::UserInput {
            None
        } else if says("already allocated in subnet") {
            Some(Self::Address)
        } else {
            says("conflictexception: 409").then_some(Self::Unknown)
        }
    }
}

impl Resolver {
    /// Adds what to correct to the refusal of a load balancer with this `vip`.
    pub(crate) async fn explain_refusal(&self, refusal: Failure, vip: Option<&Vip>) -> Refusal {
        let asked = vip.map(asked_addresses).unwrap_or_default();
        match InTheWay::of(&refusal) {
            Some(InTheWay::Address) => {
                let named =
                    |address: &IpAddr| asked.len() == 1 || names(&refusal.message, &address.to_string());
                let taken = asked.iter().copied().filter(named).collect();
                Refusal { failure: refusal, taken }
            }
            Some(InTheWay::Unknown) => self.find_in_the_way(refusal, &asked).await,
            None => Refusal { failure: self.correct_choice(refusal).await, taken: Vec::new() },
        }
    }

    /// Asks Neutron for the cause. It does not show the ports of other projects to every user.
    async fn find_in_the_way(&self, refusal: Failure, asked: &[IpAddr]) -> Refusal {
        let mut taken = Vec::new();
        let mut advice = Vec::new();
        for address in asked {
            let ports = self.openstack.neutron.list_ports(&PortFilter::address(*address)).await;
            match ports.ok().and_then(|ports| ports.into_iter().next()) {
                Some(port) => {
                    taken.push(*address);
                    advice.push(in_use(*address, &port));
                }
                None => advice.push(format!(
                    "{address} might be in use by a port of another project, which the user of cloud.conf cannot see: choose another \
                     address"
                )),
            }
        }
        if taken.is_empty() {
            advice.push(
                "the project's quota of ports or the subnet's addresses might be used up: have an administrator raise the quota, or \
                 delete ports that are no longer needed"
                    .to_owned(),
            );
        }
        let message = format!("{}; Octavia gives no reason: {}", refusal.message, advice.join("; "));
        Refusal { failure: Failure { message, ..refusal }, taken }
    }

    /// Adds what to correct in the choice of provider, flavor or zone.
    async fn correct_choice(&self, refusal: Failure) -> Failure {
        if refusal.class != FailureClass::UserInput {
            return refusal;
        }
        let text = &refusal.message;
        let advice = if text.contains("Provider '") && text.contains("not enabled") {
            let names = Vec::from_iter(self.provider_names().await).join(", ");
            let known =
                if names.is_empty() { names } else { format!("this cloud has the providers {names}: ") };
            format!(
                "{known}correct lb-provider in cloud.conf, or in the annotation {} of the Service",
                LB_PROVIDER.key
            )
        } else if text.contains("Invalid flavor_id") {
            corrected(FLAVOR_ID.key, "flavor-id")
        } else if text.contains("Invalid availability zone") {
            corrected(AVAILABILITY_ZONE.key, "availability-zone")
        } else {
            return refusal;
        };
        Failure { message: format!("{text}; {advice}"), ..refusal }
    }
}

/// Returns the addresses that a load balancer requests; not that of an existing port.
fn asked_addresses(vip: &Vip) -> Vec<IpAddr> {
    let first = vip.address.filter(|_| vip.port_id.is_none());
    first.into_iter().chain(vip.additional.iter().filter_map(|vip| vip.address)).collect()
}

/// Returns whether a text contains this word: 10.0.0.1 is not in a text about 10.0.0.12.
fn names(text: &str, word: &str) -> bool {
    text.split(char::is_whitespace).any(|part| part.trim_end_matches(['.', ',', ';']) == word)
}

fn in_use(address: IpAddr, port: &Port) -> String {
    if port.device_owner == "Octavia" {
        // Perhaps of another namespace: its Events name none of that.
        info!(%address, port = port.id, device = port.device_id, "the requested address is in use");
        return format!(
            "{address} is in use by the VIP port of a load balancer: choose another address; if that load balancer no longer exists, \
             have the operator delete the port, which openstack-ccm orphans lists"
        );
    }
    let owner = if port.device_owner.is_empty() { "no device" } else { &port.device_owner };
    format!(
        "{address} is in use by port {} ({owner}): choose another address, or delete the port if it is no longer needed",
        port.id
    )
}

fn corrected(annotation: &str, key: &str) -> String {
    format!(
        "this cloud has no object with that name or id: correct annotation {annotation}, or {key} in cloud.conf"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_not_taken_for_one_that_begins_like_it() {
        let text = "IP address 10.0.0.12 already allocated in subnet s";
        assert!(names(text, "10.0.0.12") && !names(text, "10.0.0.1"));
        assert!(names("already in use: 10.0.0.12.", "10.0.0.12"));
    }
}

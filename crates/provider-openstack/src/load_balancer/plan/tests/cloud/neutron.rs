//! Neutron's part of the model: floating IPs.

use std::collections::BTreeSet;

use super::Cloud;
use crate::load_balancer::objects::step::{FloatingIpStep, Handle};
use crate::load_balancer::objects::{ObservedFloatingIp, SubnetChoice};

impl Cloud {
    pub(super) fn apply_to_neutron(&mut self, step: &FloatingIpStep) {
        match step {
            FloatingIpStep::Create { network_id, address, subnet, port, .. } => {
                assert_ne!(*subnet, SubnetChoice::FirstFree(Vec::new()));
                let id = self.id("fip");
                let address = address.unwrap_or_else(|| format!("203.0.113.{}", self.made).parse().unwrap());
                // The tags are a second call, which is lost here: the next plan has to repair that.
                let floating_ip = ObservedFloatingIp {
                    claimed_by: None,
                    user: None,
                    device: None,
                    fixed_address: None,
                    id: id.clone(),
                    address,
                    network_id: Some(network_id.clone()),
                    port_id: None,
                    in_use: false,
                    ours: true,
                    description: String::new(),
                    tags: BTreeSet::new(),
                };
                self.observed.floating_ips.push(floating_ip);
                self.attach(&id, port);
            }
            FloatingIpStep::Attach { id, port, instead_of, .. } => {
                if let Some(former) = instead_of {
                    self.floating_ip(&former.id).port_id = None;
                }
                self.attach(id, port);
            }
            FloatingIpStep::Detach { id, .. } => self.floating_ip(id).port_id = None,
            FloatingIpStep::Tag { id, tags, .. } => {
                assert!(self.floating_ip(id).ours, "a foreign floating IP is tagged");
                self.floating_ip(id).tags.clone_from(tags);
            }
            FloatingIpStep::Delete { id, .. } => {
                assert!(self.floating_ip(id).ours, "a foreign floating IP is deleted");
                self.observed.floating_ips.retain(|floating_ip| floating_ip.id != *id);
            }
        }
    }

    fn attach(&mut self, id: &str, port: &Handle) {
        let port = port.id().expect("applicable").to_owned();
        let taken = self.observed.floating_ips.iter().any(|other| other.port_id.as_ref() == Some(&port));
        assert!(!taken, "409: FloatingIPPortAlreadyAssociated");
        assert_eq!(
            self.observed.load_balancer.as_ref().and_then(|there| there.vip_port_id.clone()),
            Some(port.clone())
        );
        self.floating_ip(id).port_id = Some(port);
    }

    fn floating_ip(&mut self, id: &str) -> &mut ObservedFloatingIp {
        self.observed.floating_ips.iter_mut().find(|one| one.id == *id).expect("404: floating IP")
    }
}

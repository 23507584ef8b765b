//! Whether the cloud can do what the ports need.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::{Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ListenerProtocol, PoolProtocol};

use crate::load_balancer::annotations::PROXY_PROTOCOL;
use crate::load_balancer::model::facts::Features;
use crate::load_balancer::settings::Settings;

/// Checks every port. Octavia would refuse the tree, and keep its port and address.
pub(super) fn check(settings: &Settings, features: Features, ports: &[ServicePort]) -> Result<(), Failure> {
    ports.iter().try_for_each(|port| check_port(settings, features, port))?;
    check_algorithm(settings, features)
}

fn check_port(settings: &Settings, features: Features, port: &ServicePort) -> Result<(), Failure> {
    if port.protocol == Protocol::Sctp && !features.sctp {
        return Err(Failure::user_input(format!(
            "the SCTP port {} needs Octavia API 2.23, which this cloud does not have: remove it from spec.ports",
            port.port
        )));
    }
    let (listener, pool) = (settings.listener_protocol(port), settings.pool_protocol(port));
    let forwards_only =
        matches!(listener, ListenerProtocol::Tcp | ListenerProtocol::Udp | ListenerProtocol::Sctp)
            && matches!(pool, PoolProtocol::Tcp | PoolProtocol::Udp | PoolProtocol::Sctp);
    if !forwards_only && !features.layer_7 {
        return Err(Failure::user_input(format!(
            "port {} needs a listener of protocol {listener} and a pool of protocol {pool}, and the provider ovn only \
             forwards packets: remove the annotations for PROXY protocol, TLS and X-Forwarded-For, or use the provider \
             amphora",
            port.port
        )));
    }
    if pool == PoolProtocol::ProxyV2 && !features.proxy_v2 {
        return Err(Failure::user_input(format!(
            "annotation {}: \"v2\" needs Octavia API 2.22, which this cloud does not have: write \"v1\"",
            PROXY_PROTOCOL.key
        )));
    }
    Ok(())
}

fn check_algorithm(settings: &Settings, features: Features) -> Result<(), Failure> {
    let hashes = matches!(settings.lb_algorithm, LbAlgorithm::SourceIpPort | LbAlgorithm::SourceIp);
    if features.layer_7 || hashes {
        return Ok(());
    }
    Err(Failure::user_input(format!(
        "lb-method {} does not exist with the provider ovn: use SOURCE_IP_PORT",
        settings.lb_algorithm
    )))
}

//! The canary of a world: each pod finds what the model of its node's service proxy does, by the table that real pods use.

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_advertise::node::Version;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::look::{Answer, judge};
use openstack_ccm_canary::objects::{Canary, ingress};
use openstack_ccm_canary::{CONCLUSIVE, FIT, NAMESPACE, PORT};
use openstack_ccm_kube_sim::Sim as Kubernetes;
use serde_json::{Value, from_value, json};

use super::kube_proxy::short_circuits;

/// Makes a canary whose pods have looked. `nodes` are names with the versions of their kube-proxies.
pub(super) fn make(kubernetes: &Kubernetes, nodes: &[(String, Version)]) -> anyhow::Result<()> {
    let canary =
        Canary { namespace: NAMESPACE.into(), image: "demo".into(), addresses: Addresses::permanent() };
    kubernetes.create(&canary.namespace())?;
    let mut services = Vec::new();
    for object in canary.services() {
        let service: Service = from_value(kubernetes.create(&object)?)?;
        let name = service.metadata.name.unwrap_or_default();
        let ips = service.spec.and_then(|spec| spec.cluster_ips).unwrap_or_default();
        let entries = ingress(&name, &ips, &canary.addresses);
        let entries: Vec<Value> =
            entries.iter().map(|(ip, mode)| json!({"ip": ip, "ipMode": mode})).collect();
        let status = json!({"status": {"loadBalancer": {"ingress": entries}}});
        services.push(from_value(kubernetes.patch_status("services", NAMESPACE, &name, &status)?)?);
    }
    for (node, version) in nodes {
        pod(kubernetes, &canary, &services, node, *version)?;
    }
    Ok(())
}

fn pod(
    kubernetes: &Kubernetes,
    canary: &Canary,
    services: &[Service],
    node: &str,
    version: Version,
) -> anyhow::Result<()> {
    let answer = |address: std::net::IpAddr| {
        if short_circuits(version, services, address, PORT) { Answer::Ours } else { Answer::NotOurs }
    };
    let pair = canary.addresses.pairs()[0];
    let found = judge(Answer::Ours, answer(pair.control), answer(pair.subject));
    let (conclusive, fit) = Carried::readiness(Some(found));
    let mut object = canary.pod(node, "demo");
    let name = format!("canary-{node}");
    object["metadata"]["name"] = json!(name);
    kubernetes.create(&object)?;
    let container = |name: &str, ready: bool| {
        let state = json!({"running": {}});
        json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state})
    };
    let statuses = [container(CONCLUSIVE, conclusive), container(FIT, fit)];
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
    kubernetes.patch_status("pods", NAMESPACE, &name, &status)?;
    Ok(())
}

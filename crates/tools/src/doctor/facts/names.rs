//! Gathers the configuration of the cluster's DNS servers, and the hostnames that Ingresses and Gateways serve.

use k8s_openapi::api::networking::v1::Ingress;
use kube::api::DynamicObject;
use kube::{Api, Client};
use openstack_ccm_doctor::facts::{DnsText, Looked, ServedName, name_of};
use serde_json::Value;

use super::backend::config_maps_of;
use super::reading::{all, all_of, said};

/// ConfigMaps of CoreDNS, as kubeadm, k3s, AKS and RKE2 name them, and of node-local-dns.
const DNS: [&str; 6] = [
    "coredns",
    "coredns-custom",
    "node-local-dns",
    "rke2-coredns-rke2-coredns",
    "rke2-coredns-custom",
    "kube-dns",
];

pub(super) async fn dns(client: &Client) -> Looked<Vec<DnsText>> {
    let mut texts = Vec::new();
    for (config_map, data) in config_maps_of(client, DNS.map(|name| format!("kube-system/{name}"))).await {
        let text = |(key, text)| DnsText { config_map: config_map.clone(), key, text };
        texts.extend(data?.into_iter().map(text));
    }
    Ok(texts)
}

/// Returns the hostnames of Ingresses, Gateways and HTTPRoutes, with the addresses in the status of each.
pub(super) async fn served(client: &Client) -> Looked<Vec<ServedName>> {
    let ingresses = all(&Api::<Ingress>::all(client.clone())).await.map_err(said)?;
    let mut names: Vec<ServedName> = ingresses.iter().flat_map(of_ingress).collect();
    let gateways = all_of(client, ("gateway.networking.k8s.io", "v1", "Gateway", "gateways")).await?;
    names.extend(gateways.iter().flat_map(of_gateway));
    if !gateways.is_empty() {
        let routes = all_of(client, ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")).await?;
        names.extend(routes.iter().flat_map(|route| of_route(route, &gateways)));
    }
    Ok(names)
}

fn of_ingress(ingress: &Ingress) -> Vec<ServedName> {
    let owner = format!("Ingress {}", name_of(&ingress.metadata));
    let status = ingress.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let entries = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    let at: Vec<String> =
        entries.iter().flat_map(|entry| [entry.ip.clone(), entry.hostname.clone()]).flatten().collect();
    let rules = ingress.spec.iter().flat_map(|spec| spec.rules.iter().flatten());
    rules
        .filter_map(|rule| rule.host.clone())
        .map(|host| ServedName { host, owner: owner.clone(), at: at.clone() })
        .collect()
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    let objects = list.as_array().into_iter().flatten();
    objects.filter_map(|object| object[key].as_str()).map(str::to_owned).collect()
}

fn of_gateway(gateway: &DynamicObject) -> Vec<ServedName> {
    let at = texts(&gateway.data["status"]["addresses"], "value");
    let hosts = texts(&gateway.data["spec"]["listeners"], "hostname");
    let owner = format!("Gateway {}", name_of(&gateway.metadata));
    hosts.into_iter().map(|host| ServedName { host, owner: owner.clone(), at: at.clone() }).collect()
}

fn of_route(route: &DynamicObject, gateways: &[DynamicObject]) -> Vec<ServedName> {
    let parents = texts(&route.data["spec"]["parentRefs"], "name");
    let is_parent =
        |gateway: &&DynamicObject| gateway.metadata.name.as_ref().is_some_and(|name| parents.contains(name));
    let mut at: Vec<String> = Vec::new();
    for gateway in gateways.iter().filter(is_parent) {
        at.extend(texts(&gateway.data["status"]["addresses"], "value"));
    }
    let hosts = route.data["spec"]["hostnames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let owner = format!("HTTPRoute {}", name_of(&route.metadata));
    hosts.map(|host| ServedName { host: host.to_owned(), owner: owner.clone(), at: at.clone() }).collect()
}

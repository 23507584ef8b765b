//! Gathers policies of kinds that network plugins define: their names, and which pods they may select.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::DynamicObject;
use openstack_ccm_doctor::facts::{ForeignPolicy, Looked};
use serde_json::Value;

use super::reading::{Named, all_of, is_not_there, said};

const KINDS: [Named; 8] = [
    ("cilium.io", "v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies"),
    ("cilium.io", "v2", "CiliumClusterwideNetworkPolicy", "ciliumclusterwidenetworkpolicies"),
    ("crd.projectcalico.org", "v1", "NetworkPolicy", "networkpolicies"),
    ("crd.projectcalico.org", "v1", "GlobalNetworkPolicy", "globalnetworkpolicies"),
    ("crd.antrea.io", "v1beta1", "NetworkPolicy", "networkpolicies"),
    ("crd.antrea.io", "v1beta1", "ClusterNetworkPolicy", "clusternetworkpolicies"),
    ("policy.networking.k8s.io", "v1alpha1", "AdminNetworkPolicy", "adminnetworkpolicies"),
    ("policy.networking.k8s.io", "v1alpha1", "BaselineAdminNetworkPolicy", "baselineadminnetworkpolicies"),
];

pub(super) async fn foreign(client: &Client) -> Looked<Vec<ForeignPolicy>> {
    // One call shows which of the groups the cluster has.
    let groups = match client.list_api_groups().await {
        Ok(list) => list.groups.into_iter().map(|group| group.name).collect(),
        // An API server without such a list is asked for each kind.
        Err(error) if is_not_there(&error) => KINDS.iter().map(|(group, ..)| (*group).to_owned()).collect(),
        Err(error) => return Err(said(error)),
    };
    let groups: BTreeSet<String> = groups;
    let mut policies = Vec::new();
    for of in KINDS {
        let (group, _, kind, _) = of;
        if groups.contains(group) {
            let objects = all_of(client, of).await?;
            policies.extend(objects.iter().map(|object| policy(object, group, kind)));
        }
    }
    Ok(policies)
}

fn policy(object: &DynamicObject, group: &str, kind: &str) -> ForeignPolicy {
    let spec = &object.data["spec"];
    let types: Vec<&str> = spec["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let says = |key: &str, deny: &str, kind: &str| {
        !spec[key].is_null()
            || !spec[deny].is_null()
            || types.contains(&kind)
            || object.data["specs"].is_array()
    };
    ForeignPolicy {
        kind: if kind == "NetworkPolicy" { format!("{kind}.{group}") } else { kind.to_owned() },
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone().unwrap_or_default(),
        labels: labels(&spec["endpointSelector"]["matchLabels"]),
        ingress: says("ingress", "ingressDeny", "Ingress"),
        egress: says("egress", "egressDeny", "Egress"),
    }
}

/// Returns the labels of a Cilium selector, without Cilium's own labels for the place of a pod.
fn labels(selector: &Value) -> BTreeMap<String, String> {
    let pairs = selector.as_object().into_iter().flatten();
    let plain = pairs.filter_map(|(key, value)| {
        let key = key.strip_prefix("k8s:").or_else(|| key.strip_prefix("any:")).unwrap_or(key);
        (!key.contains(':') && !key.starts_with("io."))
            .then(|| Some((key.to_owned(), value.as_str()?.to_owned())))?
    });
    plain.collect()
}

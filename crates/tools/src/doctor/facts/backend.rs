//! Gathers the application behind a Service: one of its pods, and the objects that configure it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use openstack_ccm_doctor::backend::is_object_name;
use openstack_ccm_doctor::facts::{BackendFacts, Container, CustomResource, Looked, NO_POD};

use super::reading::{all, all_of, is_not_there, said};
use super::workloads::containers;

/// The number of pods to list in search of a running one.
const MAX_PODS: u32 = 20;
/// Flags whose value is the ConfigMap of an ingress controller.
const MAP_FLAGS: [&str; 2] = ["configmap", "nginx-configmaps"];
/// ConfigMaps of a mesh, each with the part of an image or label that shows that the pod uses the mesh.
const MESH_MAPS: [(&str, &str, &str); 2] =
    [("proxyv2", "istio-system", "istio"), ("cilium.io", "kube-system", "cilium-config")];
/// Custom resources that configure a gateway, each with the part of an image or label that shows that the pod is the gateway.
const RESOURCES: [(&str, &str, &str, &str, &str); 3] = [
    ("envoy-gateway", "gateway.envoyproxy.io", "v1alpha1", "ClientTrafficPolicy", "clienttrafficpolicies"),
    ("nginx-gateway-fabric", "gateway.nginx.org", "v1alpha2", "NginxProxy", "nginxproxies"),
    ("envoyproxy/envoy", "projectcontour.io", "v1alpha1", "ContourConfiguration", "contourconfigurations"),
];

/// A cache of objects that configure applications, so that each is read once for many Services.
pub(super) struct Applications<'a> {
    client: &'a Client,
    /// All pods, read ahead where many Services are looked at.
    pods: Option<Looked<Vec<DynamicObject>>>,
    config_maps: BTreeMap<String, Option<Looked<BTreeMap<String, String>>>>,
    resources: BTreeMap<&'static str, Looked<Vec<DynamicObject>>>,
}

impl<'a> Applications<'a> {
    pub(super) async fn new(client: &'a Client, many: bool) -> Self {
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let pods = match many {
            true => Some(all(&Api::<DynamicObject>::all_with(client.clone(), &kind)).await.map_err(said)),
            false => None,
        };
        Self { client, pods, config_maps: BTreeMap::new(), resources: BTreeMap::new() }
    }

    /// Returns the application behind a Service.
    pub(super) async fn of(&mut self, service: &Service) -> Looked<BackendFacts> {
        let namespace = service.metadata.namespace.clone().unwrap_or_default();
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        let mut facts = if selector.is_empty() {
            // Another program writes the endpoints; Cilium marks its own Services by labels.
            BackendFacts {
                labels: service.metadata.labels.clone().unwrap_or_default(),
                ..BackendFacts::default()
            }
        } else {
            self.sample(&namespace, &selector).await?
        };
        let marks = marks(&facts);
        let has = |mark: &str| marks.iter().any(|one| one.contains(mark));
        let mesh = MESH_MAPS.into_iter().filter(|(mark, ..)| has(mark));
        let mesh = mesh.map(|(_, namespace, name)| format!("{namespace}/{name}"));
        for name in named_maps(&facts.containers, &namespace).into_iter().chain(mesh) {
            let data = self.config_map(&name).await;
            facts.config_maps.extend(data.map(|data| (name, data)));
        }
        for (mark, group, version, kind, plural) in RESOURCES {
            if !has(mark) {
                continue;
            }
            match self.resources(group, version, kind, plural).await {
                Ok(objects) => facts.resources.extend(objects.iter().map(|object| resource(object, kind))),
                Err(cause) => drop(facts.unread.insert(kind.to_owned(), cause)),
            }
        }
        Ok(facts)
    }

    async fn config_map(&mut self, name: &str) -> Option<Looked<BTreeMap<String, String>>> {
        if !self.config_maps.contains_key(name) {
            let data = config_map(self.client, name).await;
            self.config_maps.insert(name.to_owned(), data);
        }
        self.config_maps.get(name).cloned().flatten()
    }

    async fn resources(
        &mut self,
        group: &str,
        version: &str,
        kind: &'static str,
        plural: &str,
    ) -> Looked<Vec<DynamicObject>> {
        if !self.resources.contains_key(kind) {
            let read = all_of(self.client, &GroupVersionKind::gvk(group, version, kind), plural).await;
            self.resources.insert(kind, read);
        }
        self.resources.get(kind).cloned().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Returns a pod of the Service, a running one if there is one.
    async fn sample(&self, namespace: &str, selector: &BTreeMap<String, String>) -> Looked<BackendFacts> {
        let pods = match &self.pods {
            Some(pods) => {
                let fits = |pod: &&DynamicObject| {
                    let labels = pod.metadata.labels.as_ref();
                    pod.metadata.namespace.as_deref() == Some(namespace)
                        && selector
                            .iter()
                            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
                };
                pods.as_ref().map_err(Clone::clone)?.iter().filter(fits).cloned().collect()
            }
            None => some_pods(self.client, namespace, selector).await?,
        };
        let runs = |pod: &&DynamicObject| pod.data["status"]["phase"] == "Running";
        let Some(pod) = pods.iter().find(runs).or(pods.first()) else {
            return Err(NO_POD.to_owned());
        };
        Ok(BackendFacts {
            pod: format!("{namespace}/{}", pod.metadata.name.clone().unwrap_or_default()),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            annotations: pod.metadata.annotations.clone().unwrap_or_default(),
            containers: containers(&pod.data["spec"]),
            ..BackendFacts::default()
        })
    }
}

async fn some_pods(
    client: &Client,
    namespace: &str,
    selector: &BTreeMap<String, String>,
) -> Looked<Vec<DynamicObject>> {
    let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
    let pods = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind);
    let some = ListParams::default().labels(&labels.join(",")).limit(MAX_PODS);
    Ok(pods.list(&some).await.map_err(said)?.items)
}

/// Returns the images and labels by which programs are recognised.
fn marks(facts: &BackendFacts) -> Vec<String> {
    let images = facts.containers.iter().map(|container| container.image.clone());
    let labels = facts.labels.iter().map(|(key, value)| format!("{key}={value}"));
    images.chain(labels).collect()
}

/// Returns the ConfigMaps that flags name.
fn named_maps(containers: &[Container], namespace: &str) -> BTreeSet<String> {
    let words = containers.iter().flat_map(|container| &container.words);
    let value = |word: &String| {
        let (flag, value) = word.split_once('=')?;
        MAP_FLAGS.contains(&flag.trim_start_matches('-')).then(|| value.to_owned())
    };
    let named = words.filter_map(value).map(|name| match name.split_once('/') {
        // `$(POD_NAMESPACE)/ingress-nginx-controller`
        Some((variable, name)) if variable.starts_with('$') => format!("{namespace}/{name}"),
        Some(_) => name,
        None => format!("{namespace}/{name}"),
    });
    named.filter(|name| name.split('/').all(is_object_name)).collect()
}

/// Returns the data of a ConfigMap; absent where the ConfigMap does not exist.
async fn config_map(client: &Client, name: &str) -> Option<Looked<BTreeMap<String, String>>> {
    let (namespace, short) = name.split_once('/')?;
    match Api::<ConfigMap>::namespaced(client.clone(), namespace).get(short).await {
        Ok(map) => Some(Ok(map.data.unwrap_or_default())),
        Err(error) if is_not_there(&error) => None,
        Err(error) => Some(Err(said(error))),
    }
}

fn resource(object: &DynamicObject, kind: &'static str) -> CustomResource {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    CustomResource {
        kind,
        name: format!("{}/{}", part(&object.metadata.namespace), part(&object.metadata.name)),
        spec: object.data["spec"].clone(),
    }
}

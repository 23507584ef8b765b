//! Gathers the application behind a Service: its pods, and the objects that configure it. Each object is read once for many Services.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use openstack_ccm_doctor::backend::{config_maps, is_envoy_gateway};
use openstack_ccm_doctor::facts::{BackendFacts, CustomResource, Looked};
use tokio::sync::Mutex;

use super::cloud::READS;
use super::reading::{Named, all, all_of, is_not_there, said};

/// The number of pods to list for one Service.
const MAX_PODS: u32 = 500;
/// Custom resources that configure Envoy Gateway.
const RESOURCES: [Named; 2] = [
    ("gateway.networking.k8s.io", "v1", "Gateway", "gateways"),
    ("gateway.envoyproxy.io", "v1alpha1", "ClientTrafficPolicy", "clienttrafficpolicies"),
];

type Data = Looked<Option<BTreeMap<String, String>>>;

/// A cache of objects that configure applications.
pub(super) struct Applications<'a> {
    client: &'a Client,
    /// All pods, read ahead where many Services are looked at.
    pods: Option<Looked<Vec<Pod>>>,
    config_maps: Mutex<BTreeMap<String, Data>>,
    resources: Mutex<BTreeMap<&'static str, Looked<Vec<CustomResource>>>>,
}

impl<'a> Applications<'a> {
    pub(super) async fn new(client: &'a Client, many: bool) -> Self {
        let pods = match many {
            true => Some(all(&Api::<Pod>::all(client.clone())).await.map_err(said)),
            false => None,
        };
        Self { client, pods, config_maps: Mutex::default(), resources: Mutex::default() }
    }

    /// Returns the application behind a Service.
    pub(super) async fn of(
        &self,
        service: &Service,
        slices: &Looked<Vec<EndpointSlice>>,
    ) -> Looked<BackendFacts> {
        let namespace = service.metadata.namespace.clone().unwrap_or_default();
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        if selector.is_empty() {
            return Ok(BackendFacts::default());
        }
        let mut pods = self.pods(&namespace, &selector).await?;
        self.named(slices.as_deref().unwrap_or_default(), &mut pods).await;
        let mut facts = BackendFacts::default();
        for name in pods.iter().flat_map(config_maps) {
            let data = self.config_map(&name).await;
            facts.config_maps.insert(name, data);
        }
        if pods.iter().any(is_envoy_gateway) {
            for of in RESOURCES {
                facts.resources.insert(of.2, self.resources(of).await);
            }
        }
        facts.pods = pods;
        Ok(facts)
    }

    /// Reads pods that endpoints name, although the Service does not select them: slices may be older than labels.
    async fn named(&self, slices: &[EndpointSlice], pods: &mut Vec<Pod>) {
        let targets = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .filter_map(|one| one.target_ref.as_ref());
        let targets = targets.filter(|target| target.kind.as_deref() == Some("Pod"));
        for (namespace, name) in targets.filter_map(|one| one.namespace.as_ref().zip(one.name.as_ref())) {
            if pods.len() < MAX_PODS as usize
                && !pods.iter().any(|pod| pod.metadata.name.as_ref() == Some(name))
            {
                let read = Api::<Pod>::namespaced(self.client.clone(), namespace).get_opt(name).await;
                pods.extend(read.ok().flatten());
            }
        }
    }

    pub(super) async fn config_map(&self, name: &str) -> Data {
        let mut known = self.config_maps.lock().await;
        if let Some(data) = known.get(name) {
            return data.clone();
        }
        let data = config_map(self.client, name).await;
        known.insert(name.to_owned(), data.clone());
        data
    }

    async fn resources(&self, of: Named) -> Looked<Vec<CustomResource>> {
        let mut known = self.resources.lock().await;
        if let Some(read) = known.get(of.2) {
            return read.clone();
        }
        let read = all_of(self.client, of).await;
        let read = read.map(|mut objects| {
            // Of policies for the same listeners the oldest counts.
            objects.sort_by_key(|object| object.metadata.creation_timestamp.as_ref().map(|time| time.0));
            objects.into_iter().map(resource).collect::<Vec<_>>()
        });
        known.insert(of.2, read.clone());
        read
    }

    async fn pods(&self, namespace: &str, selector: &BTreeMap<String, String>) -> Looked<Vec<Pod>> {
        if let Some(pods) = &self.pods {
            let fits = |pod: &&Pod| {
                let labels = pod.metadata.labels.as_ref();
                let has = |(key, value): (&String, &String)| {
                    labels.and_then(|labels| labels.get(key)) == Some(value)
                };
                pod.metadata.namespace.as_deref() == Some(namespace) && selector.iter().all(has)
            };
            return Ok(pods.as_ref().map_err(Clone::clone)?.iter().filter(fits).cloned().collect());
        }
        let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let some = ListParams::default().labels(&labels.join(",")).limit(MAX_PODS);
        Ok(Api::<Pod>::namespaced(self.client.clone(), namespace).list(&some).await.map_err(said)?.items)
    }
}

/// Reads ConfigMaps, several at a time, without those that do not exist.
pub(super) async fn config_maps_of(
    client: &Client,
    names: impl IntoIterator<Item = String>,
) -> Vec<(String, Looked<BTreeMap<String, String>>)> {
    let read = |name: String| async move {
        let data = config_map(client, &name).await;
        data.transpose().map(|data| (name, data))
    };
    stream::iter(names).map(read).buffered(READS).filter_map(async |read| read).collect().await
}

/// Returns the data of a ConfigMap, if the ConfigMap exists.
async fn config_map(client: &Client, name: &str) -> Data {
    let (namespace, short) = name.split_once('/').unwrap_or(("", name));
    match Api::<ConfigMap>::namespaced(client.clone(), namespace).get(short).await {
        Ok(map) => Ok(Some(map.data.unwrap_or_default())),
        Err(error) if is_not_there(&error) => Ok(None),
        Err(error) => Err(said(error)),
    }
}

fn resource(object: DynamicObject) -> CustomResource {
    let spec = object.data["spec"].clone();
    CustomResource {
        namespace: object.metadata.namespace.unwrap_or_default(),
        name: object.metadata.name.unwrap_or_default(),
        labels: object.metadata.labels.unwrap_or_default(),
        spec,
    }
}

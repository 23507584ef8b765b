//! A canary for one measurement: makes the objects, waits, prints, cleans up.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, LogParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::objects::{Canary, ingress};
use openstack_ccm_canary::observed_pod::{ObservedPod, Waiting};
use openstack_ccm_canary::verdict::{Finding, Verdict};
use openstack_ccm_canary::{CONCLUSIVE, SUBJECT};
use openstack_ccm_manager::canary::FINDING;
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_manager::signals;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::args::{CanaryOutput, OnceArgs};
use super::rows::{Report, Row};
use crate::output::{Form, Progress, print};

/// Concurrent calls to the API server.
const MAX_CONCURRENT_CALLS: usize = 10;
/// How often the pods are read.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait until the namespace is gone.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60);
/// Selects the pods of service proxies, by the labels in their usual manifests.
const SERVICE_PROXIES: &str = "k8s-app in (kube-proxy,cilium,calico-node,kube-router)";

/// Measures, prints the report, and returns the exit code for the nodes.
pub(super) async fn look(arguments: &OnceArgs) -> anyhow::Result<ExitCode> {
    let report = report(arguments).await?;
    let text = match arguments.output {
        CanaryOutput::Table => report.table(),
        CanaryOutput::Json => Form::Json.document(&report)?,
        CanaryOutput::Yaml => Form::Yaml.document(&report)?,
    };
    print(text)?;
    Ok(report.exit_code())
}

async fn report(arguments: &OnceArgs) -> anyhow::Result<Report> {
    let client = arguments.person.client().await?;
    let image = match &arguments.image {
        Some(image) => image.clone(),
        None => image_in_use(&client).await?,
    };
    let (namespace, addresses) = (arguments.namespace.clone(), arguments.addresses.clone());
    let once = Once { canary: Canary { namespace, image, addresses }, client };
    once.make_namespace().await?;
    let stop = signals::stop_on_signals()?;
    let looked = tokio::select! {
        looked = once.look(arguments.timeout) => looked,
        () = stop.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    // The objects are removed, whatever the measurement found.
    let cleaned = once.clean_up().await;
    let report = looked?;
    cleaned?;
    Ok(report)
}

/// Returns the image of the controller of this cluster.
pub(crate) async fn image_in_use(client: &Client) -> anyhow::Result<String> {
    let pods =
        Api::<ObservedPod>::namespaced(client.clone(), "kube-system").list(&ListParams::default()).await;
    let pods = pods.context("the pods of kube-system, from which the image is taken, cannot be read")?;
    let containers = pods.items.into_iter().flat_map(|pod| pod.spec.containers);
    let program = |words: &Option<Vec<String>>| {
        words.as_ref().and_then(|words| words.first()).is_some_and(|word| word.ends_with("/openstack-ccm"))
    };
    let ours = containers.filter(|container| program(&container.args) || program(&container.command));
    ours.filter_map(|container| container.image).next().context(
        "no pod in kube-system runs openstack-ccm: specify an image that the nodes can pull with --image",
    )
}

struct Once {
    client: Client,
    canary: Canary,
}

impl Once {
    async fn make_namespace(&self) -> anyhow::Result<()> {
        let name = &self.canary.namespace;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        match namespaces.create(&PostParams::default(), &typed(self.canary.namespace())?).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "the namespace {name} exists: another measurement is running, or was interrupted; if none is running, clean up with \
                 kubectl delete namespace {name}"
            ),
            Err(error) => Err(error).context(format!("the namespace {name} cannot be created")),
        }
    }

    async fn look(&self, limit: Duration) -> anyhow::Result<Report> {
        let deadline = Instant::now() + limit;
        self.make_services().await?;
        self.make_policy().await;
        let nodes = Api::<Node>::all(self.client.clone()).list(&ListParams::default()).await;
        let nodes = nodes.context("the nodes cannot be read")?.items;
        let looked_at: Vec<String> =
            nodes.iter().filter(|node| excuse(node).is_none()).map(ResourceExt::name_any).collect();
        let made = self.make_pods(&looked_at).await?;
        let proxies = service_proxies(&self.client).await;
        let verdicts = self.wait(&looked_at, &made, deadline).await?;
        Ok(Report::new(nodes.iter().map(|node| row(node, &verdicts, &proxies)).collect()))
    }

    /// Makes both Services, with the status that a cloud would write.
    async fn make_services(&self) -> anyhow::Result<()> {
        let services = Api::<Service>::namespaced(self.client.clone(), &self.canary.namespace);
        for object in self.canary.services() {
            let service = services.create(&PostParams::default(), &typed(object)?).await;
            let service = service.context("a Service cannot be created")?;
            let name = service.metadata.name.clone().unwrap_or_default();
            let spec = service.spec.unwrap_or_default();
            let ips = spec.cluster_ips.unwrap_or_else(|| spec.cluster_ip.into_iter().collect());
            let entries = ingress(&name, &ips, &self.canary.addresses);
            anyhow::ensure!(
                !entries.is_empty(),
                "--addresses has no address of an IP family of this cluster ({})",
                ips.join(", ")
            );
            let entries: Vec<Value> =
                entries.iter().map(|(ip, mode)| json!({"ip": ip, "ipMode": mode})).collect();
            let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": entries}}}));
            let problem = || format!("the status of the Service {name} cannot be written");
            let answer = services.patch_status(&name, &PatchParams::default(), &patch).await;
            let answer = answer.with_context(problem)?;
            anyhow::ensure!(
                name != SUBJECT || keeps(&answer),
                "the API server drops ipMode (it is older than 1.29, or feature gate LoadBalancerIPMode is off), so kube-proxy cannot \
                 honour it"
            );
        }
        Ok(())
    }

    /// Makes the NetworkPolicy. A failure is only reported: the policy matters only where others deny by default.
    async fn make_policy(&self) {
        let policies = Api::<NetworkPolicy>::namespaced(self.client.clone(), &self.canary.namespace);
        let Ok(policy) = typed(self.canary.network_policy()) else { return };
        if let Err(error) = policies.create(&PostParams::default(), &policy).await {
            let error =
                anyhow::Error::new(error).context("the NetworkPolicy of the canary cannot be created");
            let _ = writeln!(std::io::stderr(), "{}", said_once(&error));
        }
    }

    /// Makes the pods and returns their uids: only these pods count.
    async fn make_pods(&self, nodes: &[String]) -> anyhow::Result<BTreeSet<String>> {
        // The pod is sent as a DynamicObject, so that the program holds no decoder for all fields of a pod.
        let kind = &ApiResource::erase::<ObservedPod>(&());
        let pods = &Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.canary.namespace, kind);
        let token = &uuid::Uuid::new_v4().to_string();
        let make = |node: String| async move {
            let pod = typed(self.canary.pod(&node, token))?;
            let made = pods.create(&PostParams::default(), &pod).await;
            made.with_context(|| format!("no pod can be created on the node {node}"))
        };
        let mut made = stream::iter(nodes.iter().cloned()).map(make).buffer_unordered(MAX_CONCURRENT_CALLS);
        let mut uids = BTreeSet::new();
        while let Some(pod) = made.next().await {
            uids.extend(pod?.metadata.uid);
        }
        Ok(uids)
    }

    /// Returns the verdicts by node, as soon as all are there, or else those that are there at the deadline.
    async fn wait(
        &self,
        nodes: &[String],
        made: &BTreeSet<String>,
        deadline: Instant,
    ) -> anyhow::Result<BTreeMap<String, (Verdict, String)>> {
        let api = Api::<ObservedPod>::namespaced(self.client.clone(), &self.canary.namespace);
        let mut before = BTreeMap::new();
        let mut progress = Progress::new();
        loop {
            let mut pods = api.list(&ListParams::default()).await.context("the pods cannot be read")?.items;
            pods.retain(|pod| pod.metadata.uid.as_ref().is_some_and(|uid| made.contains(uid)));
            let carried: BTreeMap<String, Option<Carried>> =
                pods.iter().map(|pod| (pod.node().to_owned(), Carried::of_pod(pod))).collect();
            let is_measured = |node: &&String| carried.get(*node).is_some_and(Option::is_some);
            let measured = nodes.iter().filter(is_measured).count();
            let all = measured == nodes.len();
            progress.report(format_args!(
                "{measured} of {} nodes measured, at most {} s more",
                nodes.len(),
                deadline.saturating_duration_since(Instant::now()).as_secs()
            ));
            // The readiness of two containers does not change at the same moment: only a result that persists counts.
            if (all && carried == before) || Instant::now() >= deadline {
                return Ok(self.findings(&pods).await);
            }
            before = carried;
            let pause = if all { POLL_INTERVAL * 10 } else { POLL_INTERVAL };
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Returns the verdict of each pod, with the finding in its log if it can be read.
    async fn findings(&self, pods: &[ObservedPod]) -> BTreeMap<String, (Verdict, String)> {
        let look = |pod: ObservedPod| async move {
            let carried = Carried::of_pod(&pod);
            let verdict = carried.map_or(Verdict::Unknown, Carried::verdict);
            let reason = match finding(&self.client, &pod).await {
                Some(finding) if carried.is_none() || finding.verdict() == verdict => {
                    finding.text().to_owned()
                }
                _ => carried.map_or_else(|| trouble(&pod), |carried| carried.text().to_owned()),
            };
            (pod.node().to_owned(), (verdict, reason))
        };
        stream::iter(pods.to_vec()).map(look).buffer_unordered(MAX_CONCURRENT_CALLS).collect().await
    }

    async fn clean_up(&self) -> anyhow::Result<()> {
        let name = &self.canary.namespace;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let left = || {
            format!("the namespace {name} cannot be removed; remove it with kubectl delete namespace {name}")
        };
        namespaces.delete(name, &DeleteParams::default()).await.with_context(left)?;
        let deadline = Instant::now() + CLEANUP_TIMEOUT;
        while namespaces.get_opt(name).await.with_context(left)?.is_some() {
            if Instant::now() >= deadline {
                let _ = writeln!(std::io::stderr(), "the namespace {name} is still being deleted");
                break;
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn typed<T: DeserializeOwned>(object: Value) -> anyhow::Result<T> {
    serde_json::from_value(object).context("an object of the canary is not valid for Kubernetes")
}

fn keeps(subject: &Service) -> bool {
    let status = subject.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let entries = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    !entries.is_empty() && entries.iter().all(|entry| entry.ip_mode.as_deref() == Some("Proxy"))
}

/// Returns why no canary pod can run on a node.
pub(crate) fn excuse(node: &Node) -> Option<&'static str> {
    let label =
        |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    if label("kubernetes.io/os").is_some_and(|os| os != "linux") {
        return Some("the canary has no program for this operating system");
    }
    if matches!(label("type"), Some("virtual-kubelet" | "kwok")) {
        return Some("no service proxy runs on a virtual node");
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let silent =
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "Unknown");
    silent.then_some("its kubelet has not reported yet")
}

/// Returns why a pod has no verdict.
fn trouble(pod: &ObservedPod) -> String {
    let statuses = pod.status.container_statuses.as_deref().unwrap_or_default();
    let waiting = statuses.iter().find_map(|status| status.state.waiting.as_ref());
    match (waiting, pod.status.phase.as_deref()) {
        (Some(Waiting { reason, message }), _) => {
            format!("its pod does not run: {reason} {message}").trim_end().to_owned()
        }
        (None, Some("Running")) => "its pod has no verdict yet".to_owned(),
        (None, phase) => format!("its pod does not run: it is {}", phase.unwrap_or("not seen by a kubelet")),
    }
}

/// Returns the last finding in the log of a pod.
async fn finding(client: &Client, pod: &ObservedPod) -> Option<Finding> {
    let parameters =
        LogParams { container: Some(CONCLUSIVE.to_owned()), tail_lines: Some(20), ..LogParams::default() };
    let namespace = pod.metadata.namespace.as_deref()?;
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    let log = api.logs(pod.metadata.name.as_deref()?, &parameters).await.ok()?;
    log.lines().rev().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        serde_json::from_value(line.get(FINDING)?.clone()).ok()
    })
}

/// Returns the images of the service proxies by node; empty where the user may not read pods of other namespaces.
async fn service_proxies(client: &Client) -> BTreeMap<String, String> {
    let mut proxies = BTreeMap::<String, String>::new();
    let parameters = ListParams::default().labels(SERVICE_PROXIES);
    let pods = Api::<ObservedPod>::all(client.clone()).list(&parameters).await;
    for pod in pods.map(|pods| pods.items).unwrap_or_default() {
        if let Some(image) = pod.spec.containers.first().and_then(|one| one.image.as_deref()) {
            let short = image.rsplit('/').next().unwrap_or(image).split('@').next().unwrap_or_default();
            let all = proxies.entry(pod.node().to_owned()).or_default();
            *all = if all.is_empty() { short.to_owned() } else { format!("{all},{short}") };
        }
    }
    proxies
}

fn row(
    node: &Node,
    verdicts: &BTreeMap<String, (Verdict, String)>,
    proxies: &BTreeMap<String, String>,
) -> Row {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let name = node.name_any();
    let none = || (Verdict::Unknown, excuse(node).unwrap_or("its pod was deleted").to_owned());
    let (verdict, reason) = verdicts.get(&name).cloned().unwrap_or_else(none);
    Row {
        service_proxy: proxies.get(&name).cloned().unwrap_or_default(),
        kubelet: info.map(|info| info.kubelet_version.clone()).unwrap_or_default(),
        node: name,
        verdict,
        reason,
    }
}

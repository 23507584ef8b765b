//! `--live`: a short-lived pod on each node dials the load balancers, with the protocol that their ports expect; several pods, if
//! there are many load balancers.
//!
//! The pods have no token and no privilege. The pods and their namespace are removed, whatever happens.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use openstack_ccm_doctor::facts::entries;
use openstack_ccm_manager::dial::{Dial, DialResult, Speech, Written, portions};
use openstack_ccm_manager::signals;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::args::WalkArgs;
use super::facts::Gathered;
use openstack_ccm_canary::objects::USER_ID;

use crate::canary::{POLL_INTERVAL, excuse, image_in_use};

/// The namespace of the pods, which this module creates and removes.
const NAMESPACE: &str = "openstack-ccm-doctor";
/// The most ports of one Service to dial; more would show nothing new.
const MAX_PORTS: usize = 10;

/// Dials from every node, and adds the results to the facts.
///
/// # Errors
/// The user did not agree; or the pods could not be created, or not removed.
pub(super) async fn dial(
    client: &Client,
    arguments: &WalkArgs,
    gathered: &mut Gathered,
) -> anyhow::Result<()> {
    let targets: Vec<String> = gathered.services.iter().flat_map(|facts| targets(&facts.service)).collect();
    if targets.is_empty() {
        return Ok(());
    }
    let image = match &arguments.image {
        Some(image) => image.clone(),
        None => image_in_use(client).await?,
    };
    agree(arguments)?;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
    let nodes = nodes.context("the nodes cannot be read")?.items;
    make_namespace(client).await?;
    let stop = signals::stop_on_signals()?;
    let dialled = tokio::select! {
        dialled = all(client, arguments, &nodes, &image, &targets) => dialled,
        () = stop.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    // The namespace is removed, whatever the dials found.
    let left = || {
        format!(
            "the namespace {NAMESPACE} cannot be removed; remove it with kubectl delete namespace {NAMESPACE}"
        )
    };
    let cleaned = Api::<Namespace>::all(client.clone()).delete(NAMESPACE, &DeleteParams::default()).await;
    let dialled = match (dialled, cleaned) {
        (Ok(dialled), Ok(_)) => dialled,
        (Ok(_), Err(error)) => return Err(error).with_context(left),
        (Err(cause), Ok(_)) => return Err(cause),
        (Err(cause), Err(error)) => return Err(cause.context(format!("{}: {error}", left()))),
    };
    for facts in &mut gathered.services {
        let wanted: Vec<String> = targets_without_speech(&facts.service);
        let of_service = dialled.iter().filter(|dial| dial.to.is_empty() || wanted.contains(&dial.to));
        facts.dials = Some(of_service.cloned().collect());
    }
    Ok(())
}

fn agree(arguments: &WalkArgs) -> anyhow::Result<()> {
    if arguments.yes {
        return Ok(());
    }
    anyhow::ensure!(std::io::stdin().is_terminal(), "--live creates pods: confirm with --yes");
    let question =
        format!("Create the namespace {NAMESPACE} with one short pod on each node, and remove it? [y/N] ");
    let _ = write!(std::io::stderr(), "{question}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("standard input cannot be read")?;
    anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "not agreed to");
    Ok(())
}

/// Returns what to dial for a Service: `203.0.113.10:443=tls`.
fn targets(service: &Service) -> Vec<String> {
    let places = entries(service).iter().filter_map(|entry| entry.ip.as_ref().or(entry.hostname.as_ref()));
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let ports = ports.iter().filter(|port| port.protocol.as_deref().is_none_or(|one| one == "TCP"));
    let ports: Vec<(u16, Speech)> = ports
        .filter_map(|port| {
            let number = u16::try_from(port.port).ok()?;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Some((number, Speech::of(number, &text(&port.name), &text(&port.app_protocol))))
        })
        .take(MAX_PORTS)
        .collect();
    let mut targets = Vec::new();
    for place in places {
        let place = if place.contains(':') { format!("[{place}]") } else { place.clone() };
        targets.extend(ports.iter().map(|(port, speech)| format!("{place}:{port}={}", speech.as_str())));
    }
    targets
}

fn targets_without_speech(service: &Service) -> Vec<String> {
    let bare = |target: String| target.rsplit_once('=').map_or(target.clone(), |(place, _)| place.to_owned());
    targets(service).into_iter().map(bare).collect()
}

async fn make_namespace(client: &Client) -> anyhow::Result<()> {
    let labels: BTreeMap<String, &str> = ["enforce", "audit", "warn"]
        .map(|mode| (format!("pod-security.kubernetes.io/{mode}"), "restricted"))
        .into();
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE, "labels": labels}}))?;
    match Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => bail!(
            "the namespace {NAMESPACE} exists: another check is running, or was interrupted; if none is running, clean up with kubectl \
             delete namespace {NAMESPACE}"
        ),
        Err(error) => Err(error).context(format!("the namespace {NAMESPACE} cannot be created")),
    }
}

async fn all(
    client: &Client,
    arguments: &WalkArgs,
    nodes: &[Node],
    image: &str,
    targets: &[String],
) -> anyhow::Result<Vec<Dial>> {
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
    let pods = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &kind);
    let deadline = Instant::now() + arguments.live_timeout;
    let mut dials = Vec::new();
    let mut expected = 0;
    for node in nodes {
        if let Some(excuse) = excuse(node) {
            dials.push(not_dialled(&node.name_any(), excuse));
            continue;
        }
        for portion in portions(targets) {
            let made = create(&pods, &serde_json::from_value(pod(node, image, portion))?, deadline).await;
            made.with_context(|| format!("no pod can be created on the node {}", node.name_any()))?;
            expected += 1;
        }
    }
    loop {
        let seen = pods.list(&ListParams::default()).await.context("the pods cannot be read")?.items;
        let ended = seen.iter().filter(|pod| is_over(pod)).count();
        if ended >= expected || Instant::now() >= deadline {
            dials.extend(seen.iter().flat_map(dialled));
            return Ok(dials);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Creates a pod. The API server refuses it until a controller has made the namespace's ServiceAccount, so that is retried.
async fn create(pods: &Api<DynamicObject>, pod: &DynamicObject, deadline: Instant) -> kube::Result<()> {
    loop {
        match pods.create(&PostParams::default(), pod).await {
            Err(kube::Error::Api(status))
                if status.code == 403
                    && status.message.contains("service account")
                    && Instant::now() < deadline =>
            {
                sleep(POLL_INTERVAL).await;
            }
            made => return made.map(drop),
        }
    }
}

fn is_over(pod: &DynamicObject) -> bool {
    matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn not_dialled(node: &str, cause: &str) -> Dial {
    Dial {
        node: node.to_owned(),
        to: String::new(),
        result: DialResult::NotDialled(cause.to_owned()),
        milliseconds: 0,
        source: String::new(),
    }
}

/// Parses the dials in the termination message of a pod.
fn dialled(pod: &DynamicObject) -> Vec<Dial> {
    let node = pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
    let state = &pod.data["status"]["containerStatuses"][0]["state"];
    let message = state["terminated"]["message"].as_str();
    let written: Option<Vec<Written>> = message.and_then(|message| serde_json::from_str(message).ok());
    match written {
        Some(written) => written.into_iter().map(|one| one.on(node)).collect(),
        None => {
            let waiting = state["waiting"]["reason"].as_str();
            let ended = state["terminated"]["reason"].as_str();
            let phase = pod.data["status"]["phase"].as_str();
            let cause = waiting.or(ended).or(phase).unwrap_or("no kubelet has seen it");
            vec![not_dialled(node, &format!("its pod reported nothing ({cause})"))]
        }
    }
}

fn pod(node: &Node, image: &str, targets: &[String]) -> Value {
    let name = node.name_any();
    let mut arguments =
        vec![json!("/bin/openstack-ccm"), json!("doctor"), json!("dial"), json!("--node-ips=$(HOST_IPS)")];
    arguments.extend(targets.iter().map(|target| json!(target)));
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "doctor-", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": NAMESPACE}},
        "spec": {
            "nodeName": name,
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER_ID, "runAsGroup": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "dial",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "args": arguments,
                "env": [{"name": "HOST_IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
                "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

//! `openstack-ccm status`: shows the leader, its version and controllers, whether the nodes honour `ipMode: Proxy`, and how the
//! load balancers of the cluster are published. It reads the Lease, Nodes, Services and Pods with the rights of the user; a part
//! without rights is reported and left out.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `leader` | the leader, by the Lease |
//! | `nodes` | versions, and the verdicts on service proxies |
//! | `publication` | how the Services are published |

pub mod args;
mod leader;
pub(crate) mod nodes;
mod publication;

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use openstack_ccm_advertise::canary::pods_of_canary;
use openstack_ccm_advertise::node::{NodeVerdict, Verdict};
use openstack_ccm_canary::observed_pod::ObservedPod;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::ControllerFact;
use openstack_ccm_manager::args::LeaseArgs;
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_manager::leadership::LeaderRecord;
use serde_json::{Value, json};

use crate::output::{Form, print};
use args::StatusArgs;
use leader::LeaseHolder;
use publication::Publication;

/// Returns whether a holder of the Lease renews it.
pub(crate) async fn is_at_work(client: &Client, lease: &LeaseArgs) -> anyhow::Result<bool> {
    Ok(leader(client, lease).await?.is_some_and(|leader| leader.works()))
}

/// Returns what the leader publishes about itself.
pub(crate) async fn record(client: &Client, lease: &LeaseArgs) -> anyhow::Result<Option<LeaderRecord>> {
    Ok(leader(client, lease).await?.and_then(LeaseHolder::into_record))
}

/// Returns the leader's pod.
///
/// # Errors
/// There is no leader, or its pod cannot be read.
pub(crate) async fn pod(client: &Client, lease: &LeaseArgs) -> anyhow::Result<Pod> {
    let LeaseArgs { leader_elect_resource_namespace: namespace, leader_elect_resource_name: name } = lease;
    let leader = leader(client, lease).await?;
    let host = leader.as_ref().and_then(LeaseHolder::host);
    let host = host.with_context(|| format!("nobody holds the Lease {namespace}/{name}"))?;
    let pods = Api::<ObservedPod>::namespaced(client.clone(), namespace);
    let found =
        leader::pod(&pods, host).await.with_context(|| format!("the pods in {namespace} cannot be read"))?;
    let (pod, _) = found.with_context(|| format!("no pod in {namespace} is that of the leader {host}"))?;
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    pods.get(&pod).await.with_context(|| format!("the pod {namespace}/{pod} cannot be read"))
}

/// How long to wait for a renewal by a leader whose clock may be behind.
const RENEWAL: Duration = Duration::from_secs(3);

/// Returns the facts about the leader for doctor.
pub(crate) async fn controller(
    client: &Client,
    lease: &LeaseArgs,
    cluster_name: &str,
) -> anyhow::Result<ControllerFact> {
    let LeaseArgs { leader_elect_resource_namespace: namespace, leader_elect_resource_name: name } = lease;
    let others = others(client, namespace, name).await.map_err(unreadable);
    let title = format!("{namespace}/{name}");
    Ok(match leader(client, lease).await? {
        Some(found) => {
            let mut fact = found.fact(title, cluster_name, others);
            if fact.holder.is_some() && !fact.works {
                tokio::time::sleep(RENEWAL).await;
                fact.works = leader(client, lease).await?.is_some_and(|again| again.is_renewed_since(&found));
                if fact.works {
                    fact.text.push_str("; renewed while doctor looked: its clock is behind");
                }
            }
            fact
        }
        None => ControllerFact {
            lease: title,
            holder: None,
            works: false,
            since: None,
            text: "there is no Lease".to_owned(),
            program: None,
            manager: None,
            cluster: None,
            given_cluster: cluster_name.to_owned(),
            others,
        },
    })
}

/// Lists the other Leases of a namespace that this program holds and renews.
async fn others(client: &Client, namespace: &str, own: &str) -> kube::Result<Vec<String>> {
    let leases = Api::<Lease>::namespaced(client.clone(), namespace).list(&ListParams::default()).await?;
    let now = Timestamp::now();
    let others = leases.items.iter().filter(|lease| lease.metadata.name.as_deref() != Some(own));
    Ok(others.filter_map(|lease| LeaseHolder::of(lease, now).as_other(lease)).collect())
}

async fn leader(client: &Client, lease: &LeaseArgs) -> anyhow::Result<Option<LeaseHolder>> {
    let (namespace, name) = (&lease.leader_elect_resource_namespace, &lease.leader_elect_resource_name);
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(name).await;
    let lease = lease.with_context(|| format!("the Lease {namespace}/{name} cannot be read"))?;
    Ok(lease.map(|lease| LeaseHolder::of(&lease, Timestamp::now())))
}

/// Writes the status to standard output.
///
/// # Errors
/// There is no leader, the Lease cannot be read, or standard output is closed.
pub async fn run(arguments: &StatusArgs) -> anyhow::Result<()> {
    let client = arguments.person.client().await?;
    let status = Status::read(&client, arguments).await?;
    match arguments.output {
        Form::Text => print(status.text(&arguments.lease))?,
        form => print(form.document(&status.json())?)?,
    }
    let leader = status.leader.as_ref();
    let without_pod =
        leader.is_none_or(|leader| leader.host().is_none()) || matches!(status.pod, Some(Ok(None)));
    let where_to_look = if without_pod {
        "where no pod of openstack-ccm runs, start one; else its log and /readyz?verbose say why it does not lead"
    } else {
        "see the log and /readyz?verbose of a pod for the reason"
    };
    anyhow::ensure!(leader.is_some_and(LeaseHolder::works), "no leader: {where_to_look}");
    Ok(())
}

/// A value that was read, or why the user's rights do not allow that.
type Read<T> = Result<T, String>;

/// The complete status.
struct Status {
    leader: Option<LeaseHolder>,
    /// Name and node of the leader's pod.
    pod: Option<Read<Option<(String, String)>>>,
    api_server: Read<String>,
    nodes: Read<Vec<Node>>,
    verdicts: Vec<(String, NodeVerdict)>,
    /// Why the pods of the canary could not be read.
    canary: Option<String>,
    services: Read<Vec<Publication>>,
}

impl Status {
    async fn read(client: &Client, arguments: &StatusArgs) -> anyhow::Result<Self> {
        let namespace = &arguments.lease.leader_elect_resource_namespace;
        let leader = leader(client, &arguments.lease).await?;
        let pod = match leader.as_ref().and_then(LeaseHolder::host) {
            None => None,
            Some(host) => {
                let pods = Api::<ObservedPod>::namespaced(client.clone(), namespace);
                Some(leader::pod(&pods, host).await.map_err(unreadable))
            }
        };
        let api_server = client.apiserver_version().await.map(|version| version.git_version);
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
        let nodes = nodes.map(|nodes| nodes.items).map_err(unreadable);
        let (pods, canary) = canary(client, &arguments.canary_namespace).await;
        let known = nodes.as_deref().unwrap_or_default();
        let verdicts = nodes::verdicts(known, &pods, Timestamp::now());
        let services = Api::<Service>::all(client.clone()).list(&ListParams::default()).await;
        let mut services = services.map(|services| Publication::of_all(&services.items)).map_err(unreadable);
        note_waits(client, services.as_deref_mut().unwrap_or_default()).await;
        Ok(Self {
            leader,
            pod,
            api_server: api_server.map_err(unreadable),
            nodes,
            verdicts,
            canary,
            services,
        })
    }

    fn text(&self, lease: &LeaseArgs) -> String {
        let LeaseArgs { leader_elect_resource_namespace: namespace, leader_elect_resource_name: name } =
            lease;
        let mut lines: Vec<(&str, String)> = Vec::new();
        match &self.leader {
            None => lines.push(("Leader", format!("none: the Lease {namespace}/{name} does not exist"))),
            Some(leader) => {
                lines.push(("Leader", leader.to_string()));
                match (&self.pod, leader.host()) {
                    (Some(Ok(Some((pod, node)))), _) => {
                        lines.push(("Pod", format!("{namespace}/{pod} on node {node}")));
                        lines.push(("Log", format!("kubectl -n {namespace} logs {pod}")));
                    }
                    (Some(Ok(None)), Some(host)) => {
                        lines.push(("Pod", format!("none in {namespace} for the host {host}")));
                    }
                    (Some(Err(problem)), _) => lines.push(("Pod", problem.clone())),
                    (Some(Ok(None)) | None, _) => {}
                }
                lines.push(("Version", leader.version()));
                lines.push(("Controllers", leader.controllers()));
                let not_known = || "not known".to_owned();
                lines.push(("Cluster name", leader.cluster().map_or_else(not_known, str::to_owned)));
                let region = leader.region().map(str::to_owned);
                let without = || {
                    if leader.cluster().is_some() { "none in cloud.conf".to_owned() } else { not_known() }
                };
                lines.push(("Region", region.unwrap_or_else(without)));
                if !leader.missing().is_empty() {
                    lines.push(("Cloud lacks", leader.missing().join(", ")));
                }
            }
        }
        let or_problem = |read: &Read<String>| read.as_ref().unwrap_or_else(|problem| problem).clone();
        lines.push(("API server", or_problem(&self.api_server)));
        match &self.nodes {
            Err(problem) => lines.push(("Nodes", problem.clone())),
            Ok(nodes) => {
                lines.push(("Nodes", nodes::versions(nodes)));
                lines.push(("ipMode Proxy", nodes::summary(&self.verdicts)));
                let more = nodes::unfit(&self.verdicts).into_iter().chain(self.canary.clone());
                lines.extend(more.map(|more| ("", more)));
            }
        }
        match &self.services {
            Err(problem) => lines.push(("Services", problem.clone())),
            Ok(publications) => {
                lines.push(("Services", publication::summary(publications)));
                let waiting = publications.iter().filter(|publication| publication.is_waiting());
                lines.extend(waiting.map(|waiting| {
                    let ServiceKey { namespace, name } = &waiting.name;
                    let see = || format!("kubectl -n {namespace} describe service {name}");
                    let why = waiting.waits_for.clone().unwrap_or_else(see);
                    ("", format!("{namespace}/{name} has no address yet: {why}"))
                }));
            }
        }
        lines.iter().map(|(what, text)| format!("{what:<12} {text}\n")).collect()
    }

    fn json(&self) -> Value {
        let services =
            self.services.as_ref().map(|all| all.iter().map(Publication::json).collect::<Vec<_>>());
        let verdict = |(node, verdict): &(String, NodeVerdict)| json!({"name": node, "honours_ip_mode": verdict.verdict == Verdict::Fit, "source": verdict.source.as_str()});
        json!({
            "version": 1,
            "leader": self.leader.as_ref().map(LeaseHolder::json),
            "api_server": self.api_server.as_ref().ok(),
            "nodes": self.nodes.is_ok().then(|| self.verdicts.iter().map(verdict).collect::<Vec<_>>()),
            "services": services.ok(),
        })
    }
}

/// Notes what Services without an address wait for. If the Events cannot be read, the status is complete without them.
async fn note_waits(client: &Client, services: &mut [Publication]) {
    let mut waiting: Vec<&mut Publication> = services.iter_mut().filter(|one| one.is_waiting()).collect();
    if waiting.is_empty() {
        return;
    }
    let of_services = ListParams::default().fields("involvedObject.kind=Service");
    if let Ok(events) = Api::<Event>::all(client.clone()).list(&of_services).await {
        waiting.iter_mut().for_each(|one| one.note_wait(&events.items));
    }
}

/// Returns the pods of the canary, which carry its verdicts (none without a canary), and why they cannot be read, if so.
async fn canary(client: &Client, namespace: &str) -> (Vec<ObservedPod>, Option<String>) {
    if namespace.is_empty() {
        return (Vec::new(), None);
    }
    match pods_of_canary(client, namespace).await {
        Ok(pods) => (pods, None),
        Err(error) => (Vec::new(), Some(format!("the canary's pods in {namespace}: {}", unreadable(error)))),
    }
}

fn unreadable(error: kube::Error) -> String {
    format!("cannot be read: {}", said_once(&anyhow::Error::new(error)))
}

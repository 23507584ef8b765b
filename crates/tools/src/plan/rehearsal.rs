//! Runs the controllers dry, and collects the results.

use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::dry_run::{Concluded, End};
use openstack_ccm_controllers::service::ServiceController;
use openstack_ccm_core::cloud::Cloud;
use openstack_ccm_core::permit::Fence;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_manager::kubernetes::ControllerClients;
use openstack_ccm_manager::program::{DryRun, Program, ProgramOptions};
use openstack_ccm_provider_openstack::load_balancer::annotations::LOAD_BALANCER_ID;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::changes::entries;
use super::journal::{Call, Journal, Seen};

/// The parts of a dry run. Neither clients nor cloud write anything; both record their writes in the journal.
pub struct Stage {
    /// The Kubernetes API.
    pub clients: ControllerClients,
    pub cloud: Arc<dyn Cloud>,
    /// The uid of the namespace kube-system, which identifies the cluster.
    pub cluster_uid: String,
    /// The options of the planned controllers.
    pub options: ProgramOptions,
    /// The recorded writes.
    pub journal: Arc<Journal>,
}

/// The Services to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All Services that the controller serves or releases.
    All,
    /// These Services.
    Named(Vec<ServiceKey>),
    /// The Services of this namespace.
    In(String),
}

/// The subject of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Service(ServiceKey),
    /// New nodes, and addresses of nodes.
    Nodes,
    /// Nodes that are shut down or gone.
    NodeLifecycle,
    /// Routes to pods.
    Routes,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(key) => key.fmt(f),
            Self::Nodes => f.write_str("nodes"),
            Self::NodeLifecycle => f.write_str("nodes that are shut down or gone"),
            Self::Routes => f.write_str("routes"),
        }
    }
}

/// The result of a dry run for one subject.
#[derive(Clone, Debug)]
pub struct Item {
    pub subject: Subject,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The objects that were read.
    pub seen: Seen,
    /// The outcome of the reconciliation.
    pub concluded: Concluded,
    /// The published entries of a Service.
    pub published: Vec<String>,
    /// Whether the load balancer and the floating IP of a Service will get ownership tags. The controller adds these later, one
    /// Service after the other, so the calls do not include them.
    pub awaits_identity_tags: bool,
    /// Members that would be removed from pools of the Service, each with the reason.
    pub removed_members: Vec<String>,
    /// The load balancer that an annotation of the Service names.
    pub named: Option<String>,
}

/// The complete result of a dry run.
#[derive(Clone, Debug)]
pub struct DryRunResult {
    /// The results for all subjects.
    pub items: Vec<Item>,
    /// The number of nodes in the cluster.
    pub nodes: usize,
}

impl Item {
    fn new(subject: Subject, journal: &Journal, concluded: Concluded) -> Self {
        let (calls, seen) = journal.take();
        Self {
            subject,
            calls,
            seen,
            concluded,
            published: Vec::new(),
            awaits_identity_tags: false,
            removed_members: Vec::new(),
            named: None,
        }
    }
}

/// Runs everything dry: first the nodes, because load balancers depend on them, then one Service after the other. Calls `progress`
/// after each with the number done and the total.
///
/// # Errors
/// The nodes or the Services cannot be listed; a named Service does not exist, or is not this controller's.
pub async fn rehearse(
    stage: Stage,
    chosen: &Chosen,
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<DryRunResult> {
    let Stage { clients, cloud, cluster_uid, options, journal } = stage;
    let mut registry = Registry::default();
    let work_queues = WorkQueues::registered(&mut registry);
    let lead = Fence::always();
    let program =
        Program::new(&clients, cloud.as_ref(), cluster_uid, options, lead, &mut registry, &work_queues);
    let DryRun { nodes, service, route, node, node_lifecycle } = program.into_dry_run();
    nodes.list().await.context("the Nodes of the cluster cannot be listed")?;

    let mut items = Vec::new();
    let mut item =
        |subject: Subject, concluded: Concluded| items.push(Item::new(subject, &journal, concluded));
    if let Some(node) = node {
        item(Subject::Nodes, node.dry_run().await);
    }
    if let Some(lifecycle) = node_lifecycle {
        item(Subject::NodeLifecycle, lifecycle.dry_run().await);
    }
    // Routes and load balancers depend on the nodes as they would be after their dry run.
    nodes.list().await.context("the Nodes of the cluster cannot be listed")?;
    let count = nodes.count();
    if let Some(route) = route {
        item(Subject::Routes, route.dry_run().await);
    }
    if let Some((controller, load_balancers)) = service {
        load_balancers.begin_dry_run();
        let mut of_services = services(controller, chosen, &journal, &mut progress).await?;
        let awaiting = load_balancers.awaiting_identity_tags();
        for item in &mut of_services {
            let Subject::Service(key) = &item.subject else { continue };
            item.awaits_identity_tags = awaiting.contains(key);
            item.removed_members = load_balancers.removed_members(key);
        }
        items.append(&mut of_services);
    }
    let troubles = journal.take_troubles();
    anyhow::ensure!(troubles.is_empty(), "the plan would be incorrect: {}", troubles.join("; "));
    Ok(DryRunResult { items, nodes: count })
}

async fn services(
    mut service: ServiceController,
    chosen: &Chosen,
    journal: &Journal,
    progress: &mut impl FnMut(usize, usize),
) -> anyhow::Result<Vec<Item>> {
    let concerned = service.list().await.context("the Services of the cluster cannot be listed")?;
    let keys = match chosen {
        Chosen::All => concerned,
        Chosen::In(namespace) => concerned.into_iter().filter(|key| *key.namespace == **namespace).collect(),
        Chosen::Named(named) => {
            for key in named {
                anyhow::ensure!(
                    concerned.contains(key),
                    "this controller serves no Service {key} of type LoadBalancer: check the Service's name, type and loadBalancerClass"
                );
            }
            named.clone()
        }
    };
    let mut items: Vec<Item> = Vec::new();
    for (done, key) in keys.iter().enumerate() {
        progress(done, keys.len());
        let object = service.object(key);
        let status = object.as_ref().and_then(|object| object.status.as_ref()?.load_balancer.as_ref());
        let published = status.map(|status| entries(&json!(status.ingress))).unwrap_or_default();
        let annotations = object.as_ref().and_then(|object| object.metadata.annotations.as_ref());
        let named = annotations.and_then(|all| all.get(LOAD_BALANCER_ID.key)).cloned();
        let concluded = service.converge(key, || journal.count()).await;
        let mut item = Item::new(Subject::Service(key.clone()), journal, concluded);
        item.published = published;
        item.named = named;
        items.push(item);
    }
    progress(keys.len(), keys.len());
    // Services with the same address agree on its mode, so the plan for one may change another.
    for key in service.woken() {
        let Some(item) = items.iter_mut().find(|item| item.subject == Subject::Service(key.clone())) else {
            continue;
        };
        let again = service.converge(&key, || journal.count()).await;
        item.calls.extend(journal.take().0);
        item.concluded.events.extend(again.events);
        if item.concluded.end == End::Done {
            item.concluded.end = again.end;
        }
    }
    Ok(items)
}

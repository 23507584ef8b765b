//! What a leader runs: the controllers over the cloud. All dependencies are passed in, so that tests run it whole, and
//! plans run it dry.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use openstack_ccm_controllers::node::{NodeController, NodeControllerOptions};
use openstack_ccm_controllers::node_lifecycle::{NodeLifecycleController, NodeLifecycleOptions};
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_controllers::route::RouteController;
use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_controllers::{ClusterClient, ControllerError, KnownCluster, WorkQueues};
use openstack_ccm_core::cloud::{Background, Cloud, ClusterIdentity, LoadBalancing};
use openstack_ccm_core::permit::{Fence, Gate};
use openstack_ccm_core::provider::LoadBalancers;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::args::controllers::ControllerName;
use crate::cloud_metrics;
use crate::error_text::said_once;
use crate::health::{Health, Probe};
use crate::kubernetes::ControllerClients;

pub use crate::wiring::ProgramOptions;

/// Name of the health check that passes when the controllers have listed their objects.
const CACHES: &str = "caches";
/// Name of the health check that fails when the API server shows another cluster than at the start.
const CLUSTER: &str = "cluster";

/// The controllers that the options name, created and not yet running, and the watch of nodes that they share.
pub struct Program {
    nodes: NodeInformer,
    cluster: Arc<KnownCluster>,
    service: Option<ServiceParts>,
    route: Option<RouteController>,
    node: Option<NodeController>,
    node_lifecycle: Option<NodeLifecycleController>,
}

/// The service controller with its background task.
struct ServiceParts {
    controller: ServiceController,
    /// Has to run alongside the controller.
    background: Background,
    load_balancers: Arc<dyn LoadBalancers>,
}

/// The controllers for a dry run: each is called by itself, and nothing runs in the background.
pub struct DryRun {
    pub nodes: NodeInformer,
    pub service: Option<(ServiceController, Arc<dyn LoadBalancers>)>,
    pub route: Option<RouteController>,
    pub node: Option<NodeController>,
    pub node_lifecycle: Option<NodeLifecycleController>,
}

/// A controller, created and not yet running.
struct Controller {
    /// Its canonical name.
    name: &'static str,
    /// Ends when the controller has listed its objects.
    listed: BoxFuture<'static, ()>,
    /// Works until the token is cancelled.
    work: Box<dyn FnOnce(CancellationToken) -> ControllerRun + Send>,
}

/// The work of a controller, and how it ended.
type ControllerRun = BoxFuture<'static, Result<(), ControllerError>>;

impl Program {
    /// Creates the controllers; `cluster_uid` is the uid of the namespace kube-system, and `fence` knows whether the lead is held.
    pub fn new(
        clients: &ControllerClients,
        cloud: &dyn Cloud,
        cluster_uid: String,
        options: ProgramOptions,
        fence: Fence,
        registry: &mut Registry,
        work_queues: &WorkQueues,
    ) -> Self {
        let ProgramOptions { cluster_name, service, route, node, node_lifecycle } = options;
        let cluster = clients.known_cluster(cluster_uid.clone());
        let gate = Gate::new(Arc::clone(&cluster) as _, fence);
        let clients = clients.behind(&gate, &cluster);
        let of_cluster = |client| ClusterClient { client, cluster: Arc::clone(&cluster), gate: gate.clone() };
        let mut nodes = NodeInformer::new(of_cluster(clients.shared().clone()));
        let resync = cloud.drift_check_interval();
        let service = service.map(|options| {
            let queue = ServiceQueue::new();
            let client = of_cluster(clients.of(ControllerName::ServiceLb));
            let identity = ClusterIdentity { name: cluster_name, uid: cluster_uid };
            let LoadBalancing { load_balancers, background, node_selector_annotation, node_selector } =
                cloud.load_balancers(identity, gate.clone(), queue.waker());
            let options =
                ServiceControllerOptions { node_selector_annotation, node_selector, resync, ..options };
            cloud_metrics::show_gauges(&load_balancers, registry);
            let provider = Arc::clone(&load_balancers);
            nodes.show_doubted(registry);
            let controller =
                ServiceController::new(client, provider, queue, options, &mut nodes, registry, work_queues);
            ServiceParts { controller, background, load_balancers }
        });
        let route = route.map(|options| {
            let client = clients.of(ControllerName::NodeRoute);
            RouteController::new(client, cloud.routes(gate.clone()), options, &mut nodes, registry)
        });
        let instances = cloud.instances();
        if let Some(instances) = &instances {
            nodes.ask(Arc::clone(instances));
        }
        let node = instances.clone().zip(node).map(|(instances, options)| {
            let client = clients.of(ControllerName::CloudNode);
            let options = NodeControllerOptions { warning_interval: resync, ..options };
            NodeController::new(client, instances, options, &mut nodes, registry, work_queues)
        });
        let node_lifecycle = instances.zip(node_lifecycle).map(|(instances, options)| {
            let client = clients.of(ControllerName::CloudNodeLifecycle);
            let options = NodeLifecycleOptions { warning_interval: resync, ..options };
            NodeLifecycleController::new(client, instances, options, &nodes, registry)
        });
        Self { nodes, cluster, service, route, node, node_lifecycle }
    }

    /// Returns the controllers for a dry run.
    pub fn into_dry_run(self) -> DryRun {
        let Self { nodes, cluster: _, service, route, node, node_lifecycle } = self;
        let service = service.map(|parts| (parts.controller, parts.load_balancers));
        DryRun { nodes, service, route, node, node_lifecycle }
    }

    /// Works until `stop`, or until a controller ended by itself, which ends the others. If the API server shows another cluster, all
    /// work ends, and readiness says why: an automatic restart would take the other cluster for the right one.
    pub async fn run(self, health: &Health, stop: CancellationToken) {
        let cluster = Arc::clone(&self.cluster);
        health.ask(CLUSTER, Probe::Readiness, {
            let cluster = Arc::clone(&cluster);
            move || cluster.problem()
        });
        let working = stop.child_token();
        let differs = async {
            cluster.differs().await;
            working.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.work(health, working.clone()) => {}
            () = differs => {}
        }
        if cluster.problem().is_some() {
            stop.cancelled().await;
        }
    }

    /// Works until `stop`, or until a controller ended by itself, which ends the others.
    async fn work(self, health: &Health, stop: CancellationToken) {
        health.set(
            CACHES,
            Probe::Readiness,
            Some("the cluster's objects have not been listed yet".to_owned()),
        );
        let stopping = stop.child_token();
        let (nodes, controllers) = self.at_work();
        let has_controllers = !controllers.is_empty();
        let (mut synced, mut running) = (Vec::new(), FuturesUnordered::new());
        for Controller { name, listed, work } in controllers {
            tracing::info!(controller = name, "the controller starts");
            health.set(name, Probe::Liveness, None);
            synced.push(listed);
            let work = work(stopping.clone());
            running.push(async move { (name, work.await) });
        }
        let ready = async {
            join_all(synced).await;
            health.set(CACHES, Probe::Readiness, None);
            std::future::pending::<()>().await;
        };
        // Runs until the last controller has ended, which may still need the nodes.
        let watch = async {
            let error = nodes.run().await;
            tracing::error!("{}", said_once(&anyhow::Error::new(error)));
            stopping.cancel();
            std::future::pending::<()>().await;
        };
        let work = async {
            if running.is_empty() {
                stop.cancelled().await;
            }
            while let Some((controller, result)) = running.next().await {
                match result {
                    Ok(()) => tracing::info!(controller, "the controller has stopped"),
                    Err(error) => tracing::error!(controller, "{}", said_once(&anyhow::Error::new(error))),
                }
                stopping.cancel();
            }
        };
        tokio::select! {
            () = work => {}
            () = ready => {}
            () = watch, if has_controllers => {}
        }
    }

    /// Returns the watch of nodes, and the controllers ready to run.
    fn at_work(self) -> (NodeInformer, Vec<Controller>) {
        let Self { nodes, cluster: _, service, route, node, node_lifecycle } = self;
        let controllers = [
            service.map(ServiceParts::at_work),
            route.map(|controller| Controller {
                name: ControllerName::NodeRoute.canonical(),
                listed: Box::pin(controller.listed()),
                work: Box::new(|stop| Box::pin(controller.run(stop))),
            }),
            node.map(|controller| Controller {
                name: ControllerName::CloudNode.canonical(),
                listed: Box::pin(controller.listed()),
                work: Box::new(|stop| Box::pin(controller.run(stop))),
            }),
            node_lifecycle.map(|controller| Controller {
                name: ControllerName::CloudNodeLifecycle.canonical(),
                listed: Box::pin(controller.listed()),
                work: Box::new(|stop| Box::pin(controller.run(stop))),
            }),
        ];
        (nodes, controllers.into_iter().flatten().collect())
    }
}

impl ServiceParts {
    fn at_work(self) -> Controller {
        let Self { controller, background, load_balancers: _ } = self;
        Controller {
            name: ControllerName::ServiceLb.canonical(),
            listed: Box::pin(controller.listed()),
            work: Box::new(|stop| {
                Box::pin(async move {
                    tokio::select! {
                        result = controller.run(stop) => result,
                        // Both end with this future: reconciliations may still wait for the provider after the stop.
                        () = background => Ok(()),
                    }
                })
            }),
        }
    }
}

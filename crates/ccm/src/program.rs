//! What a leader runs: the controllers over the cloud. Everything it needs is passed in, so that tests run it whole.

use std::sync::Mutex;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_core::cloud::Cloud;
use openstack_ccm_runtime::lock::lock;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::error_text::said_once;
use crate::health::{Health, Probe};
use crate::kubernetes::ControllerClients;
use crate::wiring::assembly::{Assembly, Controller};

pub use crate::wiring::ProgramOptions;

/// Name of the health check that passes when the controllers have listed what they work on.
const CACHES: &str = "caches";

/// The controllers, put together and not yet running.
pub struct Program {
    nodes: NodeInformer,
    controllers: Vec<Controller>,
}

impl Program {
    /// Puts the controllers over the cloud; `cluster_uid` is the uid of the namespace kube-system.
    pub fn new(
        clients: &ControllerClients,
        cloud: &dyn Cloud,
        cluster_uid: String,
        options: ProgramOptions,
        registry: &Mutex<Registry>,
        work_queues: &WorkQueues,
    ) -> Self {
        let mut registry = lock(registry);
        let assembly = Assembly::new(clients, cloud, cluster_uid, options, &mut registry, work_queues);
        let (nodes, controllers) = assembly.at_work();
        Self { nodes, controllers }
    }

    /// Works until `stop`, or until a controller ended by itself, which ends the others.
    pub async fn run(self, health: &Health, stop: CancellationToken) {
        health.set(CACHES, Probe::Readiness, Some("the cluster's objects are not listed yet".to_owned()));
        let stopping = stop.child_token();
        let has_controllers = !self.controllers.is_empty();
        let (mut synced, mut running) = (Vec::new(), FuturesUnordered::new());
        for Controller { name, listed, work } in self.controllers {
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
        // Until the last controller has ended, which may still need to know the nodes.
        let watch = async {
            let error = self.nodes.run().await;
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
}

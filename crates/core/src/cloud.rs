//! How the binary comes to a cloud: the providers that it was built with, the configuration of the one that was chosen, and the
//! cloud itself after the login. Another provider is a crate with an [`Entry`], and one line in the binary that lists it.

use std::error::Error;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::failure::Failure;
use crate::instance::Instances;
use crate::permit::Gate;
use crate::provider::{LoadBalancers, Wake};
use crate::route::Routes;

/// A provider that the binary was built with.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Value of `--cloud-provider`, and name of the health check of the login.
    pub name: &'static str,
    /// Prefix of the metrics that count the calls to the cloud, without the last `_`.
    pub call_metric_prefix: &'static str,
    /// Reads the configuration from the files of `--cloud-config`, in their order.
    pub load: fn(&[PathBuf]) -> Loading,
}

/// The provider with its configuration, or everything that is wrong with it, at once.
pub type Loading = Result<Box<dyn Provider>, Box<dyn Error + Send + Sync>>;

/// What a controller works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Load balancers of Services.
    LoadBalancers,
    /// The machines behind nodes.
    Instances,
    /// Routes to the pods of nodes.
    Routes,
}

/// A provider whose configuration was read, and that is not logged in yet.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The setting that leaves a part out, for the log: its controller does not run. Absent where the configuration wants it.
    fn left_out(&self, part: Part) -> Option<String>;

    /// Where in the cloud it works, for people: a region. Absent where the configuration does not say.
    fn location(&self) -> Option<String> {
        None
    }

    /// Logs in. It is called again after a failure.
    ///
    /// # Errors
    /// The cloud cannot be used yet.
    async fn log_in(&self, login: LoginRequest) -> Result<Arc<dyn Cloud>, Failure>;
}

/// What the binary has to say for the login.
#[derive(Clone)]
pub struct LoginRequest {
    /// Learns of every call.
    pub observer: Arc<dyn CallObserver>,
    /// The parts of the User-Agent header.
    pub user_agent: Vec<String>,
}

/// Learns of every call to the cloud: of each page of a list and of each repetition on its own.
pub trait CallObserver: Send + Sync {
    /// `call` is one of a closed set of names, for a metrics label. `duration` runs from sending to the last byte of the answer.
    fn observe(&self, call: &'static str, duration: Duration, succeeded: bool);
}

/// A cloud that the provider is logged in to.
pub trait Cloud: Send + Sync {
    /// What the cloud lacks of that which a part needs, for example a service that its catalog does not have. The controller of the
    /// part could not do anything, so the program does not become ready.
    fn lacks(&self, part: Part) -> Option<String>;

    /// Why the cloud cannot be used at present, as far as that is known without asking it: for the readiness of a program that has
    /// been logged in. A provider that does not know has nothing to do here.
    fn problem(&self) -> Option<String> {
        None
    }

    /// The optional parts of its API that the cloud turned out to lack, by name. A provider that needs all of it has nothing to do here.
    fn missing_parts(&self) -> Vec<String> {
        Vec::new()
    }

    /// What helps where something is lacking: whole sentences, without the last full stop.
    fn remedy(&self) -> String;

    /// How often load balancers are compared with the cloud although nothing happens, and Warnings written again whose cause lasts; absent:
    /// never.
    fn drift_check_interval(&self) -> Option<Duration> {
        None
    }

    /// The load balancers of a cluster. Each write passes `gate`; Services are woken with `wake`.
    fn load_balancers(&self, cluster: ClusterIdentity, gate: Gate, wake: Arc<dyn Wake>) -> LoadBalancing;

    /// The machines, which are only read; absent where the cloud lacks what is needed for them.
    fn instances(&self) -> Option<Arc<dyn Instances>>;

    /// The routes. Each write passes `gate`.
    fn routes(&self, gate: Gate) -> Arc<dyn Routes>;
}

/// What a cluster is called where nobody says.
pub const DEFAULT_CLUSTER_NAME: &str = "kubernetes";

/// Which cluster this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `--cluster-name`: part of all names. Not unique; many clusters are called `kubernetes`.
    pub name: String,
    /// Uid of the namespace `kube-system`: unique, and the same as long as the cluster lives.
    pub uid: String,
}

/// The load balancers of a cluster, with what belongs to them.
pub struct LoadBalancing {
    /// The load balancers.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// Has to run alongside the controller, as long as that runs. It never ends by itself.
    pub background: Background,
    /// Annotation of a Service that selects nodes by labels (a comma list of `key=value` or `key`).
    pub node_selector_annotation: Option<String>,
    /// The selection for Services without that annotation, in the same form.
    pub node_selector: Option<String>,
}

/// Work that goes on alongside a controller.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

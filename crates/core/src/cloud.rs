//! How the binary gets a cloud: the providers it was built with, the configuration of the chosen provider, and the cloud after
//! the login. A further provider is a crate with an [`Entry`], and one line in the binary that lists it.

use std::error::Error;
use std::fmt;
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

/// The configured provider, or one error that names everything wrong with its configuration.
pub type Loading = Result<Box<dyn Provider>, Box<dyn Error + Send + Sync>>;

/// The part of the cloud that a controller manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Load balancers of Services.
    LoadBalancers,
    /// The machines behind nodes.
    Instances,
    /// Routes to the pods of nodes.
    Routes,
}

/// A provider whose configuration was read, before the login.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the setting that disables a part, for the log: its controller does not run. `None` if the part is enabled.
    fn left_out(&self, part: Part) -> Option<String>;

    /// Returns the region in which the provider works, for people. `None` if the configuration does not name it.
    fn location(&self) -> Option<String> {
        None
    }

    /// Logs in to the cloud. The caller repeats it after a failure.
    ///
    /// # Errors
    /// The cloud cannot be used yet.
    async fn log_in(&self, login: LoginRequest) -> Result<Arc<dyn Cloud>, Failure>;
}

/// What the binary passes to the login.
#[derive(Clone)]
pub struct LoginRequest {
    /// Observes every call.
    pub observer: Arc<dyn CallObserver>,
    /// The parts of the User-Agent header.
    pub user_agent: Vec<String>,
}

/// Observes every call to the cloud; each page of a list and each repetition is a call of its own. Logins are not calls.
pub trait CallObserver: Send + Sync + fmt::Debug {
    /// `call` is one of a closed set of names, for a metrics label, for example `loadbalancer_create`. `duration` runs from sending to the
    /// last byte of the answer.
    fn observe(&self, call: &'static str, duration: Duration, succeeded: bool);
}

/// A cloud that the provider is logged in to.
pub trait Cloud: Send + Sync {
    /// Returns what the cloud lacks for a part, for example a service that is missing in its catalog. The controller of the part
    /// could not do anything, so the program does not become ready.
    fn lacks(&self, part: Part) -> Option<String>;

    /// Returns why the cloud cannot be used at present, as far as that is known without a call: for the readiness of a program
    /// that has logged in before. A provider that cannot tell keeps the default.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Lists the optional API parts that the cloud turned out to lack, by name. A provider that needs the whole API keeps the default.
    fn missing_parts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what to do if the cloud lacks something: whole sentences, without the last full stop.
    fn remedy(&self) -> String;

    /// Returns how often load balancers are compared with the cloud without an event, and Warnings whose cause lasts are written again;
    /// `None`: never.
    fn drift_check_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns the load balancers of a cluster. Each write passes `gate`; `wake` queues Services.
    fn load_balancers(&self, cluster: ClusterIdentity, gate: Gate, wake: Arc<dyn Wake>) -> LoadBalancing;

    /// Returns the machines, which are only read; `None` if the cloud lacks the API for them.
    fn instances(&self) -> Option<Arc<dyn Instances>>;

    /// Returns the routes. Each write passes `gate`.
    fn routes(&self, gate: Gate) -> Arc<dyn Routes>;
}

/// The default name of a cluster.
pub const DEFAULT_CLUSTER_NAME: &str = "kubernetes";

/// Identity of the cluster that the program works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `--cluster-name`: part of all names. Not unique; many clusters are called `kubernetes`.
    pub name: String,
    /// Uid of the namespace `kube-system`: unique, and the same as long as the cluster lives.
    pub uid: String,
}

/// A cluster's load balancers with their background task and settings.
pub struct LoadBalancing {
    /// The load balancers.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// Task that has to run alongside the controller, as long as that runs. It never ends by itself.
    pub background: Background,
    /// Annotation of a Service that selects nodes by labels (a comma list of `key=value` or `key`).
    pub node_selector_annotation: Option<String>,
    /// The selection for Services without that annotation, in the same form.
    pub node_selector: Option<String>,
}

/// Work that goes on alongside a controller.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

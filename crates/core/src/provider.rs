//! Load balancers as a provider implements them. The trait is object-safe, as are [`Instances`](crate::instance::Instances) and
//! [`Routes`](crate::route::Routes): the controllers hold them as `dyn`, and know nothing else of the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::advertise::{ClusterAccess, Path, Preference, SettingNames};
use crate::failure::Failure;
use crate::notice::Notice;
use crate::service::{Goal, Service, ServiceKey};

/// What an annotation of a Service is to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationUse {
    /// It may mean something.
    Meaning,
    /// It means nothing, which is reported to whoever wrote it.
    Message,
    /// It is somebody else's: a change of it leads to no reconciliation.
    None,
}

/// The load balancers of a cloud.
#[async_trait]
pub trait LoadBalancers: Send + Sync {
    /// The names by which this provider is known.
    fn names(&self) -> ProviderNames;

    /// Brings the cloud one step nearer to the goal, or all the way when nothing has to be waited for.
    ///
    /// # Guarantees that an implementation gives
    /// - It may be stopped (dropped, killed) at any call to the cloud and called again: the end state is the same.
    /// - It never sleeps until a cloud object has changed; it returns [`Outcome::Waiting`] and calls
    ///   [`Wake::wake`] later.
    /// - It is called by several workers at once, never twice at once for one Service; load balancers that
    ///   several Services share are serialised inside. No worker waits for its turn: the Service does ([`WaitsOn::Turn`]).
    /// - It never changes or deletes what is not the Service's own.
    async fn reconcile(&self, goal: &Goal) -> Reconciliation;

    /// Somebody may have changed the Service's objects in the cloud: the next reconciliation asks the cloud, where the provider
    /// would otherwise trust what earlier ones saw. A provider that remembers nothing has nothing to do here.
    fn expect_drift(&self, service: &ServiceKey);

    /// What an annotation of a Service with this key is to the provider. A provider that does not know says that it has a meaning.
    fn use_of_annotation(&self, _key: &str) -> AnnotationUse {
        AnnotationUse::Meaning
    }

    /// Sets the lister of the other Services. Called once, before the first reconciliation. A provider that judges each Service by itself
    /// ignores it.
    fn set_neighbours(&self, _neighbours: Arc<dyn Neighbours>) {}

    /// A dry run begins: the provider acts as it does after its start-up delays. One that has none ignores it.
    fn begin_dry_run(&self) {}

    /// The Services, of those that were reconciled, whose objects in the cloud lack the tags that say whose they are, and will get
    /// them later, one Service after the other.
    fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        Vec::new()
    }

    /// What the provider shows of itself on the page of metrics.
    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// The load balancers that carry the identity of this cluster and of Services in it, whether those are there or not.
    /// One that stays on purpose when its Service goes is not among them. Reads only. A provider whose cloud has no such marks
    /// answers with none.
    ///
    /// # Errors
    /// The cloud could not be asked: nothing is known then.
    async fn orphan_candidates(&self) -> Result<Vec<OrphanCandidate>, Failure>;
}

/// The names by which users, operators and dashboards know a provider and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderNames {
    /// `source.component` of the Events that carry the notices of the provider.
    pub event_source: &'static str,
    /// Prefix of the metrics that count the reconciliations of the provider, without the last `_`.
    pub metric_prefix: &'static str,
    /// The command that deletes a load balancer with everything below it; the id follows after a space.
    pub delete_command: &'static str,
    /// What user and operator write to choose how an address is published.
    pub settings: SettingNames,
}

/// A number that a provider shows on the page of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name of the metric.
    pub name: &'static str,
    /// What it counts, without the last full stop.
    pub help: &'static str,
    /// Its value now.
    pub value: usize,
}

/// A load balancer in the cloud that was made for Services of this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanCandidate {
    /// Id in the cloud.
    pub id: String,
    /// Name in the cloud.
    pub name: String,
    /// Uids of the Services that it names. Never empty.
    pub service_uids: BTreeSet<String>,
    /// Whether it stays on purpose.
    pub is_retained: bool,
    /// The Service after which it is called, where its name says.
    pub service: Option<ServiceKey>,
}

/// The Services that a controller serves: what one of them alone does not show.
pub trait Neighbours: Send + Sync {
    /// All of them, as they were seen last. One whose object cannot be read is left out.
    fn served(&self) -> Vec<Service>;

    /// The addresses of all nodes, whether they take traffic or not.
    fn node_addresses(&self) -> BTreeSet<IpAddr>;
}

/// How a provider says that a Service deserves another reconciliation now.
pub trait Wake: Send + Sync {
    /// Queues the Service, without back-off. Unknown keys are ignored.
    fn wake(&self, key: &ServiceKey);
}

/// What one reconciliation reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// How far it got.
    pub result: Result<Outcome, Failure>,
    /// What the user should read, in order. Repeats of earlier reconciliations are fine, the recorder folds them.
    pub notices: Vec<Notice>,
    /// Annotations of the Service to set, or to remove where the value is absent. They are written even when the
    /// reconciliation failed, so that the next one finds what this one made.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Addresses that are known to be somebody else's by now: the status may not go on naming them, however the reconciliation
    /// ended.
    pub foreign_addresses: Vec<IpAddr>,
}

impl Reconciliation {
    /// One that only failed.
    pub fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            notices: Vec::new(),
            annotations: BTreeMap::new(),
            foreign_addresses: Vec::new(),
        }
    }
}

/// How far a reconciliation got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The load balancer agrees with the intent.
    Ready(Ready),
    /// The cloud is working; the provider wakes the Service when there is something to do.
    Waiting(Waiting),
    /// Nothing of the Service is left in the cloud; this was observed, not assumed.
    Released,
}

/// A load balancer that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Addresses that clients use, one status entry each. Never empty.
    pub addresses: Vec<IpAddr>,
    /// Whether clients inside the cluster must go through the load balancer.
    pub path: Path,
    /// What user and operator want to see in the status.
    pub preference: Preference,
    /// Whether the load balancer lets clients inside the cluster in. It matters only where they have to go through it.
    pub cluster_access: ClusterAccess,
    /// Whether this reconciliation wrote to the cloud.
    pub changed: bool,
    /// What it did there, in words, as far as nothing had to be waited for.
    pub done: Vec<String>,
    /// What failed apart from the load balancer. The addresses are published all the same; the failure is reported and retried.
    pub unfinished: Option<Failure>,
    /// The delay after which the provider wants another reconciliation although nothing happens: it took something for done that it
    /// has not seen yet, or waits for something that nobody watches. One that comes sooner for another reason does no harm, and
    /// states the delay that is left.
    pub requeue_after: Option<Duration>,
}

/// What a Service waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsOn {
    /// The end of a step that was taken for it, in words.
    OwnStep(String),
    /// The end of a change that this process has not begun for it, in words: for example `load balancer 1234 is PENDING_UPDATE`.
    OtherChange(String),
    /// Work on an object of the load balancer that the cloud may have lost, or refuses to begin, in words.
    StalledChild(String),
    /// The reconciliation of another Service that uses the same load balancer. Nothing was begun for this one.
    Turn,
    /// The creation of so many other load balancers, or a few more or less.
    Creations(usize),
}

/// Reason of the Event that a Service waits for [`WaitsOn::OtherChange`].
pub const BUSY: &str = "LoadBalancerBusy";
/// Reason of the Event that a Service waits for [`WaitsOn::StalledChild`].
pub const CHILD_PENDING: &str = "LoadBalancerChildPending";
/// Reason of the Event that a Service waits for its [`WaitsOn::Turn`].
pub const SHARED: &str = "LoadBalancerShared";
/// Reason of the Event that a Service waits for [`WaitsOn::Creations`].
pub const QUEUED: &str = "LoadBalancerQueued";

/// Whether an Event with this reason says what a Service waits for.
pub fn is_reason_of_wait(reason: &str) -> bool {
    [BUSY, CHILD_PENDING, SHARED, QUEUED].contains(&reason)
}

impl fmt::Display for WaitsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnStep(on) | Self::OtherChange(on) | Self::StalledChild(on) => f.write_str(on),
            Self::Turn => f.write_str("another Service that uses the load balancer"),
            Self::Creations(before) => write!(f, "the creation of about {before} other load balancers"),
        }
    }
}

/// Something in the cloud is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// On what.
    pub on: WaitsOn,
    /// The provider wakes the Service; this is the delay after which it is reconciled anyway.
    pub at_most: Duration,
    /// What was refused so far, and will still be missing in the end: it is reported at once.
    pub unfinished: Option<Failure>,
}

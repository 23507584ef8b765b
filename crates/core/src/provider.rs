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

/// How a provider uses an annotation of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationUse {
    /// The annotation may have a meaning.
    Meaning,
    /// The annotation has no effect, which is reported to the user.
    Message,
    /// The annotation belongs to other software: a change of it leads to no reconciliation.
    None,
}

/// The load balancers of a cloud.
#[async_trait]
pub trait LoadBalancers: Send + Sync {
    /// Returns the names by which this provider is known.
    fn names(&self) -> ProviderNames;

    /// Brings the cloud one step nearer to the goal, or all the way if no step has to be waited for.
    ///
    /// # Guarantees that an implementation gives
    /// - It may be stopped (dropped, killed) at any call to the cloud and called again: the end state is the same.
    /// - It never sleeps until a cloud object has changed; it returns [`Outcome::Waiting`] and calls
    ///   [`Wake::wake`] later.
    /// Several workers call it at once, but never twice at once for one Service; it serialises work on shared load
    /// balancers itself. No worker waits for its turn: the Service does ([`WaitsOn::Turn`]).
    /// It never changes or deletes objects that do not belong to the Service.
    async fn reconcile(&self, goal: &Goal) -> Reconciliation;

    /// Tells that the Service's objects in the cloud may have changed: the next reconciliation reads the cloud instead of trusting
    /// what earlier reconciliations saw. A provider without such a memory does nothing here.
    fn expect_drift(&self, service: &ServiceKey);

    /// Returns how the provider uses annotations with this key. A provider that does not know says that they have a meaning.
    fn use_of_annotation(&self, _key: &str) -> AnnotationUse {
        AnnotationUse::Meaning
    }

    /// Sets the lister of the other Services. Called once, before the first reconciliation. A provider that judges each Service by itself
    /// ignores it.
    fn set_neighbours(&self, _neighbours: Arc<dyn Neighbours>) {}

    /// Begins a dry run: the provider skips its start-up delays. A provider without such delays ignores it.
    fn begin_dry_run(&self) {}

    /// Lists the reconciled Services whose objects in the cloud still lack identity tags. They get the tags later, one Service
    /// after the other.
    fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        Vec::new()
    }

    /// Returns the members that the dry run removed from pools of the Service, each with the reason. Empty outside of a dry run.
    fn removed_members(&self, _service: &ServiceKey) -> Vec<String> {
        Vec::new()
    }

    /// Returns the provider's own gauges for the metrics page.
    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// Lists the load balancers that carry the identity of this cluster and of Services in it, whether the Services exist or not,
    /// retained load balancers included. Reads only. A provider whose cloud has no such marks returns none.
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
    /// The settings by which user and operator choose how an address is published.
    pub settings: SettingNames,
}

/// A gauge of a provider on the metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name of the metric.
    pub name: &'static str,
    /// What the metric counts, without the last full stop.
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
    /// Uids of the Services that the load balancer names. Never empty.
    pub service_uids: BTreeSet<String>,
    /// Whether the load balancer is kept on purpose.
    pub is_retained: bool,
    /// The Service in the load balancer's name, where there is one.
    pub service: Option<ServiceKey>,
}

/// The Services and nodes of a controller: what a single Service does not show.
pub trait Neighbours: Send + Sync {
    /// Lists all Services, as they were seen last. Services whose object cannot be parsed are left out.
    fn served(&self) -> Vec<Service>;

    /// Returns the addresses of all nodes, whether they take traffic or not.
    fn node_addresses(&self) -> BTreeSet<IpAddr>;
}

/// Lets a provider ask for another reconciliation of a Service.
pub trait Wake: Send + Sync {
    /// Queues the Service, without back-off. Unknown keys are ignored.
    fn wake(&self, key: &ServiceKey);
}

/// What one reconciliation reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// How far the reconciliation got.
    pub result: Result<Outcome, Failure>,
    /// Notices for the user, in order. Repeats of earlier notices are fine, the recorder folds them.
    pub notices: Vec<Notice>,
    /// Annotations of the Service to set, or to remove where the value is absent. They are written even after a failure, so
    /// that the next reconciliation finds what this one made.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Addresses that are known not to be the Service's any more: the status must not go on naming them, however the reconciliation
    /// ended.
    pub foreign_addresses: Vec<IpAddr>,
}

impl Reconciliation {
    /// Creates a result that is only a failure.
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

/// The state of a load balancer that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Addresses that clients use, one status entry each. Never empty.
    pub addresses: Vec<IpAddr>,
    /// Whether clients inside the cluster must go through the load balancer.
    pub path: Path,
    /// What user and operator want to see in the status.
    pub preference: Preference,
    /// Whether the load balancer admits clients inside the cluster. It matters only if they have to go through it.
    pub cluster_access: ClusterAccess,
    /// Whether this reconciliation wrote to the cloud.
    pub changed: bool,
    /// Its steps in the cloud, in words, without those that had to be waited for.
    pub done: Vec<String>,
    /// A failure besides the load balancer. The addresses are published all the same; the failure is reported and retried.
    pub unfinished: Option<Failure>,
    /// The delay after which the provider wants another reconciliation even without an event: it assumed a result that it has not
    /// seen yet, or waits for a change that causes no event. An earlier reconciliation for another reason does no harm, and
    /// returns the remaining delay.
    pub requeue_after: Option<Duration>,
}

/// What a Service waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsOn {
    /// The end of a step that was taken for the Service, in words.
    OwnStep(String),
    /// The end of a change that this process did not begin for the Service, in words: for example `load balancer 1234 is PENDING_UPDATE`.
    OtherChange(String),
    /// A change of a child object of the load balancer that the cloud may have lost, or refuses to begin, in words.
    StalledChild(String),
    /// The reconciliation of another Service that uses the same load balancer. Nothing was begun for this Service.
    Turn,
    /// The creation of about so many other load balancers.
    Creations(usize),
}

/// Event reason while a Service waits for [`WaitsOn::OtherChange`].
pub const BUSY: &str = "LoadBalancerBusy";
/// Event reason while a Service waits for [`WaitsOn::StalledChild`].
pub const CHILD_PENDING: &str = "LoadBalancerChildPending";
/// Event reason while a Service waits for its [`WaitsOn::Turn`].
pub const SHARED: &str = "LoadBalancerShared";
/// Event reason while a Service waits for [`WaitsOn::Creations`].
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

/// A wait for unfinished work in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What the Service waits for.
    pub on: WaitsOn,
    /// The delay after which the Service is reconciled even if the provider does not wake it.
    pub at_most: Duration,
    /// Failure of the parts that were refused and will be missing in the end: it is reported at once.
    pub unfinished: Option<Failure>,
}

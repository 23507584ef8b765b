//! What tests and the demo do with a simulator beside sending it requests.

use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::access::{Attributes, Token, User};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::faults::{Fault, FaultId};
use crate::kinds::{self, Part, Resource};
use crate::log::RequestRecord;
use crate::object::{name, namespace, text};
use crate::patch::PatchKind;
use crate::service::SimService;
use crate::shared::Shared;
use crate::store::{Change, ChangeKind};
use crate::token::AUDIENCE;
use crate::verbs::{DeleteOptions, ListOptions, State, Target, WriteOptions};
use crate::version::ApiVersion;

/// A Kubernetes API with its objects in memory. Copies share everything.
///
/// The methods that read and write objects do what a request of an administrator does, but are neither logged nor
/// subject to faults.
#[derive(Debug, Clone)]
pub struct Sim {
    pub(crate) shared: Arc<Shared>,
}

impl Default for Sim {
    /// The newest release.
    fn default() -> Self {
        Self::new(ApiVersion::default())
    }
}

impl Sim {
    /// An empty cluster: the namespaces `default`, `kube-node-lease`, `kube-public` and `kube-system`, and the Service
    /// `default/kubernetes`.
    ///
    /// Objects are stamped with the system's time, which from then on runs with tokio's clock.
    pub fn new(version: ApiVersion) -> Self {
        let sim = Self { shared: Arc::new(Shared::new(State::new(version, Clock::system()))) };
        sim.furnish();
        sim
    }

    /// The same for another cluster: as in life, its objects have other uids than those of a cluster with another number.
    pub fn numbered(version: ApiVersion, number: u16) -> Self {
        let sim = Self { shared: Arc::new(Shared::new(State::new(version, Clock::system()))) };
        sim.shared.state().number_identities(number);
        sim.furnish();
        sim
    }

    /// What every cluster has.
    fn furnish(&self) {
        for name in ["kube-system", "default", "kube-public", "kube-node-lease"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.must_create(&namespace);
        }
        self.must_create(&json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        }));
    }

    fn must_create(&self, object: &Value) {
        if let Err(failure) = self.create(object) {
            tracing::error!(%failure, "an object that every cluster has cannot be created");
        }
    }

    /// A service for `kube::Client::new(sim.service(), "default")`.
    pub fn service(&self) -> SimService {
        SimService::new(Arc::clone(&self.shared))
    }

    // Version and time.

    /// The release that is simulated.
    pub fn version(&self) -> ApiVersion {
        self.shared.state().version
    }

    /// Upgrades or downgrades the server; the objects stay. Open watches go on: call [`Sim::break_watches`] for the
    /// restart that an upgrade is.
    pub fn set_version(&self, version: ApiVersion) {
        self.shared.state().version = version;
    }

    /// The simulator's time.
    pub fn now(&self) -> Timestamp {
        self.shared.state().clock.now()
    }

    /// Sets the time; it goes on from there with tokio's clock.
    pub fn set_time(&self, time: Timestamp) {
        self.shared.state().clock = Clock::from(time);
    }

    /// Sets the ports that Services may have on the nodes (`--service-node-port-range`); 30000 to 32767 at the start.
    pub fn set_node_port_range(&self, range: RangeInclusive<u16>) {
        self.shared.state().allocations.node_ports = range;
    }

    // Objects.

    /// Creates an object. Its kind and namespace are its own; without a namespace it is `default`.
    ///
    /// As with a request, `status` of most kinds is not taken: see [`Sim::patch_status`].
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn create(&self, object: &impl Serialize) -> Result<Value, Failure> {
        let object = to_value(object)?;
        let mut target = target_of(&object)?;
        target.name.clear();
        Ok(self.shared.state().create(&target, &object, &writer())?.object)
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn update(&self, object: &impl Serialize) -> Result<Value, Failure> {
        let object = to_value(object)?;
        Ok(self.shared.state().update(&target_of(&object)?, &object, &writer())?.object)
    }

    /// An object. `resource` is a plural, with its group outside of the core group: `services`, `nodes`, `leases`,
    /// `events`, `events.events.k8s.io`. `namespace` is empty for cluster-scoped resources.
    ///
    /// # Errors
    /// It does not exist, or the resource is not simulated.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, Failure> {
        let target = target(resource, namespace, name, Part::Main)?;
        self.shared.state().get(&target)
    }

    /// All objects of a resource in a namespace, or in all of them for an empty namespace.
    ///
    /// # Errors
    /// The resource is not simulated.
    pub fn list(&self, resource: &str, namespace: &str) -> Result<Vec<Value>, Failure> {
        let target = target(resource, namespace, "", Part::Main)?;
        let list = self.shared.state().list(&target, &ListOptions::default())?;
        let items = crate::object::list(&list, "/items").iter().map(|item| {
            let mut item = item.clone();
            item["kind"] = target.resource.kind.into();
            item["apiVersion"] = target.resource.api_version().into();
            item
        });
        Ok(items.collect())
    }

    /// Changes an object with a JSON merge patch; `status` stays as it is.
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Failure> {
        self.merge(&target(resource, namespace, name, Part::Main)?, patch)
    }

    /// Changes `status` (and `metadata`) of an object with a JSON merge patch, for example
    /// `{"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}`.
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn patch_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Failure> {
        self.merge(&target(resource, namespace, name, Part::Status)?, patch)
    }

    fn merge(&self, target: &Target, patch: &Value) -> Result<Value, Failure> {
        Ok(self.shared.state().patch(target, PatchKind::Merge, patch, &writer())?.object)
    }

    /// Deletes an object; one with finalizers stays and is marked.
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, Failure> {
        let target = target(resource, namespace, name, Part::Main)?;
        Ok(self.shared.state().delete(&target, &DeleteOptions::default())?.object)
    }

    /// The newest resourceVersion.
    pub fn resource_version(&self) -> u64 {
        self.shared.state().store.revision()
    }

    /// The writes of objects of a resource after a resourceVersion, oldest first: those of clients and of tests alike.
    ///
    /// # Errors
    /// The resource is not simulated, or what happened then is forgotten.
    pub fn changes_since(&self, resource: &str, resource_version: u64) -> Result<Vec<ObjectChange>, Failure> {
        let resource = find(resource)?;
        let changes = self.shared.state().store.changes_after(resource.storage, resource_version);
        let changes = changes.map_err(|compacted| {
            Failure::expired(format!("too old resource version: {resource_version} ({})", compacted.oldest))
        })?;
        Ok(changes.into_iter().map(ObjectChange::of).collect())
    }

    /// Forgets the past at once: watches and lists from an older resourceVersion get 410. Without that it is forgotten as
    /// by a real server: of each kind the changes of the last 75 seconds are kept, and the newest 100.
    pub fn compact(&self) {
        self.shared.state().store.compact();
    }

    // Watches.

    /// Breaks the connections of all open watches.
    pub fn break_watches(&self) {
        self.shared.break_watches();
    }

    // Faults.

    /// Lets a fault strike from now on. Of several the one injected first decides.
    pub fn inject(&self, fault: Fault) -> FaultId {
        self.shared.faults().inject(fault)
    }

    /// Whether an injected fault can still strike: who only looks at objects may be struck in the place of another.
    pub fn faults_can_strike(&self) -> bool {
        self.shared.faults().can_strike()
    }

    /// Takes a fault back.
    pub fn remove_fault(&self, id: FaultId) {
        self.shared.faults().remove(id);
    }

    /// Takes all faults back.
    pub fn clear_faults(&self) {
        self.shared.faults().clear();
    }

    // Requests.

    /// The requests since the start or [`Sim::clear_requests`], oldest first; the last 20,000 where there were more.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.log().records()
    }

    /// Requests that a function chooses.
    pub fn requests_where(&self, chosen: impl Fn(&RequestRecord) -> bool) -> Vec<RequestRecord> {
        self.requests().into_iter().filter(|request| chosen(request)).collect()
    }

    /// Requests with this method (`*` for any) whose path contains `path_part`.
    pub fn count_requests(&self, method: &str, path_part: &str) -> usize {
        let matches = |request: &RequestRecord| {
            (method == "*" || request.method.as_str() == method) && request.path.contains(path_part)
        };
        self.requests_where(matches).len()
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.shared.log().clear();
    }

    // Access.

    /// Makes a bearer token known. Requests without a token come from an administrator.
    pub fn add_token(&self, text: &str, user: User) {
        let audiences = vec![AUDIENCE.to_owned()];
        self.shared.access().add_token(text, Token { user, audiences });
    }

    /// Decides what users outside of the group `system:masters` may do. At the start that is nothing.
    pub fn set_authorizer(&self, authorizer: impl Fn(&User, &Attributes) -> bool + Send + Sync + 'static) {
        self.shared.access().set_authorizer(Box::new(authorizer));
    }
}

/// One write of one object.
#[derive(Debug, Clone)]
pub struct ObjectChange {
    /// The resourceVersion that it led to.
    pub resource_version: u64,
    /// The object before; absent where it was created.
    pub before: Option<Arc<Value>>,
    /// The object after; absent where it is gone.
    pub after: Option<Arc<Value>>,
}

impl ObjectChange {
    fn of(change: Change) -> Self {
        let gone = change.kind == ChangeKind::Deleted;
        let (previous, last) = (change.previous.map(|one| one.object), change.stored.object);
        Self {
            resource_version: change.revision,
            before: previous.or_else(|| gone.then(|| Arc::clone(&last))),
            after: (!gone).then_some(last),
        }
    }
}

fn writer() -> WriteOptions {
    WriteOptions { manager: "kube-sim".to_owned(), ..WriteOptions::default() }
}

fn to_value(object: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::bad_request(error.to_string()))
}

fn target_of(object: &Value) -> Result<Target, Failure> {
    let (kind, api_version) = (text(object, "/kind"), text(object, "/apiVersion"));
    let resource = kinds::all()
        .iter()
        .find(|one| one.kind == kind && one.api_version() == api_version)
        .ok_or_else(|| Failure::bad_request(format!("{api_version} {kind} is not simulated")))?;
    let namespace = match namespace(object) {
        "" if resource.namespaced => "default",
        given => given,
    };
    Ok(Target { resource, namespace: namespace.to_owned(), name: name(object).to_owned(), part: Part::Main })
}

fn target(resource: &str, namespace: &str, name: &str, part: Part) -> Result<Target, Failure> {
    Ok(Target { resource: find(resource)?, namespace: namespace.to_owned(), name: name.to_owned(), part })
}

/// A resource by its plural, optionally with its group.
pub(crate) fn find(resource: &str) -> Result<&'static Resource, Failure> {
    let (plural, group) = match resource.split_once('.') {
        Some((plural, group)) => (plural, Some(group)),
        None => (resource, None),
    };
    kinds::all()
        .iter()
        .find(|one| one.plural == plural && group.is_none_or(|group| one.group == group))
        .ok_or_else(|| Failure::bad_request(format!("{resource} is not simulated")))
}

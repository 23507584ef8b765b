//! The permanent canary of a cluster: writes the status of its Services, and reads its pods.
//!
//! | module | holds |
//! | --- | --- |
//! | `listed` | the listed fields of its pods and DaemonSets |
//! | `status` | the wanted status, compared with the present one (pure) |
//! | `state` | when the reports of the pods count (pure) |

mod listed;
mod state;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, ObjectReference, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource as _};
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::observed_pod::{ObservedPod, of_canary};
use openstack_ccm_canary::{CONTROL, SUBJECT};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::{CallError, call};
use openstack_ccm_runtime::events::{EventRecorder, Lasting};
use openstack_ccm_runtime::listed::{self as objects, Interest};
use openstack_ccm_runtime::watch::{Reading, events};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::measured::Measured;
use crate::writer::StatusWriter;
use listed::{ListedDaemonSet, ListedPod};
use state::CanaryState;
use status::{Seen, seen, wanted};

/// Longest wait for the first list of pods and Services. Then nodes are judged by what they show.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanaryOptions {
    pub namespace: String,
    /// Addresses of its Services.
    pub addresses: Addresses,
    /// `loadBalancerClass` of its Services, which no controller serves.
    pub class: &'static str,
}

/// Runs a permanent canary.
pub struct Canary {
    client: Client,
    writer: StatusWriter,
    options: CanaryOptions,
    measured: Measured,
    events: EventRecorder,
    /// Component of its Events.
    component: &'static str,
    state: CanaryState,
    /// Services whose status another client writes, with the Warning about it.
    left_alone: BTreeMap<String, (ObjectReference, Notice)>,
    /// When that Warning was written.
    lasting: Lasting<String>,
    /// Services whose status was ours, read back different and rewritten: only once.
    rewritten: BTreeSet<String>,
    /// Services of the list in progress.
    arriving: BTreeSet<String>,
    /// The uids of the canary's DaemonSets.
    daemon_sets: BTreeSet<String>,
}

impl Canary {
    /// Creates a canary that does nothing before [`Canary::keep`]. `component` is the source of its Events; Warnings whose cause lasts are
    /// repeated each `warning_interval`.
    pub fn new(
        client: Client,
        writer: StatusWriter,
        options: CanaryOptions,
        measured: Measured,
        events: EventRecorder,
        component: &'static str,
        warning_interval: Option<Duration>,
    ) -> Self {
        Self {
            client,
            writer,
            options,
            measured,
            events,
            component,
            state: CanaryState::default(),
            left_alone: BTreeMap::new(),
            lasting: Lasting::new(warning_interval),
            rewritten: BTreeSet::new(),
            arriving: BTreeSet::new(),
            daemon_sets: BTreeSet::new(),
        }
    }

    /// Keeps the canary for ever. Lists are read in pages of `page` objects.
    pub async fn keep(mut self, page: u32) {
        let namespace = self.options.namespace.clone();
        let reading = Reading { page, interest: Interest::in_none() };
        let pods = Api::<ListedPod>::namespaced(self.client.clone(), &namespace);
        let pods = events::<_, ObservedPod>(pods, reading.clone());
        let services = Api::<objects::Service>::namespaced(self.client.clone(), &namespace);
        let services = events::<_, Service>(services, reading.clone());
        let daemon_sets = Api::<ListedDaemonSet>::namespaced(self.client.clone(), &namespace);
        let daemon_sets = events::<_, ListedDaemonSet>(daemon_sets, reading);
        pin_mut!(pods, services, daemon_sets);
        let patience = sleep(FIRST_LIST_TIMEOUT);
        pin_mut!(patience);
        let (mut arriving, mut arriving_sets, mut listed) = (Vec::new(), Vec::new(), (false, false, false));
        loop {
            let now = Instant::now();
            let next = self.state.next(now).into_iter().chain(self.lasting.next()).min();
            tokio::select! {
                event = pods.next() => match event {
                    Some(Ok(event)) => listed.0 |= self.pod(event, &mut arriving),
                    Some(Err(error)) => self.interrupted("pods", &error),
                    None => return,
                },
                event = services.next() => match event {
                    Some(Ok(event)) => listed.1 |= self.service(event).await,
                    Some(Err(error)) => self.interrupted("services", &error),
                    None => return,
                },
                event = daemon_sets.next() => match event {
                    Some(Ok(event)) => listed.2 |= self.daemon_set(event, &mut arriving_sets),
                    Some(Err(error)) => self.interrupted("daemonsets", &error),
                    None => return,
                },
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                () = &mut patience, if !*self.measured.ready().borrow() => self.measured.set_ready(),
            }
            self.warn();
            self.state.settle(Instant::now());
            self.measured.by_canary(self.state.verdicts());
            if listed == (true, true, true) {
                self.measured.set_ready();
            }
        }
    }

    /// Ends the wait for first verdicts: the namespace or a permission may be missing for long.
    fn interrupted(&self, what: &str, error: &kube::runtime::watcher::Error) {
        let namespace = &self.options.namespace;
        tracing::warn!(%error, namespace, "the watch of {what} of the canary was interrupted; it is retried");
        self.measured.set_ready();
    }

    /// Returns whether this was the end of a list.
    fn pod(&mut self, event: Event<ObservedPod>, arriving: &mut Vec<ObservedPod>) -> bool {
        let now = Instant::now();
        match event {
            Event::Init => arriving.clear(),
            Event::InitApply(pod) => arriving.push(pod),
            Event::InitDone => {
                self.state.listed(&std::mem::take(arriving), now);
                return true;
            }
            Event::Apply(pod) => self.state.pod(&pod, now),
            Event::Delete(pod) => self.state.no_pod(&pod, now),
        }
        false
    }

    /// Returns whether this was the end of a list.
    fn daemon_set(&mut self, event: Event<ListedDaemonSet>, arriving: &mut Vec<ObjectMeta>) -> bool {
        match event {
            Event::Init => return false,
            Event::InitApply(one) => {
                arriving.push(one.metadata);
                return false;
            }
            Event::InitDone => self.daemon_sets = of_canary(&std::mem::take(arriving)),
            Event::Apply(one) => self.daemon_sets.extend(of_canary([&one.metadata])),
            Event::Delete(one) => {
                let gone = of_canary([&one.metadata]);
                self.daemon_sets.retain(|uid| !gone.contains(uid));
            }
        }
        self.state.daemon_sets(&self.daemon_sets, Instant::now());
        true
    }

    /// Returns whether this was the end of a list.
    async fn service(&mut self, event: Event<Service>) -> bool {
        match event {
            Event::Init => self.arriving.clear(),
            Event::InitApply(service) => {
                self.arriving.insert(service.metadata.name.clone().unwrap_or_default());
                self.look_at(&service).await;
            }
            Event::Apply(service) => self.look_at(&service).await,
            Event::Delete(service) => self.gone(&service.metadata.name.unwrap_or_default()),
            Event::InitDone => {
                for name in [CONTROL, SUBJECT] {
                    if !self.arriving.contains(name) {
                        self.gone(name);
                    }
                }
                return true;
            }
        }
        false
    }

    fn gone(&mut self, name: &str) {
        self.state.wrong(name, Instant::now());
        self.left_alone.remove(name);
        self.rewritten.remove(name);
    }

    /// Corrects the status of a Service, unless another client writes it.
    async fn look_at(&mut self, service: &Service) {
        let name = service.metadata.name.clone().unwrap_or_default();
        if !is_of_canary(service, &self.options) {
            return;
        }
        let entries = wanted(service, &self.options.addresses);
        match seen(service, &entries) {
            Seen::Right => {
                self.state.right(&name, true, Instant::now());
                self.left_alone.remove(&name);
                return;
            }
            Seen::WithoutModes => {
                self.state.wrong(&name, Instant::now());
                self.rewritten.remove(&name);
                return;
            }
            Seen::Empty if entries.is_empty() => return,
            Seen::Empty => {}
            Seen::Other => {
                self.state.wrong(&name, Instant::now());
                if !self.is_ours(service, &name).await {
                    return;
                }
            }
        }
        self.write(service, &name, &entries).await;
    }

    /// Whether the present status was written by us, for other addresses. If not, a Warning names its writer.
    async fn is_ours(&mut self, service: &Service, name: &str) -> bool {
        let writer = match self.writer.last_status_writer(&self.key(name), |_| true).await {
            Ok(writer) => writer,
            Err(error) => {
                tracing::warn!(
                    service = name,
                    error = error.message(),
                    "the writer of the status of the canary's Service cannot be determined"
                );
                return false;
            }
        };
        let ours = writer.as_deref() == Some(self.writer.manager());
        if ours && self.rewritten.insert(name.to_owned()) {
            return true;
        }
        if !self.left_alone.contains_key(name) {
            let writer = writer.unwrap_or_else(|| "another controller".to_owned());
            let class = self.options.class;
            let message = format!(
                "{writer} writes the status of this Service, which belongs to the canary. This controller no longer writes the status, \
                 and judges nodes by versions and images instead. Configure {writer} to ignore Services with loadBalancerClass {class}"
            );
            tracing::warn!(service = name, "{message}");
            let notice = Notice::warning("CanaryStatusOverwritten", message);
            self.left_alone.insert(name.to_owned(), (service.object_ref(&()), notice));
        }
        false
    }

    /// Writes the Warnings that are due.
    fn warn(&mut self) {
        for (_, (service, notice)) in self.lasting.due(&self.left_alone, |(name, _)| (*name).clone()) {
            self.events.record(service, self.component, notice.clone());
        }
    }

    async fn write(&mut self, service: &Service, name: &str, entries: &[LoadBalancerIngress]) {
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let patch = json!({
            "metadata": {"uid": uid}, "status": {"loadBalancer": {"ingress": entries}},
        });
        match self.writer.patch_status(&self.key(name), &patch).await {
            Ok(answer) if seen(&answer, entries) == Seen::Right => {
                self.state.right(name, false, Instant::now());
            }
            Ok(_) => self.state.wrong(name, Instant::now()),
            Err(error) => {
                let error = error.message();
                tracing::warn!(service = name, error, "the status of the canary's Service cannot be written");
            }
        }
    }

    fn key(&self, name: &str) -> ServiceKey {
        ServiceKey::new(self.options.namespace.clone(), name.to_owned())
    }
}

fn is_of_canary(service: &Service, options: &CanaryOptions) -> bool {
    let class = service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref());
    let name = service.metadata.name.as_deref().unwrap_or_default();
    class == Some(options.class) && [CONTROL, SUBJECT].contains(&name)
}

/// Lists the pods of a canary's DaemonSets.
///
/// # Errors
/// The pods or the DaemonSets could not be listed.
pub async fn pods_of_canary(client: &Client, namespace: &str) -> kube::Result<Vec<ObservedPod>> {
    let daemon_sets = Api::<ListedDaemonSet>::namespaced(client.clone(), namespace);
    let daemon_sets =
        of_canary(daemon_sets.list(&ListParams::default()).await?.items.iter().map(|one| &one.metadata));
    let pods = Api::<ObservedPod>::namespaced(client.clone(), namespace);
    let mut pods = pods.list(&ListParams::default()).await?.items;
    pods.retain(|pod| pod.daemon_set().is_some_and(|uid| daemon_sets.contains(uid)));
    Ok(pods)
}

/// Returns the present verdicts of a canary's pods, for a single check; none if its Services are not as they should be.
///
/// # Errors
/// Its pods or Services could not be listed.
pub async fn measured_now(
    client: &Client,
    options: &CanaryOptions,
    limit: Duration,
) -> Result<Measured, CallError> {
    let namespace = &options.namespace;
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    let services = call(limit, services.list(&ListParams::default())).await?.items;
    let pods = call(limit, pods_of_canary(client, namespace)).await?;
    let (mut state, now) = (CanaryState::default(), Instant::now());
    for service in services.iter().filter(|service| is_of_canary(service, options)) {
        if seen(service, &wanted(service, &options.addresses)) == Seen::Right {
            state.right(service.metadata.name.as_deref().unwrap_or_default(), true, now);
        }
    }
    state.daemon_sets(&pods.iter().filter_map(|pod| pod.daemon_set().map(str::to_owned)).collect(), now);
    state.listed(&pods, now);
    state.settle(now);
    let measured = Measured::by_nobody();
    measured.by_canary(state.verdicts());
    Ok(measured)
}

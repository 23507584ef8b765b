//! A plan of what comes next, and whether that is what came.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack_ccm::kubernetes::{ControllerClients, cluster_uid};
use openstack_ccm::subcommands::plan::as_if::AsIf;
use openstack_ccm::subcommands::plan::cluster;
use openstack_ccm::subcommands::plan::journal::{Call as Planned, Journal};
use openstack_ccm::subcommands::plan::outlook::{Outlook, State};
use openstack_ccm::subcommands::plan::rehearsal::{Chosen, Item, Stage, rehearse};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};

use super::canonical::{self, Names};
use super::line::{Asked, cloud};
use super::{Call, Side, World};

/// A plan, and what is needed to compare it with what follows.
pub(crate) struct Prediction {
    pub(crate) planned: Vec<Asked>,
    pub(crate) names: Names,
    /// Places in the world's records when it was made.
    calls: usize,
    refusals: usize,
    /// Whether everything could be planned to its end.
    complete: bool,
}

impl World {
    /// A plan over all Services, while the program stands still.
    pub(crate) async fn plan(&self, ahead: bool, as_if: AsIf) -> Vec<Item> {
        let _held = match self.line() {
            Some(line) => Some(line.hold().await),
            None => None,
        };
        let journal = Arc::new(Journal::default());
        let project_id = Some(self.cloud.seed().project_id.clone());
        let reading = Reading { ahead, project_id: project_id.clone() };
        let transport = Arc::new(cloud(&self.cloud, self.settings.user));
        let mut openstack = OpenStack::new(Client::over(DryRun::new(transport, reading, journal.clone())));
        openstack.project_id = project_id;
        openstack.barbican = openstack.barbican.filter(|_| self.settings.key_manager);
        let real = kube::Client::new(self.kube.service(), "default");
        let uid = match &self.settings.cluster_uid {
            Some(uid) => uid.clone(),
            None => cluster_uid(real.clone()).await.unwrap(),
        };
        let stage = Stage {
            clients: ControllerClients::same(cluster::client(real, Arc::clone(&journal), as_if)),
            openstack,
            config: Arc::new(self.config()),
            cluster_uid: uid,
            options: self.options(),
            journal,
        };
        rehearse(stage, &Chosen::All, |_, _| {}).await.unwrap()
    }

    /// Plans what comes next.
    pub(crate) async fn predict(&self) -> Prediction {
        let items = self.plan(true, AsIf::default()).await;
        let complete = items
            .iter()
            .map(Outlook::of)
            .all(|outlook| matches!(outlook.state, State::Settled | State::Refused(_)));
        let calls: Vec<&Planned> = items.iter().flat_map(|item| &item.calls).collect();
        let names = Names::before(&self.cloud).with_planned(&calls);
        let planned = calls.into_iter().map(canonical::asked).collect();
        let (calls, refusals) = (self.call_count(), self.refusals());
        Prediction { planned, names, calls, refusals, complete }
    }

    /// What was done since, where it is other than planned. Nothing is compared where the cloud or the cluster refused
    /// something: then more was tried than can be foreseen.
    pub(crate) fn surprise(&self, prediction: &Prediction) -> Option<String> {
        if !self.is_comparable(prediction) {
            return None;
        }
        let done: Vec<Asked> = self
            .calls_from(prediction.calls)
            .into_iter()
            .filter(|call| !is_told(call))
            .filter_map(|call| call.request)
            .collect();
        let after = prediction.names.clone().with_done(&self.cloud);
        // Beside the API server's own: several Services are worked on at the same time, and what one does to the load balancer of another comes at any moment.
        let apart = self.kube.list("services", "default").unwrap().len() > 2;
        let planned = by_subject(&prediction.names, &prediction.planned, apart);
        let done = by_subject(&after, &done, apart);
        (planned != done).then(|| {
            let text = |calls: &BTreeMap<String, Vec<String>>| {
                calls
                    .iter()
                    .flat_map(|(subject, calls)| calls.iter().map(move |call| format!("{subject}: {call}\n")))
                    .collect::<String>()
            };
            format!("planned:\n{}\ndone:\n{}", text(&planned), text(&done))
        })
    }
}

impl World {
    /// Whether what follows was or is compared with the prediction.
    pub(crate) fn is_comparable(&self, prediction: &Prediction) -> bool {
        prediction.complete && self.refusals() == prediction.refusals
    }
}

/// Events tell of what is done, and a lease says who does it.
fn is_told(call: &Call) -> bool {
    call.side == Side::Kubernetes && (call.name.contains("events") || call.name.contains("leases"))
}

/// The calls about each subject, in order; with `apart` those to Kubernetes and those to the cloud each for themselves.
pub(crate) fn by_subject(names: &Names, calls: &[Asked], apart: bool) -> BTreeMap<String, Vec<String>> {
    let mut subjects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in calls {
        if !canonical::is_note(call) {
            let side = if apart && call.path.starts_with("/api/") { " in Kubernetes" } else { "" };
            let subject = format!("{}{side}", names.subject(call));
            subjects.entry(subject).or_default().push(names.line(call));
        }
    }
    subjects.values_mut().for_each(|calls| sort_what_has_no_order(calls, apart));
    subjects
}

/// Lists of children have no order, and what goes one after the other goes in theirs. Nor do the members that several Services
/// have on one load balancer: it is a matter of who gets its lock first.
fn sort_what_has_no_order(calls: &mut [String], several_services: bool) {
    let is_deletion = |call: &String| call.starts_with("DELETE ");
    let is_batch = |call: &String| {
        several_services
            && call.starts_with("PUT ")
            && call.split(' ').nth(1).is_some_and(|path| path.ends_with("/members"))
    };
    let alike = |one: &String, next: &String| {
        is_deletion(one) && is_deletion(next) || is_batch(one) && is_batch(next)
    };
    for run in calls.chunk_by_mut(alike) {
        run.sort();
    }
}

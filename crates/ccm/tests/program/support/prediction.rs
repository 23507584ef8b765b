//! A plan of what comes next, and whether that is what came.

use std::sync::Arc;

use openstack_ccm_manager::kubernetes::{ControllerClients, cluster_uid};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};
use openstack_ccm_tools::plan::as_if::AsIf;
use openstack_ccm_tools::plan::cluster;
use openstack_ccm_tools::plan::forecast::{Forecast, State};
use openstack_ccm_tools::plan::journal::{Call as Planned, Journal};
use openstack_ccm_tools::plan::rehearsal::{Chosen, Item, Stage, Subject, rehearse};

use super::canonical::{self, Names};
use super::line::cloud;
use super::order::{BySubject, Change, by_subject, left};
use super::{Call, Side, World};

/// A plan, and what is needed to compare it with what follows.
pub(crate) struct Prediction {
    pub(crate) planned: Vec<Change>,
    pub(crate) names: Names,
    /// Places in the world's records when it was made.
    pub(super) calls: usize,
    refusals: usize,
    /// Whether there were several Services when it was made.
    several_services: bool,
    /// Why not everything could be planned to its end.
    pub(crate) incomplete: Option<State>,
}

/// How far what was done got with what was planned.
pub(crate) enum Progress {
    /// Nothing is compared: not everything could be planned, or something was refused.
    Unknown,
    /// Something was done that was not planned, or not next.
    Surprise(String),
    /// So many of the planned calls are still to be done.
    Left(usize),
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
            cloud: Arc::new(self.cloud_of(openstack)),
            cluster_uid: uid,
            options: self.options(),
            journal,
        };
        rehearse(stage, &Chosen::All, |_, _| {}).await.unwrap().items
    }

    /// Plans what comes next.
    pub(crate) async fn predict(&self) -> Prediction {
        let items = self.plan(true, AsIf::default()).await;
        let incomplete = items
            .iter()
            .map(|item| Forecast::of(item).state)
            .find(|state| !matches!(state, State::Settled | State::Refused(_) | State::Keeps(_)));
        let calls: Vec<&Planned> = items.iter().flat_map(|item| &item.calls).collect();
        let names = Names::before(&self.cloud).with_planned(&calls);
        let planned = items.iter().flat_map(planned).collect();
        let (calls, refusals) = (self.call_count(), self.refusals());
        Prediction {
            planned,
            names,
            calls,
            refusals,
            several_services: self.has_several_services(),
            incomplete,
        }
    }

    /// What was done since, where it is other than planned. Nothing is compared where the cloud or the cluster refused
    /// something: then more was tried than can be foreseen.
    pub(crate) fn surprise(&self, prediction: &Prediction) -> Option<String> {
        match self.progress(prediction) {
            Progress::Unknown | Progress::Left(0) => None,
            Progress::Left(_) => Some(self.beside_each_other(prediction)),
            Progress::Surprise(surprise) => Some(surprise),
        }
    }

    /// How far what was done since got with what was planned.
    pub(crate) fn progress(&self, prediction: &Prediction) -> Progress {
        if !self.is_comparable(prediction) {
            return Progress::Unknown;
        }
        let (planned, done) = self.both(prediction);
        left(&planned, &done)
            .map_or_else(|| Progress::Surprise(self.beside_each_other(prediction)), Progress::Left)
    }

    /// What was planned and what was done since, by subject.
    fn both(&self, prediction: &Prediction) -> (BySubject, BySubject) {
        let apart = self.are_apart(prediction);
        let done = self.changes_from(prediction.calls);
        let after = prediction.names.clone().with_done(&self.cloud);
        (by_subject(&prediction.names, &prediction.planned, apart), by_subject(&after, &done, apart))
    }

    pub(super) fn beside_each_other(&self, prediction: &Prediction) -> String {
        let text = |calls: &BySubject| {
            calls
                .iter()
                .flat_map(|(subject, calls)| calls.iter().map(move |call| format!("{subject}: {call}\n")))
                .collect::<String>()
        };
        let (planned, done) = self.both(prediction);
        format!("planned:\n{}\ndone:\n{}", text(&planned), text(&done))
    }

    /// Whether several Services are worked on at the same time. One that goes, or comes, was or is one of them.
    fn are_apart(&self, prediction: &Prediction) -> bool {
        prediction.several_services || self.has_several_services()
    }

    /// Beside the API server's own.
    fn has_several_services(&self) -> bool {
        self.kube.list("services", "default").unwrap().len() > 2
    }

    /// Whether what follows was or is compared with the prediction.
    pub(crate) fn is_comparable(&self, prediction: &Prediction) -> bool {
        prediction.incomplete.is_none() && self.refusals() == prediction.refusals
    }

    /// The requests for changes from a place in the records on.
    pub(crate) fn changes_from(&self, place: usize) -> Vec<Change> {
        let calls = self.calls_from(place).into_iter().filter(|call| !is_report(call));
        calls.filter_map(|call| Some((call.request?, call.reconciled))).collect()
    }
}

/// The calls of an item, as those that are made.
pub(crate) fn planned(item: &Item) -> Vec<Change> {
    let service = match &item.subject {
        Subject::Service(key) => Some(key.to_string()),
        Subject::Nodes | Subject::NodeLifecycle | Subject::Routes => None,
    };
    item.calls.iter().map(|call| (canonical::asked(call), service.clone())).collect()
}

/// Events report what is done, and a lease says who does it.
fn is_report(call: &Call) -> bool {
    call.side == Side::Kubernetes && (call.name.contains("events") || call.name.contains("leases"))
}

//! One change after another, and what each of them costs.

use anyhow::Result;

use super::SERVICES;
use super::burst::{self, PLACES, sketch};
use super::limit;
use super::meter::{Meter, Rest};
use super::most::{CREATE, DELETE, NODE_ADDED, PORT_ADDED, PROXY_OFF, RESTART};
use crate::artifacts::OccmRelease;
use crate::kubernetes::proxy::Mode;
use crate::machine::process::Daemon;
use crate::network::NODES;
use crate::programs::occm;
use crate::report::cost::Sender;
use crate::report::cost::{Cost, Served};
use crate::scenario::CURRENT;
use crate::scenario::steps::annotate;
use crate::scenario::steps::{self, published_through, remove};
use crate::stage::Stage;

/// The changes, made by one controller.
pub(super) struct Course {
    scenario: &'static str,
    by: Sender,
    /// Goes before the name of each change.
    turn: &'static str,
    meter: Meter,
    occm: Option<Daemon>,
}

impl Course {
    /// On a cluster of its own, because the audit log begins with its server.
    ///
    /// # Errors
    /// The cluster or the controller cannot be started.
    pub(super) fn begin(
        stage: &mut Stage,
        scenario: &'static str,
        by: Sender,
        turn: &'static str,
    ) -> Result<Self> {
        // A folder with a name that another group used would have its etcd.
        let name = format!("{scenario} {turn}{by:?}").replace([' ', ','], "-");
        let audit = stage.start_audited_cluster(&name, CURRENT)?;
        for place in PLACES {
            stage.join(place, CURRENT, Mode::Iptables)?;
        }
        let mut course = Self { scenario, by, turn, meter: Meter::new(audit, by), occm: None };
        course.start(stage)?;
        // A log that shows no request at all would show none of the controller either.
        stage.cloud.user.load_balancers()?;
        Ok(course)
    }

    fn start(&mut self, stage: &mut Stage) -> Result<()> {
        if self.by == Sender::OpenstackCcm {
            return stage.start_controller();
        }
        occm::allow(&stage.api()?)?;
        let program = stage.artifacts.occm(OccmRelease::V1_36)?;
        let cluster = stage.cluster()?;
        let launch = &cluster.launch;
        let folder = cluster.plane.folder();
        self.occm = Some(occm::start(&program, folder, launch.kubeconfig(), launch.cloud_config())?);
        Ok(())
    }

    fn stop(&mut self, stage: &mut Stage) -> Result<()> {
        self.occm.take().map_or_else(|| stage.stop_controller(), Daemon::stop)
    }

    /// All changes.
    ///
    /// # Errors
    /// A part cannot be set up.
    pub(super) fn run(mut self, stage: &mut Stage, bursts: &[usize]) -> Result<()> {
        for count in bursts {
            self.burst(stage, *count)?;
        }
        let first = SERVICES[0];
        let mut sketch = sketch(first);
        let api = stage.api()?;
        self.measure(stage, CREATE, 1, |_, stage| create(stage, &SERVICES[..1]));
        self.measure(stage, CREATE, 5, |_, stage| create(stage, &SERVICES[1..]));
        self.measure(stage, PORT_ADDED, 1, |_, _| {
            sketch.ports.push(8080);
            sketch.update(&api, &PLACES)
        });
        self.node_joins(stage, 13);
        self.measure(stage, PROXY_OFF, 1, |_, _| {
            annotate(&api, first, &[("proxy-protocol", "false".into())])
        });
        for again in ["", "again, "] {
            self.stop(stage)?;
            self.measure_as(stage, &format!("{again}{RESTART} 6"), RESTART, 6, Self::start);
        }
        self.measure(stage, DELETE, 6, |_, stage| remove(stage, &SERVICES));
        self.stop(stage)?;
        stage.check(self.scenario, &self.case("clean-up"), |stage| steps::nothing_left(stage));
        stage.end_proxy(NODES[2])
    }

    /// A node joins, and everywhere it is confirmed that it did.
    fn node_joins(&mut self, stage: &mut Stage, pools: usize) {
        self.record(stage, &format!("{NODE_ADDED} {pools}"), |course, stage| {
            let counted = course.meter.begin(stage)?;
            stage.join(NODES[2], CURRENT, Mode::Iptables)?;
            let rest = if course.by == Sender::OpenstackCcm { Rest::Confirmed } else { Rest::Calm };
            Ok(course.meter.end(stage, rest, &counted)?.with_limit(limit(NODE_ADDED, pools)))
        });
    }

    /// The node leaves again. That is not counted, nor is what it leads to counted with the next change.
    fn node_leaves(&self, stage: &mut Stage) -> Result<()> {
        let counted = self.meter.begin(stage)?;
        stage.end_proxy(NODES[2])?;
        stage.api()?.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
        self.meter.end(stage, Rest::Confirmed, &counted).map(drop)
    }

    fn burst(&mut self, stage: &mut Stage, count: usize) -> Result<()> {
        let names: Vec<String> = (1..=count).map(|number| format!("burst-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.record(stage, &format!("{CREATE} {count}, in a burst"), |course, stage| {
            let counted = course.meter.begin(stage)?;
            let times = burst::create(&stage.api()?, &names)?;
            let cost = course.meter.end(stage, Rest::Calm, &counted)?.with_limit(limit(CREATE, count));
            Ok(Cost { served: Served::of(&times), ..cost })
        });
        if count > SERVICES.len() {
            self.node_joins(stage, 2 * count);
            // What OCCM does not bring to an end here shows in its next change.
            let left = self.node_leaves(stage);
            if self.by == Sender::OpenstackCcm {
                left?;
            }
        }
        let change = format!("{DELETE} {count}, in a burst");
        self.measure_as(stage, &change, DELETE, count, |_, stage| remove(stage, &names));
        Ok(())
    }

    fn measure(
        &mut self,
        stage: &mut Stage,
        change: &str,
        count: usize,
        make: impl FnOnce(&mut Self, &mut Stage) -> Result<()>,
    ) {
        self.measure_as(stage, &format!("{change} {count}"), change, count, make);
    }

    fn measure_as(
        &mut self,
        stage: &mut Stage,
        title: &str,
        change: &str,
        count: usize,
        make: impl FnOnce(&mut Self, &mut Stage) -> Result<()>,
    ) {
        self.record(stage, title, |course, stage| {
            let counted = course.meter.begin(stage)?;
            make(course, stage)?;
            Ok(course.meter.end(stage, Rest::Calm, &counted)?.with_limit(limit(change, count)))
        });
    }

    /// A change that OCCM does not bring to an end is no failure of what is tested.
    fn record(
        &mut self,
        stage: &mut Stage,
        change: &str,
        look: impl FnOnce(&mut Self, &mut Stage) -> Result<Cost>,
    ) {
        let (scenario, case, by) = (self.scenario, self.case(change), self.by);
        let change = format!("{}{change}", self.turn);
        stage.measure(scenario, &case, |stage| match look(self, stage) {
            Ok(cost) => {
                let cost = Cost { change, ..cost }.within_limit()?;
                Ok((cost.to_string(), Some(cost)))
            }
            Err(error) if by == Sender::Occm => Ok((format!("OCCM does not end it: {error:#}"), None)),
            Err(error) => Err(error),
        });
    }

    fn case(&self, change: &str) -> String {
        match self.by {
            Sender::Occm => format!("{}{change}, by OCCM", self.turn),
            Sender::OpenstackCcm | Sender::Other => format!("{}{change}", self.turn),
        }
    }
}

/// Creates Services at once and waits until all are published.
fn create(stage: &mut Stage, services: &[&str]) -> Result<()> {
    let api = stage.api()?;
    for service in services {
        sketch(service).create(&api, &PLACES)?;
    }
    services.iter().try_for_each(|service| published_through(&api, service).map(drop))
}

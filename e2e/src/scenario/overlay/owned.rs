//! Services whose load balancers belong to the controller of another cloud.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::SCENARIO;
use crate::artifacts::Framework;
use crate::backends::stream::{Stream, Tally};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::history::History;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::owner::{INGRESS, Owner};
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::scenario::steps::{self, Reach, clients_inside, green, published_through, red};
use crate::stage::Stage;

/// A Service with PROXY protocol, as the users of one cloud write it.
pub(in crate::scenario) struct Sketch {
    /// Its name: that of the cloud.
    pub(in crate::scenario) name: &'static str,
    /// Version of the PROXY protocol.
    version: &'static str,
    /// The annotation by which its users ask for the PROXY protocol, with the value.
    pub(super) annotation: (&'static str, &'static str),
    /// What the controller of this cloud publishes.
    ingress: &'static str,
}

impl Sketch {
    /// The Service, for openstack-ccm and for the controller of this cloud.
    pub(in crate::scenario) fn service(&self, internal: bool) -> ServiceSketch {
        ServiceSketch::proxy(self.name, self.version, internal)
            .annotate(self.annotation.0, self.annotation.1)
            .annotate(INGRESS, self.ingress)
    }
}

pub(in crate::scenario) const DIGITAL_OCEAN: Sketch = Sketch {
    name: "digitalocean",
    version: "v2",
    annotation: ("service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", "true"),
    ingress: r#"[{"ip": "{address}"}]"#,
};
pub(in crate::scenario) const LINODE: Sketch = Sketch {
    name: "linode",
    version: "v1",
    annotation: ("service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", "v1"),
    ingress: r#"[{"hostname": "lb.linode.test", "ip": "{address}"}]"#,
};
/// Their names.
pub(super) const NAMES: [&str; 2] = [DIGITAL_OCEAN.name, LINODE.name];
/// `--cloud` for both.
pub(super) const CLOUDS: &str = "--cloud=digitalocean,linode";

/// A restarted owner writes after its pass, and the overlay after that; the length of the measure, no wait for readiness.
const WRITING: Duration = Duration::from_secs(2);

/// What became of the connections of a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dials {
    pub(super) answered: u64,
    /// Refused, closed or timed out.
    pub(super) failed: u64,
    /// Arrived at the ingress without a PROXY header.
    pub(super) broken: usize,
}

/// The Services of a cluster and who owns them.
pub(super) struct Owned {
    pub(super) api: Kubernetes,
    /// All statuses that there were.
    pub(super) history: History,
    /// The owner, while it runs.
    pub(super) owner: Option<Owner>,
}

impl Owned {
    /// Has openstack-ccm make load balancers for the Services, and hands these over to the newest owner.
    pub(super) fn prepare(stage: &mut Stage) -> Result<Self> {
        let api = stage.api()?;
        for sketch in [DIGITAL_OCEAN, LINODE] {
            sketch.service(true).create(&api, &[NODES[0], NODES[1]])?;
        }
        stage.start_controller()?;
        for name in NAMES {
            published_through(&api, name)?;
        }
        stage.stop_controller()?;
        let history = History::begin(&api)?;
        let mut owned = Self { api, history, owner: None };
        owned.begin(stage, Framework::V0_36)?;
        Ok(owned)
    }

    /// Replaces the owner by one of a version, and waits until it has looked at everything.
    pub(super) fn begin(&mut self, stage: &mut Stage, framework: Framework) -> Result<()> {
        self.end()?;
        let mut owner = start(stage, framework)?;
        owner.looked(&NAMES, 1)?;
        self.owner = Some(owner);
        Ok(())
    }

    /// Ends the owner.
    pub(super) fn end(&mut self) -> Result<()> {
        self.owner.take().map_or(Ok(()), Owner::stop)
    }

    /// Restarts an owner of a version some times while a pod connects all the time.
    pub(super) fn dialled_during_restarts(
        &mut self,
        stage: &mut Stage,
        framework: Framework,
        restarts: usize,
    ) -> Result<Dials> {
        let folder = stage.cluster()?.plane.folder().to_owned();
        let address = self.published(DIGITAL_OCEAN.name, "Proxy")?;
        let before = stage.ingress.broken_headers();
        let stream = Stream::start(&NODES[0].client(), &address, &folder)?;
        let restarted = (0..restarts).try_for_each(|_| {
            self.begin(stage, framework)?;
            std::thread::sleep(WRITING);
            NAMES.iter().try_for_each(|name| self.published(name, "Proxy").map(drop))
        });
        let Tally { answered, failed } = stream.end()?;
        restarted?;
        Ok(Dials { answered, failed, broken: stage.ingress.broken_headers() - before })
    }

    /// The owner publishes without a mode, and pods are short-circuited.
    pub(super) fn is_red(&self, stage: &Stage, name: &str) -> Result<String> {
        let address = self.published(name, "VIP")?;
        let seen = red(stage, &address, &clients_inside(stage, Reach::Internal))?;
        Ok(format!("{name} {}: {seen}", self.api.ingress(name)?))
    }

    /// The same Service has the mode, and pods get through.
    pub(super) fn is_green(&self, stage: &Stage, name: &str) -> Result<String> {
        let address = self.published(name, "Proxy")?;
        let seen = green(&address, &clients_inside(stage, Reach::Internal))?;
        Ok(format!("{name} {}: {seen}", self.api.ingress(name)?))
    }

    /// Waits until the address is published with a mode, beside whatever the owner writes there, and returns it.
    pub(super) fn published(&self, name: &str, mode: &str) -> Result<String> {
        let address = steps::address(&self.api, name)?;
        soon(&format!("{name} is published with ipMode {mode}"), || {
            let ingress = self.api.ingress(name)?;
            ensure!(ingress.as_array().is_some_and(|entries| entries.len() == 1), "{ingress}");
            ensure!(ingress[0]["ip"] == json!(address) && ingress[0]["ipMode"] == mode, "{ingress}");
            Ok(())
        })?;
        Ok(address)
    }

    /// Writes an annotation, which starts a pass of the owner.
    pub(super) fn annotate(&self, name: &str, key: &str, value: &Value) -> Result<()> {
        let change = json!({"metadata": {"annotations": {key: value}}});
        self.api.patch(&Kubernetes::service_path(name), &change).map(drop)
    }

    /// No status since a moment let nodes short-circuit.
    pub(super) fn never_short_circuited_since(&self, moment: Instant) -> Result<usize> {
        let versions = self.history.since(moment);
        let found = versions.iter().find(|version| version.is_short_circuited());
        ensure!(found.is_none(), "{found:?}");
        Ok(versions.len())
    }
}

/// Starts an owner of a version beside whatever runs.
pub(in crate::scenario) fn start(stage: &mut Stage, framework: Framework) -> Result<Owner> {
    let artifacts = stage.artifacts.clone();
    let cluster = stage.cluster.as_ref().context("no cluster runs")?;
    Owner::start(&cluster.plane, &artifacts, framework)
}

/// The Services are red with their owner alone.
pub(super) fn red_alone(stage: &mut Stage, owned: &Owned) {
    for name in NAMES {
        stage.check(SCENARIO, &format!("{}, {name}, its controller alone", kind(stage)), |stage| {
            Ok(format!("RED as it must be: {}", owned.is_red(stage, name)?))
        });
    }
}

/// The Services are green with this beside their owner.
pub(super) fn green_with(stage: &mut Stage, owned: &Owned, what: &str) {
    for name in NAMES {
        stage.check(SCENARIO, &format!("{}, {name}, with the {what}", kind(stage)), |stage| {
            Ok(format!("GREEN: {}", owned.is_green(stage, name)?))
        });
    }
}

/// The API server of the present cluster, for the names of cases.
pub(super) fn kind(stage: &Stage) -> String {
    stage.cluster.as_ref().map_or_else(String::new, |cluster| cluster.plane.kind.text())
}

/// Ends the owner and has openstack-ccm remove these load balancers.
pub(super) fn clean_up(stage: &mut Stage, owned: &mut Owned, names: &[&str]) {
    let case = format!("{}, clean-up", kind(stage));
    stage.check(SCENARIO, &case, |stage| {
        owned.end()?;
        stage.start_controller()?;
        let left = steps::release(stage, names)?;
        stage.stop_controller()?;
        Ok(left)
    });
}

//! The Service belongs to the controller of another cloud, which knows no `ipMode`. Without touching that controller, a policy
//! of the API server helps, or where there is none, the overlay.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::SCENARIO;
use super::issuance::Issuance;
use super::own::released;
use crate::artifacts::Framework;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::manifests;
use crate::kubernetes::overlay::{OverlayLaunch, policy, remove_policy};
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::scenario::overlay::owned::{DIGITAL_OCEAN, LINODE, Sketch, start};
use crate::scenario::steps::{self, Reach, client_outside, clients_inside, green, published_through, red};
use crate::stage::Stage;

/// The Service of one cloud, with the names that are proved through it.
struct Subject {
    service: &'static str,
    /// What its controller writes, with the address of the load balancer.
    entry: Value,
    address: String,
    /// Asked for while the controller of the cloud is alone.
    waiting: &'static str,
    /// Asked for when the Service has the mode.
    fresh: &'static str,
}

/// All cases.
pub(super) fn run(stage: &mut Stage, issuance: &mut Issuance) -> Result<()> {
    let api = stage.api()?;
    let sketches = [DIGITAL_OCEAN, LINODE];
    for sketch in &sketches {
        sketch.service(false).create(&api, &[NODES[0], NODES[1]])?;
    }
    stage.start_controller()?;
    for Sketch { name, .. } in &sketches {
        published_through(&api, name)?;
    }
    stage.stop_controller()?;
    let mut owner = start(stage, Framework::V0_36)?;
    owner.looked(&sketches.map(|sketch| sketch.name), 1)?;
    with_policy(stage, issuance, &api)?;
    with_overlay(stage, issuance, &api)?;
    owner.stop()?;
    stage.start_controller()?;
    stage.check(SCENARIO, "controllers of other clouds, clean-up", |stage| {
        released(stage, &[DIGITAL_OCEAN.name, LINODE.name])
    });
    stage.stop_controller()
}

/// One command: the API server sets the mode from then on.
fn with_policy(stage: &mut Stage, issuance: &mut Issuance, api: &Kubernetes) -> Result<()> {
    let address = steps::address(api, DIGITAL_OCEAN.name)?;
    let subject = Subject {
        service: DIGITAL_OCEAN.name,
        entry: json!({"ip": address}),
        address,
        waiting: "shop.e2e.test",
        fresh: "shop-fresh.e2e.test",
    };
    subject.alone(stage, issuance, api);
    for object in policy(stage.program(), &["--cloud=digitalocean"])? {
        manifests::apply(api, &object)?;
    }
    subject.helped(stage, issuance, api, "policy", || {
        soon("an empty write gives the Service the mode", || {
            api.patch(&format!("{}/status", Kubernetes::service_path(subject.service)), &json!({}))?;
            subject.published(api, "Proxy")
        })
    });
    remove_policy(api)
}

/// Two commands: the overlay is installed, and its `check` finds nothing wrong. No policy is in force.
fn with_overlay(stage: &mut Stage, issuance: &mut Issuance, api: &Kubernetes) -> Result<()> {
    let address = steps::address(api, LINODE.name)?;
    let subject = Subject {
        service: LINODE.name,
        entry: json!({"hostname": "lb.linode.test", "ip": address}),
        address,
        waiting: "blog.e2e.test",
        fresh: "blog-fresh.e2e.test",
    };
    subject.alone(stage, issuance, api);
    let program = stage.program().to_owned();
    let launch = OverlayLaunch::prepare(&stage.cluster()?.plane, &program)?;
    let replica = launch.start(0, &[])?;
    subject.helped(stage, issuance, api, "overlay", || {
        soon("the overlay gives the Service the mode", || subject.published(api, "Proxy"))?;
        let said = launch.command(&["check"])?;
        ensure!(said.contains(subject.service), "`check` says {said}");
        Ok(())
    });
    replica.stop()
}

impl Subject {
    /// Pods do not reach the load balancer, and no certificate arrives.
    fn alone(&self, stage: &mut Stage, issuance: &mut Issuance, api: &Kubernetes) {
        stage.check(SCENARIO, &format!("{}, its controller alone", self.service), |stage| {
            self.published(api, "VIP")?;
            let pods = red(stage, &self.address, &clients_inside(stage, Reach::Floating))?;
            green(&self.address, &[client_outside(Reach::Floating)]).context("the client outside")?;
            let seen = issuance.is_red(stage, self.waiting, &self.address)?;
            Ok(format!(
                "{} {}: {seen}; other pods: {pods}; outside is well",
                self.service,
                api.ingress(self.service)?
            ))
        });
    }

    /// With something beside its controller, the certificate that waited arrives, and so does one asked for afterwards.
    fn helped(
        &self,
        stage: &mut Stage,
        issuance: &mut Issuance,
        api: &Kubernetes,
        what: &str,
        set: impl FnOnce() -> Result<()>,
    ) {
        stage.check(SCENARIO, &format!("{}, the same Certificate with the {what}", self.service), |stage| {
            set()?;
            let since = Instant::now();
            let seen = issuance.is_green(stage, self.waiting, since)?;
            Ok(format!("GREEN: {}: {seen}", api.ingress(self.service)?))
        });
        stage.check(SCENARIO, &format!("{}, a fresh Certificate with the {what}", self.service), |stage| {
            let before = stage.ingress.broken_headers();
            let since = Instant::now();
            issuance.request(stage, self.fresh, &self.address)?;
            let seen = issuance.is_green(stage, self.fresh, since)?;
            let broken = stage.ingress.broken_headers() - before;
            ensure!(broken == 0, "nginx logs `broken header` {broken} times");
            Ok(format!("GREEN: {seen}; no `broken header`"))
        });
    }

    /// The status is what its controller writes, with this mode.
    fn published(&self, api: &Kubernetes, mode: &str) -> Result<()> {
        let ingress = api.ingress(self.service)?;
        let mut entry = self.entry.clone();
        entry["ipMode"] = mode.into();
        ensure!(ingress == json!([entry]), "{ingress}");
        Ok(())
    }
}

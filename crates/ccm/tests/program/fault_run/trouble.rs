//! What goes wrong in a run.

use std::time::Duration;

use fastrand::Rng;
use http::Method;
use openstack_ccm_kube_sim::{Fault as KubernetesFault, FaultId};
use openstack_ccm_openstack_sim::{Fault as CloudFault, FaultId as CloudFaultId, OperationKind, WorkerFault};
use serde_json::json;

use super::stage::{Stage, name};
use super::story::{Edit, Kind, Step};
use super::tenant::Tenant;
use crate::support::{ADDRESS, LB_ID, Stop, World, lb_name};
use crate::watch::Watch;

pub(super) struct Trouble {
    random: Rng,
    kubernetes: Vec<FaultId>,
    /// The program runs with credentials of another project.
    wrong_project: Vec<CloudFaultId>,
    tenant: Tenant,
}

/// Written where the load balancer was made for the Service.
const OWNED_LB_ID: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
/// Seconds that servers ask to wait which mean it well or not at all.
const ABSURD: [u64; 3] = [86_400, u64::MAX, u64::MAX / 1000 + 1];

impl Trouble {
    pub(super) fn of(random: Rng) -> Self {
        Self { random, kubernetes: Vec::new(), wrong_project: Vec::new(), tenant: Tenant::default() }
    }

    /// Lets some things go wrong from now on, while the edits of a step are made.
    pub(super) async fn begin(&mut self, stage: &mut Stage, step: &Step) {
        if self.random.u8(0..6) == 0 && Kind::Absences.is_included() {
            stage.restored = true;
            self.lose_sight(stage).await;
        }
        // A kind that is left out draws nothing: the others are what they are without it.
        if Kind::Gaps.is_included() && self.random.u8(0..4) == 0 {
            stage.restored = true;
            self.leave_gaps(stage).await;
        }
        if Kind::Hangs.is_included() && self.random.u8(0..3) == 0 {
            self.hang(&stage.world, step);
        }
        let world = &mut stage.world;
        if self.random.bool() && Kind::Tenant.is_included() {
            self.tenant.act(world, &mut self.random);
        }
        self.leave_wrong_project(world).await;
        let is_wrong = self.random.u8(0..10) == 0 && Kind::WrongProject.is_included();
        // What Kubernetes has forgotten and the wrong project does not show was never there, as far as can be known.
        if is_wrong && !stage.restored && bears_wrong_project(&stage.world, step) {
            self.enter_wrong_project(&mut stage.world).await;
        }
        let world = &mut stage.world;
        for _ in 0..self.random.usize(0..4) {
            world.cloud.faults().add(self.cloud());
        }
        if self.random.u8(0..3) == 0 && Kind::Lists.is_included() {
            world.cloud.faults().add(self.list());
        }
        for _ in 0..self.random.usize(0..3) {
            let fault = self.kubernetes();
            self.kubernetes.push(world.kube.inject(fault));
        }
        if self.random.u8(0..4) == 0 {
            let batches = WorkerFault::fail(OperationKind::MemberBatch).times(self.random.u32(1..4));
            world.cloud.faults().add_worker(batches);
        }
        if self.random.bool() {
            let call = self.random.usize(0..30);
            world.stop_at(if self.random.bool() { Stop::Before(call) } else { Stop::After(call) });
        }
        if self.random.u8(0..4) == 0 {
            world.kube.break_watches();
        }
    }

    /// Nothing goes wrong from now on, but for what the tenant does.
    pub(super) async fn end(mut self, stage: &mut Stage) -> Tenant {
        let Stage { world, watch, .. } = stage;
        self.leave_wrong_project(world).await;
        world.cloud.faults().clear();
        self.tenant.go_on(world);
        for fault in self.kubernetes {
            world.kube.remove_fault(fault);
        }
        // What a list lacked is seen in the next one.
        list_anew(world, watch);
        for node in world.kube.list("nodes", "").unwrap() {
            // As each kubelet does every five minutes.
            let report = json!({"status": {"nodeInfo": {"bootID": "after the trouble"}}});
            world
                .kube
                .patch_status("nodes", "", node["metadata"]["name"].as_str().unwrap(), &report)
                .unwrap();
        }
        if world.is_killed_within(Duration::ZERO).await {
            world.kill().await;
            world.start().await;
        }
        world.stop_at(Stop::Before(usize::MAX));
        self.tenant
    }

    /// The API server shows no Services, or no Nodes either, and then all again, as they were: a restored backup, or an address that
    /// led elsewhere.
    async fn lose_sight(&mut self, stage: &Stage) {
        let kube = &stage.world.kube;
        let before = kube.backup();
        let and_nodes = self.random.bool();
        lose(stage, |resource| resource == "services" || and_nodes);
        let while_lost = Duration::from_millis(self.random.u64(0..30_000));
        tokio::time::sleep(while_lost).await;
        stage.watch.unasked(|| kube.restore(&before));
    }

    /// Some Services and Nodes are not there for a while, or some Services are missing in the next lists of all.
    async fn leave_gaps(&mut self, stage: &Stage) {
        if self.random.bool() {
            self.hide(stage);
            return;
        }
        let kube = &stage.world.kube;
        let before = kube.backup();
        let lost = lose(stage, |_| self.random.bool());
        let while_lost = Duration::from_millis(self.random.u64(0..30_000));
        tokio::time::sleep(while_lost).await;
        // What was done for the others meanwhile stays.
        stage.watch.unasked(|| {
            for (resource, namespace, name) in &lost {
                kube.bring_back(&before, resource, namespace, name).unwrap();
            }
        });
    }

    /// The next lists lack some Services, which are there for who asks for one of them.
    fn hide(&mut self, stage: &Stage) {
        list_anew(&stage.world, &stage.watch);
        let mut services = stage.world.kube.list("services", "").unwrap();
        services.retain(|_| self.random.bool());
        let fault = stage.world.answer_lists(&services, self.random.usize(1..3));
        self.kubernetes.push(fault);
    }

    /// Whatever is done next to a load balancer of ours does not end: its creation, or a change.
    fn hang(&mut self, world: &World, step: &Step) {
        let services = world.kube.list("services", "default").unwrap();
        let names = services.iter().filter_map(|service| service["metadata"]["name"].as_str());
        let mut load_balancers: Vec<String> = names.map(lb_name).collect();
        load_balancers.extend(step.edits.iter().filter_map(|edit| match edit {
            Edit::Create { service, .. } => Some(lb_name(&name(*service))),
            _ => None,
        }));
        if let Some(load_balancer) = self.random.choice(load_balancers) {
            world.cloud.faults().add_worker(WorkerFault::hold(None).of(&load_balancer));
        }
    }

    /// A list of the project that is slow or fails.
    fn list(&mut self) -> CloudFault {
        let random = &mut self.random;
        let (service, path) = [
            ("load-balancer", "lbaas/loadbalancers"),
            ("load-balancer", "lbaas/listeners"),
            ("load-balancer", "lbaas/pools"),
            ("network", "floatingips"),
        ][random.usize(0..4)];
        let fault =
            CloudFault::new().service(service).method(Method::GET).path(&format!("^/v2.0/{path}(\\?|$)"));
        let fault = fault.times(random.u32(1..10));
        match random.u8(0..3) {
            0 => fault.answer(504, json!({})),
            1 => fault.answer(400, json!({"faultstring": "Invalid state"})),
            _ => fault.latency(Duration::from_secs(random.u64(1..120))),
        }
    }

    /// Starts the program with credentials of another project that may use the same subnet: all that it knew is not there.
    async fn enter_wrong_project(&mut self, world: &mut World) {
        let empty = |service: &str, path: &str, root: &str| {
            let path = format!("^/v2.0/{path}{root}(\\?|$)");
            CloudFault::new().service(service).method(Method::GET).path(&path).answer(200, json!({root: []}))
        };
        let gone =
            json!({"faultcode": "Client", "faultstring": "Load Balancer not found.", "debuginfo": null});
        let one = CloudFault::new().service("load-balancer").path("^/v2.0/lbaas/loadbalancers/[^/]+$");
        let faults = [
            one.answer(404, gone),
            empty("load-balancer", "lbaas/", "loadbalancers"),
            empty("load-balancer", "lbaas/", "listeners"),
            empty("load-balancer", "lbaas/", "pools"),
            empty("network", "", "floatingips"),
        ];
        world.kill().await;
        self.wrong_project = faults.map(|fault| world.cloud.faults().add(fault)).into();
        world.start().await;
    }

    /// Somebody corrects the credentials.
    async fn leave_wrong_project(&mut self, world: &mut World) {
        if self.wrong_project.is_empty() {
            return;
        }
        world.kill().await;
        for fault in self.wrong_project.drain(..) {
            world.cloud.faults().remove(fault);
        }
        world.start().await;
    }

    fn cloud(&mut self) -> CloudFault {
        let random = &mut self.random;
        let service = ["load-balancer", "network", "compute"][random.usize(0..3)];
        let method = [Method::GET, Method::POST, Method::PUT, Method::DELETE][random.usize(0..4)].clone();
        let fault = CloudFault::new().service(service).method(method);
        let fault = fault.after(random.u32(0..6)).times(random.u32(1..4));
        match random.u8(0..6) {
            0 => fault.answer(503, json!({})),
            1 => fault.answer(500, json!({})),
            2 => fault.answer(429, json!({})).retry_after(wait(random, 30)),
            3 => fault.drop_before(),
            4 => fault.drop_after(),
            _ => fault.latency(Duration::from_secs(random.u64(1..20))),
        }
    }

    fn kubernetes(&mut self) -> KubernetesFault {
        let random = &mut self.random;
        let method = ["GET", "PATCH", "POST", "DELETE"][random.usize(0..4)];
        let fault = KubernetesFault::on(method, "").after(random.usize(0..6)).times(random.usize(1..4));
        match random.u8(0..4) {
            0 => fault.unavailable(),
            1 => fault.too_many_requests(wait(random, 10)),
            2 => fault.lose_answer(),
            _ => fault.refuse(),
        }
    }
}

/// The API server loses some Services and Nodes; returns which: kind, namespace and name.
fn lose(stage: &Stage, mut loses: impl FnMut(&str) -> bool) -> Vec<(&'static str, &'static str, String)> {
    let kube = &stage.world.kube;
    let mut lost = Vec::new();
    for (resource, namespace) in [("services", "default"), ("nodes", "")] {
        let objects = kube.list(resource, namespace).unwrap();
        let names = objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
        lost.extend(names.filter(|_| loses(resource)).map(|name| (resource, namespace, name)));
    }
    stage.watch.unasked(|| {
        lost.iter().for_each(|(resource, namespace, name)| kube.lose(resource, namespace, name).unwrap());
    });
    lost
}

/// All who watch have to list again.
fn list_anew(world: &World, watch: &Watch) {
    watch.unasked(|| world.kube.restore(&world.kube.backup()));
}

/// Whether a Service was published, so that the absence of all load balancers means something, and none is let go meanwhile:
/// what it has could not be found. Where none was published, all are created once more. The annotation with the address goes
/// when a load balancer that broke is deleted.
fn bears_wrong_project(world: &World, step: &Step) -> bool {
    let goes = |edit: &Edit| matches!(edit, Edit::Delete { .. } | Edit::Retype { .. });
    let services = world.kube.list("services", "default").unwrap();
    let going = services.iter().any(|service| {
        let held = service["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        !service["metadata"]["deletionTimestamp"].is_null()
            || held && service["spec"]["type"] != "LoadBalancer"
    });
    let published = services.iter().any(|service| {
        let annotations = &service["metadata"]["annotations"];
        service["spec"]["type"] == "LoadBalancer"
            && service["status"]["loadBalancer"]["ingress"].get(0).is_some()
            && annotations[ADDRESS].is_string()
            && annotations[LB_ID].is_string()
            && annotations[LB_ID] == annotations[OWNED_LB_ID]
    });
    published && !going && !step.edits.iter().any(goes)
}

/// Seconds for `Retry-After`: some, or absurdly many.
fn wait(random: &mut Rng, longest: u64) -> u64 {
    let absurd = random.u8(0..4) == 0 && Kind::AbsurdWaits.is_included();
    if absurd { ABSURD[random.usize(0..ABSURD.len())] } else { random.u64(1..longest) }
}

//! What goes wrong in a run.

use std::time::Duration;

use fastrand::Rng;
use http::Method;
use openstack_ccm_kube_sim::{Fault as KubernetesFault, FaultId};
use openstack_ccm_openstack_sim::{Fault as CloudFault, OperationKind, WorkerFault};
use serde_json::json;

use crate::support::{Stop, World};

pub(super) struct Trouble {
    random: Rng,
    kubernetes: Vec<FaultId>,
}

impl Trouble {
    pub(super) fn of(random: Rng) -> Self {
        Self { random, kubernetes: Vec::new() }
    }

    /// Lets some things go wrong from now on.
    pub(super) fn brew(&mut self, world: &World) {
        for _ in 0..self.random.usize(0..4) {
            world.cloud.faults().add(self.cloud());
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

    /// Nothing goes wrong from now on.
    pub(super) async fn end(self, world: &mut World) {
        world.cloud.faults().clear();
        for fault in self.kubernetes {
            world.kube.remove_fault(fault);
        }
        if world.is_killed_within(Duration::ZERO).await {
            world.kill().await;
            world.start().await;
        }
        world.stop_at(Stop::Before(usize::MAX));
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
            2 => fault.answer(429, json!({})).retry_after(random.u64(1..30)),
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
            1 => fault.too_many_requests(random.u64(1..10)),
            2 => fault.lose_answer(),
            _ => fault.refuse(),
        }
    }
}

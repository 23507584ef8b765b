//! The controller: packets do not meet it.

use serde_json::json;

use super::{Break, anywhere, in_cloud};
use crate::doctor_breaks::stage::LEASE;
use crate::support::LB_ID;

pub(super) const BREAKS: &[Break] = &[
    Break::new("nobody leads", anywhere, |stage| {
        let spec = json!({"spec": {"holderIdentity": "", "renewTime": null}});
        stage.world.kube.patch("leases", "kube-system", LEASE, &spec).unwrap();
    })
    .told(&["D002"])
    .told_in(in_cloud),
    Break::new("no Lease", anywhere, |stage| {
        stage.world.kube.delete("leases", "kube-system", LEASE).unwrap();
    })
    .told(&["D002"])
    .told_in(in_cloud),
    Break::new("the Service is being deleted", in_cloud, |stage| {
        stage.world.kube.delete("services", "default", "web").unwrap();
    })
    .told(&["D004"]),
    Break::new("a load balancer named that is not there", in_cloud, |stage| {
        let nothing = "00000000-0000-4000-8000-000000000000";
        stage.world.annotate("web", LB_ID, Some(nothing));
    })
    .told(&["D505"]),
];

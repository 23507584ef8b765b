//! A Service is copied with its annotations into a second cluster, as a backup and `kubectl get -o yaml` have them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{PLACES, all_reach, has_looked, id_of, restart, without_a_break};
use crate::kubernetes::api::{Kubernetes, NAMESPACE};
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::openstack::picture::Picture;
use crate::openstack::writes::Writes;
use crate::scenario::CURRENT;
use crate::scenario::steps::{self, Client, Reach, client_outside, green, published_through, warned};
use crate::stage::Stage;
use crate::stage::beside::{self, ClusterBeside};

const SCENARIO: &str = "18 copied";
const SERVICE: &str = "original";
const REASON: &str = "SyncLoadBalancerFailed";
/// What a controller writes on a Service, and a copy brings along.
const OUTPUT: [&str; 4] = ["load-balancer-id", "load-balancer-address", "owned-load-balancer-id", "settled"];

/// The whole scenario on the present cluster and one beside it.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let sketch = ServiceSketch::proxy(SERVICE, "v1", false);
    sketch.create(&api, &PLACES)?;
    stage.start_controller()?;
    let mut second = ClusterBeside::start(stage, CURRENT, NODES[2])?;
    stage.check(SCENARIO, "published in the first cluster", |stage| {
        let address = published_through(&api, SERVICE)?;
        Ok(format!("{address}: {}", all_reach(stage, &address)?))
    });
    stage.check(SCENARIO, "a copy in a second cluster is refused, and goes without a trace", |stage| {
        refused(stage, &mut second, &sketch)
    });
    stage.check(SCENARIO, "without the annotations the copy gets a load balancer of its own", |stage| {
        of_its_own(stage, &second, &sketch)
    });
    second.end()?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

/// The Service as it is written into another cluster: what the server gives is left out, the finalizer and all annotations stay.
fn copy_of(original: &Value) -> Value {
    let mut copy = original.clone();
    let mut strip = |part: &str, keys: &[&str]| {
        if let Some(part) = copy[part].as_object_mut() {
            part.retain(|key, _| !keys.contains(&key.as_str()));
        }
    };
    strip("metadata", &["uid", "resourceVersion", "creationTimestamp", "managedFields"]);
    strip("spec", &["clusterIP", "clusterIPs"]);
    copy
}

fn make_copy(stage: &Stage, second: &ClusterBeside, sketch: &ServiceSketch) -> Result<()> {
    let copy = copy_of(&stage.api()?.service(SERVICE)?);
    second.api().create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &copy)?;
    sketch.create_endpoints(&second.api(), &[NODES[2]])
}

fn remove_copy(second: &ClusterBeside) -> Result<()> {
    delete_service(&second.api(), SERVICE)?;
    soon("the copy is gone", || second.api().gone(&Kubernetes::service_path(SERVICE)))
}

fn refused(stage: &mut Stage, second: &mut ClusterBeside, sketch: &ServiceSketch) -> Result<String> {
    let api = stage.api()?;
    let (id, status) = (id_of(&api, SERVICE)?, api.ingress(SERVICE)?);
    let address = published_through(&api, SERVICE)?;
    let before = Picture::of(&stage.cloud.user, &id)?;
    without_a_break(stage, &address, |stage| {
        let writes = Writes::from_now(&stage.cloud.folders)?;
        make_copy(stage, second, sketch)?;
        let parts = [&id, "remove loadbalancer.openstack.org/load-balancer-id"];
        let note = warned(&second.api(), SERVICE, REASON, &parts)?;
        has_looked(second.restart_controller()?, 1)?;
        let ingress = second.api().ingress(SERVICE)?;
        ensure!(ingress.is_null(), "the copy is published: {ingress}");
        remove_copy(second)?;
        restart(stage, 1)?;
        all_reach(stage, &address)?;
        writes.none()?;
        before.is_unchanged(&stage.cloud.user, &id)?;
        ensure!(api.ingress(SERVICE)? == status, "the status is {}", api.ingress(SERVICE)?);
        Ok(format!("nothing was written in the cloud; event {REASON}: {note}"))
    })
}

fn of_its_own(stage: &mut Stage, second: &ClusterBeside, sketch: &ServiceSketch) -> Result<String> {
    let api = stage.api()?;
    let (id, address) = (id_of(&api, SERVICE)?, published_through(&api, SERVICE)?);
    let before = Picture::of(&stage.cloud.user, &id)?;
    make_copy(stage, second, sketch)?;
    warned(&second.api(), SERVICE, REASON, &[&id])?;
    steps::annotate(&second.api(), SERVICE, &OUTPUT.map(|key| (key, Value::Null)))?;
    let own = published_through(&second.api(), SERVICE)?;
    let name = format!("kube_service_{}_{NAMESPACE}_{SERVICE}", beside::NAME);
    let balancer = stage.cloud.user.load_balancer(&name)?;
    ensure!(balancer["id"] != json!(id) && own != address, "{balancer} at {own}");
    let place = NODES[2];
    let pod = Client {
        who: format!("pod on {}", place.name()),
        namespace: place.client(),
        address: stage.cloud.router_address.clone(),
    };
    let seen = green(&own, &[pod, client_outside(Reach::Floating)])?;
    before.is_unchanged(&stage.cloud.user, &id)?;
    remove_copy(second)?;
    soon("its load balancer is gone", || {
        let left = stage.cloud.user.load_balancers()?.len();
        ensure!(left == 1, "{left} load balancers");
        Ok(())
    })?;
    before.is_unchanged(&stage.cloud.user, &id)?;
    Ok(format!("{own}: {seen}; when it goes the first one still answers, {}", all_reach(stage, &address)?))
}

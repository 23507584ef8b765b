//! A load balancer is in ERROR by Octavia's database, and its HAProxy knows nothing of it.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{PLACES, all_reach, id_of, members, restart, without_a_break};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::openstack::api::OpenStack;
use crate::openstack::database;
use crate::openstack::picture::Picture;
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::scenario::CURRENT;
use crate::scenario::steps::{self, published_through, warned};
use crate::stage::Stage;

const SCENARIO: &str = "16 in ERROR";
const SERVICE: &str = "broken";
const REASON: &str = "LoadBalancerInError";

/// The whole scenario on the present cluster.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", false).create(&api, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "published", |stage| {
        let address = published_through(&api, SERVICE)?;
        Ok(format!("{address}: {}", all_reach(stage, &address)?))
    });
    stage.check(SCENARIO, "in the database only: a restart of the controller", through_a_restart);
    stage.check(SCENARIO, "a status that was lost meanwhile is published again", |stage| {
        let writes = Writes::from_now(&stage.cloud.folders)?;
        stage.stop_controller()?;
        let address = published_through(&api, SERVICE)?;
        api.write_ingress(SERVICE, &json!([]))?;
        stage.start_controller()?;
        ensure!(published_through(&api, SERVICE)? == address, "another address is published");
        writes.none()?;
        all_reach(stage, &address)
    });
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    stage.check(SCENARIO, "an administrator has it failed over, and what waited is done", failed_over);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    stage.end_proxy(NODES[2])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))
}

fn through_a_restart(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let (id, status) = (id_of(&api, SERVICE)?, api.ingress(SERVICE)?);
    let address = published_through(&api, SERVICE)?;
    let before = Picture::of(&stage.cloud.user, &id)?;
    without_a_break(stage, &address, |stage| {
        let broken = "provisioning_status = 'ERROR', operating_status = 'ONLINE'";
        database::execute("octavia", &format!("UPDATE load_balancer SET {broken} WHERE id = '{id}'"))?;
        let writes = Writes::from_now(&stage.cloud.folders)?;
        restart(stage, 1)?;
        let parts =
            [&id, "ERROR", "ONLINE", "might still forward traffic", "openstack loadbalancer failover"];
        let note = warned(&api, SERVICE, REASON, &parts)?;
        shown_by_metrics(stage)?;
        all_reach(stage, &address)?;
        writes.none()?;
        before.is_unchanged(&stage.cloud.user, &id)?;
        ensure!(id_of(&api, SERVICE)? == id, "another load balancer is the Service's");
        ensure!(api.ingress(SERVICE)? == status, "the status is {}", api.ingress(SERVICE)?);
        Ok(format!("nothing was written in the cloud; event {REASON}: {note}"))
    })
}

fn shown_by_metrics(stage: &mut Stage) -> Result<()> {
    let controller = stage.cluster()?.controller.as_ref();
    soon("the metrics count it", || {
        let lines = controller.map_or(Ok(Vec::new()), |one| one.metrics("openstack_ccm_services_held"))?;
        let counted = |line: &String| line.contains("load_balancer_in_error") && line.ends_with(" 1");
        ensure!(lines.iter().any(counted), "{lines:?}");
        Ok(())
    })
}

fn failed_over(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let (id, address) = (id_of(&api, SERVICE)?, published_through(&api, SERVICE)?);
    let path = format!("/v2/lbaas/loadbalancers/{id}/failover");
    OpenStack::log_in("admin")?.put("load-balancer", &path, &json!({}))?.success()?;
    soon("Octavia has failed it over", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.id == id && tree.status == "ACTIVE", "{} is {}", tree.id, tree.status);
        Ok(())
    })?;
    // By itself the controller looks again within some minutes; a change of the Service makes it look now.
    steps::annotate(&api, SERVICE, &[("connection-limit", json!("900"))])?;
    members(stage, SERVICE, &NODES)?;
    ensure!(published_through(&api, SERVICE)? == address, "another address is published");
    // Members come first, so the listener may still wait for Octavia.
    soon("the listener has the connection limit", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.id == id && tree.listeners[0]["connection_limit"] == 900, "{:?}", tree.listeners);
        Ok(())
    })?;
    let seen = all_reach(stage, &address)?;
    Ok(format!("{address} on the same load balancer with a third member: {seen}"))
}

//! Two Services on one load balancer: what one does must not hurt the other.

use anyhow::{Context as _, Result, ensure};

use super::steps::{self, published_through};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::wait::soon;
use crate::network::ask::from_namespace;
use crate::network::{NEIGHBOUR, NEIGHBOUR_ADDRESS, NODES};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "8 shared";
const OWNER: &str = "owner";
const GUEST: &str = "guest";
const ANNOTATION: &str = "loadbalancer.openstack.org/load-balancer-id";
const GUEST_PORT: u16 = 8080;

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let places = [NODES[0], NODES[1]];
    ServiceSketch::proxy(OWNER, "v1", true).create(&api, &places)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "a second Service joins by the id of the load balancer", |stage| {
        let address = published_through(&api, OWNER)?;
        let object = api.service(OWNER)?;
        let id = object["metadata"]["annotations"][ANNOTATION].as_str().context("no id on the Service")?;
        let mut guest = ServiceSketch::proxy(GUEST, "v2", true).annotate(ANNOTATION, id);
        guest.ports = vec![GUEST_PORT];
        guest.create(&api, &places)?;
        ensure!(published_through(&api, GUEST)? == address, "another address is published");
        has(stage, &[80, u64::from(GUEST_PORT)])?;
        both_answer(&address, &[80, GUEST_PORT])?;
        Ok(format!("{address} with PROXY v1 on port 80 and v2 on port {GUEST_PORT}"))
    });
    stage.check(SCENARIO, "the second Service goes", |stage| {
        delete_service(&api, GUEST)?;
        soon("the Service is gone", || api.gone(&Kubernetes::service_path(GUEST)))?;
        has(stage, &[80])?;
        let address = published_through(&api, OWNER)?;
        both_answer(&address, &[80])?;
        Ok("the first one still answers".into())
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[OWNER, GUEST]));
    Ok(())
}

/// The load balancer of the first Service has exactly these listeners, all in order.
fn has(stage: &Stage, ports: &[u64]) -> Result<()> {
    soon(&format!("listeners {ports:?}"), || {
        let tree = Tree::of(&stage.cloud.user, OWNER)?;
        ensure!(tree.ports() == ports, "listeners {:?}", tree.ports());
        tree.settled()
    })
}

fn both_answer(address: &str, ports: &[u16]) -> Result<()> {
    for port in ports {
        soon(&format!("port {port} answers"), || {
            let outcome = from_namespace(NEIGHBOUR, address, *port)?;
            ensure!(outcome.client() == Some(NEIGHBOUR_ADDRESS), "{outcome}");
            Ok(())
        })?;
    }
    Ok(())
}

//! A cloud of an older release: hairpin red and green, the life of a Service, faults in the cloud, and what the release refuses
//! with other words than the newest one. Before 2026.2 a provider's refusal is a status 500.

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::steps::{self, Reach, clients_inside, green, published_through, warned};
use super::{CURRENT, hairpin, life, login, machines, pair, security_groups, trouble};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::tree::Tree;
use crate::stage::Stage;
use crate::truth;

const SCENARIO: &str = "30 older releases";
const SERVICE: &str = "refused";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
const PROXY: &str = "loadbalancer.openstack.org/proxy-protocol";

/// Looks at one case.
type Look = fn(&mut Stage) -> Result<String>;

/// All of it on a cluster of 1.36.
///
/// # Errors
/// A part cannot be set up.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    truth::openstack(stage)?;
    stage.start_cluster("older", CURRENT, Mode::Iptables)?;
    hairpin::run(stage)?;
    life::run(stage)?;
    trouble::run(stage)?;
    stage.check(SCENARIO, "API version", |stage| version(stage));
    let cases: [(&str, Look); 5] = [
        ("PROXY v1, v2, off", proxy_versions),
        ("an address that is in use, and free again", address_in_use),
        ("an address outside the subnet", outside_the_subnet),
        ("the quota of ports", quota_of_ports),
        ("somebody else has the address of a lost load balancer", lost_address),
    ];
    for (case, look) in cases {
        if !stage.check(SCENARIO, case, look) {
            steps::remove(stage, &[SERVICE]).ok();
        }
    }
    login::run(stage)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    pair::run(stage)?;
    security_groups::run(stage)?;
    if stage.cloud.folders.release.has_nova() { machines::run(stage) } else { Ok(()) }
}

fn version(stage: &Stage) -> Result<String> {
    let answer = stage.cloud.user.get("load-balancer", "/")?;
    let newest = answer["versions"].as_array().and_then(|all| all.last()).context("no version")?;
    let wanted = stage.cloud.folders.release.octavia_api();
    ensure!(wanted.is_none_or(|wanted| newest["id"] == wanted), "wanted {wanted:?}, is {}", newest["id"]);
    Ok(format!("Octavia API {}", newest["id"].as_str().unwrap_or_default()))
}

fn works(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    green(&address, &clients_inside(stage, Reach::Internal))
}

/// The header of each version, then none.
fn proxy_versions(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v1", true).create(&api, &PLACES)?;
    works(stage)?;
    let mut seen = Vec::new();
    for (value, protocol) in [("v2", "PROXYV2"), ("false", "TCP"), ("v1", "PROXY")] {
        let change = json!({"metadata": {"annotations": {PROXY: value}}});
        api.patch(&Kubernetes::service_path(SERVICE), &change)?;
        let tree = soon(&format!("the pool speaks {protocol}"), || {
            let tree = Tree::of(&stage.cloud.user, SERVICE)?;
            ensure!(tree.protocols == [protocol], "{:?}", tree.protocols);
            tree.settled().map(|()| tree)
        })?;
        seen.extend(tree.protocols);
    }
    Ok(format!("pools {}; {}; {}", seen.join(", "), works(stage)?, steps::release(stage, &[SERVICE])?))
}

/// A port of somebody with an address of the cluster's subnet.
fn take_address(stage: &Stage, address: &str) -> Result<String> {
    let body = json!({"port": {"network_id": stage.cloud.networks.cluster, "name": "somebody-else", "fixed_ips": [{"ip_address": address}]}});
    let answer = stage.cloud.user.post("network", "/v2.0/ports", &body)?.success()?;
    Ok(answer["port"]["id"].as_str().context("no id")?.to_owned())
}

fn free_address(stage: &Stage, port: &str) -> Result<()> {
    stage.cloud.user.delete("network", &format!("/v2.0/ports/{port}"))?.success().map(drop)
}

fn create_with_address(stage: &mut Stage, address: &str) -> Result<()> {
    let api = stage.api()?;
    stage.stop_controller()?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&api, &PLACES)?;
    let wish = json!({"spec": {"loadBalancerIP": address}});
    api.patch(&Kubernetes::service_path(SERVICE), &wish)?;
    stage.start_controller()
}

fn address_in_use(stage: &mut Stage) -> Result<String> {
    let address = "198.18.0.77";
    let port = take_address(stage, address)?;
    create_with_address(stage, address)?;
    let note = warned(&stage.api()?, SERVICE, "SyncLoadBalancerFailed", &[address]);
    free_address(stage, &port)?;
    let note = note?;
    // The next try is some time away; a change of the Service makes it now.
    let change = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/connection-limit": "900"}}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    let published = published_through(&stage.api()?, SERVICE)?;
    ensure!(published == address, "{published}");
    Ok(format!("{note}; then {}; {}", works(stage)?, steps::release(stage, &[SERVICE])?))
}

fn outside_the_subnet(stage: &mut Stage) -> Result<String> {
    create_with_address(stage, "192.0.2.77")?;
    let note = warned(&stage.api()?, SERVICE, "SyncLoadBalancerFailed", &["192.0.2.77"])?;
    Ok(format!("{note}; {}", steps::release(stage, &[SERVICE])?))
}

fn quota_of_ports(stage: &mut Stage) -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let projects = admin.list("identity", "/projects?name=demo", "projects")?;
    let project: &Value = projects.first().context("there is no project demo")?;
    let path = format!("/v2.0/quotas/{}", project["id"].as_str().unwrap_or_default());
    // What is there already may not be more than the quota.
    let ports = stage.cloud.user.list("network", "/v2.0/ports", "ports")?.len();
    admin.put("network", &path, &json!({"quota": {"port": ports}}))?.success()?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&api, &PLACES)?;
    let note = warned(&api, SERVICE, "SyncLoadBalancerFailed", &["quota"]);
    admin.call("network", Method::DELETE, &path, None)?.success()?;
    Ok(format!("{}; {}", note?, steps::release(stage, &[SERVICE])?))
}

/// The Service gets another address, and its status never sends anybody to the new owner of the old one.
fn lost_address(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&api, &PLACES)?;
    let address = published_through(&api, SERVICE)?;
    // Another one shows that the cloud is the right one.
    ServiceSketch::proxy("witness", "v2", true).create(&api, &PLACES)?;
    published_through(&api, "witness")?;
    stage.stop_controller()?;
    let id = Tree::of(&stage.cloud.user, SERVICE)?.id;
    let path = format!("/v2/lbaas/loadbalancers/{id}?cascade=true");
    stage.cloud.user.call("load-balancer", Method::DELETE, &path, None)?.success()?;
    soon("the load balancer is gone", || {
        let answer = stage.cloud.user.call(
            "load-balancer",
            Method::GET,
            &format!("/v2/lbaas/loadbalancers/{id}"),
            None,
        )?;
        ensure!(answer.status == 404, "{}", answer.status);
        Ok(())
    })?;
    let port = soon("the address is free", || take_address(stage, &address))?;
    stage.start_controller()?;
    let other = soon("another address is published", || {
        let ingress = api.ingress(SERVICE)?;
        let published = ingress[0]["ip"].as_str().unwrap_or_default().to_owned();
        ensure!(!published.is_empty() && published != address, "{ingress}");
        Ok(published)
    })?;
    let seen = works(stage);
    free_address(stage, &port)?;
    let seen = seen?;
    steps::remove(stage, &["witness"])?;
    Ok(format!("{address} is somebody else's, {other} is published: {seen}"))
}

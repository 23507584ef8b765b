//! Nodes with servers behind them: real Nova, and the controllers for nodes and routes.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::CURRENT;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::kubelet::UNINITIALIZED;
use crate::kubernetes::objects::{register_node, set_ready};
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::compute;
use crate::stage::Stage;

const SCENARIO: &str = "11 machines";
/// The taint of a node whose server is shut down.
pub(super) const SHUT_DOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// Nodes of this cluster.
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// The whole scenario, with a cluster of its own.
///
/// # Errors
/// Nova or the cluster does not start.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let folders = stage.cloud.folders.clone();
    compute::start(&mut stage.cloud.services, &folders)?;
    let mut servers = Vec::new();
    for place in PLACES {
        servers.push(server_of(&stage.cloud.user, place)?);
    }
    stage.start_cluster_without_nodes("machines", CURRENT)?;
    let settings = routes(stage)?;
    let launch = &mut stage.cluster()?.launch;
    launch.controllers = "service,cloud-node,cloud-node-lifecycle,route";
    launch.flags =
        ["--configure-cloud-routes=true", "--cluster-cidr=10.244.0.0/16", "--allocate-node-cidrs=true"]
            .map(str::to_owned)
            .into();
    launch.append(&settings)?;
    let api = stage.api()?;
    for place in PLACES {
        register_node(&api, place, CURRENT, UNINITIALIZED)?;
    }
    stage.start_controller()?;
    for (place, server) in PLACES.iter().zip(&servers) {
        stage.check(SCENARIO, &format!("{} is initialised", place.name()), |_| {
            initialised(&api, *place, server)
        });
    }
    stage.check(SCENARIO, "routes to the pods of the nodes", |stage| routed(stage, &PLACES));
    stage.check(SCENARIO, "a server is shut down, and comes back", |stage| {
        shut_down(&stage.cloud.user, &api, PLACES[1], &servers[1])
    });
    stage.check(SCENARIO, "a server is deleted: its node goes, and the route to it", |stage| {
        compute::remove_server(&stage.cloud.user, &servers[1])?;
        set_ready(&api, PLACES[1], "Unknown")?;
        soon("the node is gone", || api.gone(&node_path(PLACES[1])))?;
        routed(stage, &PLACES[..1])
    });
    stage.check(SCENARIO, "a node that is ready stays, and its server with it", |_| {
        initialised(&api, PLACES[0], &servers[0])
    });
    stage.stop_controller()?;
    stage.end_cluster()?;
    compute::remove_server(&stage.cloud.user, &servers[0])?;
    PLACES.iter().try_for_each(|place| give_back(&stage.cloud.user, *place))
}

pub(super) fn node_path(place: NodePlace) -> String {
    format!("/api/v1/nodes/{}", place.name())
}

/// The port of a machine.
fn port_of(cloud: &OpenStack, place: NodePlace) -> Result<String> {
    let path = format!("/v2.0/ports?name={}", place.name());
    let ports = cloud.list("network", &path, "ports")?;
    let id = ports.first().and_then(|port| port["id"].as_str());
    Ok(id.with_context(|| format!("{} has no port", place.name()))?.to_owned())
}

/// Puts a server behind a machine, with the port that the machine has.
///
/// # Errors
/// Neutron or Nova refuses.
pub(super) fn server_of(cloud: &OpenStack, place: NodePlace) -> Result<String> {
    let port = port_of(cloud, place)?;
    claim(cloud, &port, "", "")?;
    compute::add_server(cloud, &place.name(), &port, &json!({}))
}

fn claim(cloud: &OpenStack, port: &str, device: &str, owner: &str) -> Result<()> {
    let body = json!({"port": {"device_id": device, "device_owner": owner}});
    cloud.put("network", &format!("/v2.0/ports/{port}"), &body)?.success().map(drop)
}

/// A machine without a server is again what it is for the other groups.
///
/// # Errors
/// Neutron refuses.
pub(super) fn give_back(cloud: &OpenStack, place: NodePlace) -> Result<()> {
    let port = port_of(cloud, place)?;
    let body = json!({"port": {"allowed_address_pairs": []}});
    cloud.put("network", &format!("/v2.0/ports/{port}"), &body)?.success()?;
    claim(cloud, &port, &place.server(), "compute:nova")
}

/// The router of the cluster.
///
/// # Errors
/// There is none.
pub(super) fn router(cloud: &OpenStack) -> Result<Value> {
    let routers = cloud.list("network", "/v2.0/routers?name=cluster", "routers")?;
    routers.into_iter().next().context("there is no router")
}

/// The lines of cloud.conf that let the route controller work.
///
/// # Errors
/// There is no router.
pub(super) fn routes(stage: &Stage) -> Result<String> {
    let router = router(&stage.cloud.user)?;
    Ok(format!("\n[Route]\nrouter-id = {}\n", router["id"].as_str().context("the router has no id")?))
}

/// The taint is gone, and the node has what the server and its port say.
///
/// # Errors
/// It is not so, for long.
pub(super) fn initialised(api: &Kubernetes, place: NodePlace, server: &str) -> Result<String> {
    soon(&format!("{} is initialised", place.name()), || {
        let node = api.get(&node_path(place))?;
        ensure!(!has_taint(&node, UNINITIALIZED), "it is tainted: {}", node["spec"]["taints"]);
        let provider = node["spec"]["providerID"].as_str().unwrap_or_default();
        ensure!(provider.starts_with("openstack://") && provider.ends_with(server), "providerID {provider}");
        let addresses = &node["status"]["addresses"];
        let wanted = json!({"type": "InternalIP", "address": place.address()});
        ensure!(addresses.as_array().is_some_and(|all| all.contains(&wanted)), "addresses {addresses}");
        let labels = &node["metadata"]["labels"];
        for (label, value) in [
            ("node.kubernetes.io/instance-type", "e2e"),
            ("topology.kubernetes.io/region", "RegionOne"),
            ("topology.kubernetes.io/zone", "nova"),
        ] {
            ensure!(labels[label] == value, "{label} in {labels}");
        }
        Ok(format!("{provider}, {addresses}, instance type, region and zone"))
    })
}

pub(super) fn has_taint(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
}

/// The router leads to the pods of exactly these nodes, and their ports let the pods' addresses through.
///
/// # Errors
/// It does not, for long.
pub(super) fn routed(stage: &Stage, places: &[NodePlace]) -> Result<String> {
    let cloud = &stage.cloud.user;
    let api = stage.api()?;
    soon("the routes are there", || {
        let router = router(cloud)?;
        let mut found: Vec<String> = router["routes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|route| format!("{} via {}", text(&route["destination"]), text(&route["nexthop"])))
            .collect();
        found.sort();
        let wanted: Vec<String> =
            places.iter().map(|place| format!("{} via {}", place.pod_range(), place.address())).collect();
        ensure!(found == wanted, "routes {found:?} in place of {wanted:?}");
        for place in places {
            let node = api.get(&node_path(*place))?;
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let available =
                conditions.iter().any(|one| one["type"] == "NetworkUnavailable" && one["status"] == "False");
            ensure!(available, "{}: {conditions:?}", place.name());
            let port = cloud.get("network", &format!("/v2.0/ports/{}", port_of(cloud, *place)?))?;
            let pairs = &port["port"]["allowed_address_pairs"];
            let has = pairs
                .as_array()
                .is_some_and(|all| all.iter().any(|pair| pair["ip_address"] == place.pod_range()));
            ensure!(has, "{}: address pairs {pairs}", place.name());
        }
        Ok(format!("router: {}; address pairs on the ports; NetworkUnavailable False", found.join(", ")))
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shut_down(cloud: &OpenStack, api: &Kubernetes, place: NodePlace, server: &str) -> Result<String> {
    let tainted = |wanted: bool| {
        soon(&format!("the taint is there: {wanted}"), || {
            let node = api.get(&node_path(place))?;
            ensure!(has_taint(&node, SHUT_DOWN) == wanted, "{}", node["spec"]["taints"]);
            Ok(())
        })
    };
    compute::act(cloud, server, "os-stop")?;
    set_ready(api, place, "Unknown")?;
    tainted(true)?;
    compute::act(cloud, server, "os-start")?;
    set_ready(api, place, "True")?;
    tainted(false)?;
    Ok(format!("{SHUT_DOWN} came and went, the node stayed"))
}

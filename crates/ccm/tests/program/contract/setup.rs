//! What several scenarios begin with.

use openstack_ccm_kube_sim::merge_patch;
use openstack_ccm_openstack_sim::{OctaviaRelease, Sim as Cloud};
use serde_json::{Value, json};

use crate::support::{World, key, lb_name, service, text};

/// The annotation that makes a load balancer internal.
pub(crate) const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// A Service `web` with annotations of the usual prefix.
pub(crate) fn annotated(annotations: &[(&str, &str)]) -> Value {
    let mut service = service("web", json!({}));
    for (name, value) in annotations {
        service["metadata"]["annotations"][key(name)] = json!(value);
    }
    service
}

/// A newest cluster with the program at work under more lines of `[LoadBalancer]`.
pub(crate) async fn configured(cloud_conf: impl FnOnce(&World) -> String) -> World {
    configured_on(OctaviaRelease::default(), cloud_conf).await
}

/// The same in a cloud with this Octavia.
pub(crate) async fn configured_on(
    octavia: OctaviaRelease,
    cloud_conf: impl FnOnce(&World) -> String,
) -> World {
    let mut world = World::on(octavia);
    world.settings.cloud_conf = cloud_conf(&world);
    world.start().await;
    world
}

/// Makes an object as an administrator, and answers it.
pub(crate) fn make(cloud: &Cloud, collection: &str, kind: &str, body: &Value) -> Value {
    let answer = cloud.admin().make("network", &format!("/v2.0/{collection}"), &json!({kind: body}));
    answer[kind].clone()
}

pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// An external network behind the cluster's router, with one subnet.
pub(crate) fn external_network(cloud: &Cloud, name: &str, cidr: &str) -> (String, String) {
    let network = id(&make(cloud, "networks", "network", &json!({"name": name, "router:external": true})));
    let subnet = subnet(cloud, &network, name, cidr);
    (network, subnet)
}

/// A subnet of a network.
pub(crate) fn subnet(cloud: &Cloud, network: &str, name: &str, cidr: &str) -> String {
    let version = if cidr.contains(':') { 6 } else { 4 };
    let body = json!({"name": name, "network_id": network, "ip_version": version, "cidr": cidr});
    id(&make(cloud, "subnets", "subnet", &body))
}

/// Another subnet of the cluster's network, behind its router.
pub(crate) fn cluster_subnet(cloud: &Cloud, name: &str, cidr: &str) -> String {
    let body = json!({"name": name, "network_id": cloud.seed().network_id, "ip_version": 4, "cidr": cidr});
    let answer = cloud.user().make("network", "/v2.0/subnets", &json!({"subnet": body}));
    let subnet = id(&answer["subnet"]);
    let path = format!("/v2.0/routers/{}/add_router_interface", cloud.seed().router_id);
    cloud.user().change("network", &path, &json!({"subnet_id": subnet}));
    subnet
}

/// A floating IP of the user, not attached to anything.
pub(crate) fn floating_ip(cloud: &Cloud, address: &str, description: &str) -> String {
    let seed = cloud.seed();
    let body = json!({"floating_network_id": seed.public_network_id, "project_id": seed.project_id,
        "floating_ip_address": address, "description": description});
    id(&make(cloud, "floatingips", "floatingip", &body))
}

/// Leads a floating IP to a port.
pub(crate) fn attach(cloud: &Cloud, floating_ip: &str, port: &str) {
    let path = format!("/v2.0/floatingips/{floating_ip}");
    cloud.user().change("network", &path, &json!({"floatingip": {"port_id": port}}));
}

/// The load balancer of the Service `web`.
pub(crate) fn load_balancer(world: &World) -> Value {
    world.cloud.load_balancer(&lb_name("web")).expect("a load balancer")
}

/// The uid of the cluster.
pub(crate) fn cluster_uid(world: &World) -> String {
    let namespace = world.kube.get("namespaces", "", "kube-system").unwrap();
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The legacy name of the load balancer of the Service `web`, as Kubernetes itself gave it once.
pub(crate) fn legacy_name(world: &World) -> String {
    let uid = world.service("web")["metadata"]["uid"].as_str().unwrap().replace('-', "");
    format!("a{uid}").chars().take(32).collect()
}

/// Starts making a load balancer with these attributes as the user, and answers its id.
pub(crate) fn make_load_balancer(world: &World, name: &str, attributes: &Value) -> String {
    let mut body = json!({"name": name, "vip_subnet_id": world.cloud.seed().subnet_id});
    merge_patch(&mut body, attributes);
    let path = "/v2.0/lbaas/loadbalancers";
    let answer = world.cloud.user().make("load-balancer", path, &json!({"loadbalancer": body}));
    id(&answer["loadbalancer"])
}

/// Takes everything out of the Service `web` that points at its load balancer.
pub(crate) fn forget_load_balancer(world: &World) {
    for key in ["owned-load-balancer-id", "settled", "load-balancer-id", "load-balancer-address"] {
        world.annotate("web", key, None);
    }
}

/// Makes a load balancer as the request for a Service `web` of an earlier time would, and answers its id.
pub(crate) fn make_for_namesake(
    world: &World,
    cluster_uid: &str,
    service_uid: &str,
    description: &str,
) -> String {
    let tags = [
        lb_name("web"),
        format!("openstack-ccm-cluster={cluster_uid}"),
        format!("openstack-ccm-service={service_uid}"),
    ];
    make_load_balancer(world, &lb_name("web"), &json!({"description": description, "tags": tags}))
}

/// The only floating IP.
pub(crate) fn only_floating_ip(world: &World) -> Value {
    let floating_ips = world.cloud.floating_ips();
    let [only] = floating_ips.as_slice() else { panic!("{floating_ips:#?}") };
    only.clone()
}

/// Subnets of all members.
pub(crate) fn member_subnets(world: &World) -> Vec<Value> {
    world.members().iter().map(|member| member["subnet_id"].clone()).collect()
}

/// Names of all members, sorted.
pub(crate) fn member_names(world: &World) -> Vec<String> {
    let mut names: Vec<String> = world.members().iter().map(|one| text(&one["name"]).to_owned()).collect();
    names.sort();
    names
}

/// The networks that may connect to each listener, sorted.
pub(crate) fn allowed_cidrs(world: &World) -> Vec<Vec<String>> {
    let sorted = |listener: &Value| {
        let list = listener["allowed_cidrs"].as_array().cloned().unwrap_or_default();
        let mut list: Vec<String> = list.iter().map(|cidr| cidr.as_str().unwrap().to_owned()).collect();
        list.sort();
        list
    };
    world.cloud.listeners().iter().map(sorted).collect()
}

/// Changes an object as the user.
pub(crate) fn put(world: &World, path: &str, body: &Value) {
    let service = if path.contains("lbaas") { "load-balancer" } else { "network" };
    world.cloud.user().change(service, path, body);
    world.cloud.settle();
}

/// Takes away what OCCM does not give: the tags with uids, tags on pools and monitors, and the annotations of our own.
pub(crate) fn as_occm_leaves_it(world: &World, service: &str) {
    let generated = |one: &Value| -> Vec<Value> {
        let tags = one["tags"].as_array().unwrap().iter();
        tags.filter(|tag| tag.as_str().unwrap().starts_with("kube_service_")).cloned().collect()
    };
    for one in world.cloud.load_balancers() {
        let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&one));
        put(world, &path, &json!({"loadbalancer": {"tags": generated(&one)}}));
    }
    for one in world.cloud.listeners() {
        let path = format!("/v2.0/lbaas/listeners/{}", id(&one));
        put(world, &path, &json!({"listener": {"tags": generated(&one)}}));
    }
    for one in world.cloud.pools() {
        let path = format!("/v2.0/lbaas/pools/{}", id(&one));
        put(world, &path, &json!({"pool": {"tags": []}}));
    }
    for one in world.cloud.health_monitors() {
        let path = format!("/v2.0/lbaas/healthmonitors/{}", id(&one));
        put(world, &path, &json!({"healthmonitor": {"tags": []}}));
    }
    for one in world.cloud.floating_ips() {
        put(world, &format!("/v2.0/floatingips/{}/tags", id(&one)), &json!({"tags": []}));
    }
    for output in ["owned-load-balancer-id", "settled"] {
        world.annotate(service, output, None);
    }
}

/// The Service as `kubectl get -o yaml` and a backup have it.
pub(crate) fn copy(of: &Value) -> Value {
    let mut copy = of.clone();
    let metadata = copy["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp", "finalizers", "managedFields", "generation"] {
        metadata.remove(key);
    }
    copy.as_object_mut().unwrap().remove("status");
    let spec = copy["spec"].as_object_mut().unwrap();
    for key in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        spec.remove(key);
    }
    copy
}

//! What OCCM leaves: load balancers as it makes them, without tags of this program, and Services that it served, with all
//! their annotations.

use fastrand::Rng;
use serde_json::{Value, json};

use super::annotation::{self, ID, Setting};
use super::stage::{Stage, name};
use super::story::Kind;
use crate::contract::setup::INTERNAL;
use crate::support::{ADDRESS, ANNOTATION, LB_ID, PROXY, lb_name, service};

/// What a Service asked OCCM for, rightly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    Plain,
    Headers,
    ProxyV1,
    ProxyV2,
    Internal,
}

impl Face {
    const ALL: [Self; 5] = [Self::Plain, Self::Headers, Self::ProxyV1, Self::ProxyV2, Self::Internal];

    fn annotation(self) -> Option<(String, &'static str)> {
        match self {
            Self::Plain => None,
            Self::Headers => Some((format!("{ANNOTATION}x-forwarded-for"), "true")),
            Self::ProxyV1 => Some((PROXY.to_owned(), "true")),
            Self::ProxyV2 => Some((PROXY.to_owned(), "v2")),
            Self::Internal => Some((INTERNAL.to_owned(), "true")),
        }
    }

    /// Protocols of listener and pool.
    fn protocols(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain | Self::Internal => ("TCP", "TCP"),
            Self::Headers => ("HTTP", "HTTP"),
            Self::ProxyV1 => ("TCP", "PROXY"),
            Self::ProxyV2 => ("TCP", "PROXYV2"),
        }
    }
}

/// A Service that OCCM served when the program was started for the first time.
#[derive(Clone, Debug)]
pub(super) struct Inherited {
    pub(super) service: usize,
    face: Face,
    /// Annotations as its users wrote them; OCCM passed over those that are wrong.
    pub(super) settings: Vec<Setting>,
    /// The Service whose load balancer it shares.
    pub(super) host: Option<usize>,
}

impl Inherited {
    /// Some Services, with the numbers from 0 on.
    pub(super) fn some(random: &mut Rng) -> Vec<Self> {
        (0..random.usize(0..4))
            .map(|service| {
                // OCCM puts no internal Service on a load balancer of others, and makes one address for all on it.
                let faces = if service == 1 { &Face::ALL[..] } else { &Face::ALL[..4] };
                let face = faces[random.usize(0..faces.len())];
                let key = face.annotation().map(|(key, _)| key);
                let mut settings = annotation::passed_over(random);
                settings
                    .retain(|setting| Kind::PassedOver.is_included() && Some(setting.key) != key.as_deref());
                Self { service, face, settings, host: (service == 2).then_some(0) }
            })
            .collect()
    }

    fn port(&self) -> u16 {
        u16::try_from(self.service).unwrap() + 7000
    }

    fn node_port(&self) -> u16 {
        u16::try_from(self.service).unwrap() + 30_700
    }
}

/// Makes what OCCM made for a Service, and the Service as OCCM left it.
pub(super) fn plant(stage: &Stage, inherited: &Inherited) {
    let world = &stage.world;
    let (name, user) = (name(inherited.service), world.cloud.user());
    let host = inherited.host.map_or_else(|| name.clone(), super::stage::name);
    let post = |path: &str, body: &Value| {
        let answer = user.make("load-balancer", &format!("/v2.0/lbaas/{path}"), body);
        world.cloud.settle();
        answer
    };
    let listener = listener(stage, inherited);
    if inherited.host.is_none() {
        let tree = json!({"loadbalancer": {
            "name": lb_name(&name), "tags": [lb_name(&name)],
            "description": format!("Kubernetes external service default/{name} from cluster c1"),
            "vip_subnet_id": world.cloud.seed().subnet_id, "listeners": [listener],
        }});
        let made = post("loadbalancers", &tree);
        let description =
            format!("Floating IP for Kubernetes external service default/{name} from cluster c1");
        let floating_ip = json!({"floatingip": {
            "floating_network_id": world.cloud.seed().public_network_id,
            "port_id": made["loadbalancer"]["vip_port_id"], "description": description,
        }});
        if inherited.face != Face::Internal {
            assert_eq!(user.post("network", "/v2.0/floatingips", &floating_ip).0, 201);
        }
    } else {
        let of_host = world.cloud.load_balancer(&lb_name(&host)).unwrap();
        let path = format!("/v2.0/lbaas/loadbalancers/{}", of_host["id"].as_str().unwrap());
        let tags = json!({"loadbalancer": {"tags": [lb_name(&host), lb_name(&name)]}});
        assert_eq!(user.put("load-balancer", &path, &tags).0, 200);
        world.cloud.settle();
        let mut listener = listener;
        let pool = listener["default_pool"].take();
        listener.as_object_mut().unwrap().remove("default_pool");
        listener["loadbalancer_id"] = of_host["id"].clone();
        let made = post("listeners", &json!({"listener": listener}));
        let mut pool = pool;
        let members = pool["members"].take();
        pool.as_object_mut().unwrap().remove("members");
        pool["listener_id"] = made["listener"]["id"].clone();
        let made = post("pools", &json!({"pool": pool}));
        let path = format!("/v2.0/lbaas/pools/{}/members", made["pool"]["id"].as_str().unwrap());
        assert_eq!(user.put("load-balancer", &path, &json!({"members": members})).0, 202);
        world.cloud.settle();
    }
    plant_service(stage, inherited, &host);
}

fn listener(stage: &Stage, inherited: &Inherited) -> Value {
    let (name, world) = (name(inherited.service), &stage.world);
    let members: Vec<Value> = world
        .cloud
        .nodes()
        .iter()
        .map(|node| {
            json!({"address": node.addresses[0], "protocol_port": inherited.node_port(), "name": node.name,
                "subnet_id": world.cloud.seed().subnet_id})
        })
        .collect();
    let (protocol, pool_protocol) = inherited.face.protocols();
    let headers =
        if inherited.face == Face::Headers { json!({"X-Forwarded-For": "true"}) } else { json!({}) };
    json!({
        "name": format!("listener_0_{}", lb_name(&name)), "protocol": protocol, "insert_headers": headers,
        "protocol_port": inherited.port(), "connection_limit": -1, "tags": [lb_name(&name)],
        "timeout_client_data": 50_000, "timeout_member_connect": 5_000, "timeout_member_data": 50_000,
        "timeout_tcp_inspect": 0, "allowed_cidrs": ["0.0.0.0/0"],
        "default_pool": {
            "name": format!("pool_0_{}", lb_name(&name)), "protocol": pool_protocol, "lb_algorithm": "ROUND_ROBIN",
            "members": members,
        },
    })
}

fn plant_service(stage: &Stage, inherited: &Inherited, host: &str) {
    let (name, world) = (name(inherited.service), &stage.world);
    let load_balancer = world.cloud.load_balancer(&lb_name(host)).unwrap();
    let floating_ips = world.cloud.floating_ips();
    let on_vip = |one: &&Value| one["port_id"] == load_balancer["vip_port_id"];
    let floating_ip = floating_ips.iter().find(on_vip).map(|one| one["floating_ip_address"].clone());
    let address = floating_ip.unwrap_or_else(|| load_balancer["vip_address"].clone());
    let mut annotations = json!({LB_ID: load_balancer["id"], ADDRESS: address});
    if let Some((key, value)) = inherited.face.annotation() {
        annotations[key] = json!(value);
    }
    for setting in &inherited.settings {
        assert_ne!(setting.value, ID, "OCCM passes over no id");
        annotations[setting.key] = json!(setting.value);
    }
    world.create(&service(
        &name,
        json!({
            "metadata": {"annotations": annotations, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"]},
            "spec": {"ports": [{"name": "http", "port": inherited.port(), "protocol": "TCP",
                "nodePort": inherited.node_port()}]},
        }),
    ));
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}});
    world.kube.patch_status("services", "default", &name, &status).unwrap();
}

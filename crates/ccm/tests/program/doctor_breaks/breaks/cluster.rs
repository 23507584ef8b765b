//! What is behind the node port: endpoints, their ports and families, and the nodes.

use serde_json::{Value, json};

use super::service_proxy::set_image;
use super::{Break, Sight, anywhere, in_cloud, needs_way};
use crate::doctor_breaks::kube_proxy;
use crate::doctor_breaks::stage::{Kind, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new("endpoints not ready", anywhere, |stage| {
        slices(stage, |slice| {
            let mut endpoints = slice["endpoints"].clone();
            endpoints[0]["conditions"] = json!({"ready": false, "serving": false, "terminating": false});
            json!({"endpoints": endpoints})
        });
    })
    .told(&["D801"]),
    Break::new("the last endpoint ends and still serves", anywhere, |stage| {
        slices(stage, |slice| {
            let mut endpoints = slice["endpoints"].clone();
            endpoints[0]["conditions"] = json!({"ready": false, "serving": true, "terminating": true});
            json!({"endpoints": endpoints})
        });
    }),
    Break::new("no endpoint", anywhere, |stage| slices(stage, |_| json!({"endpoints": []}))).told(&["D801"]),
    Break::new("no slice", anywhere, |stage| {
        for name in names(stage) {
            stage.world.kube.delete("endpointslices", "default", &name).unwrap();
        }
    })
    .told(&["D801"]),
    Break::new("selector of nothing", anywhere, |stage| {
        stage.patch("services", "web", &json!({"spec": {"selector": {"app": "wbe"}}}));
        slices(stage, |_| json!({"endpoints": []}));
    })
    .told(&["D801"]),
    Break::new("pod deleted", anywhere, |stage| {
        stage.world.kube.delete("pods", "default", "web-1").unwrap();
        slices(stage, |_| json!({"endpoints": []}));
    })
    .told(&["D801"]),
    Break::new("target port of a number where nothing listens", anywhere, |stage| {
        first_port(stage, "targetPort", &json!(9999));
        slices(stage, |slice| {
            let mut ports = slice["ports"].clone();
            ports[0]["port"] = json!(9999);
            json!({"ports": ports})
        });
    })
    .told(&["D703"])
    .told_in(|kind| matches!(kind, Kind::Monitored))
    // Containers may listen on ports that they do not declare.
    .seen(Sight::Doubt),
    Break::new("target port of a name that no container has", anywhere, |stage| {
        first_port(stage, "targetPort", &json!("web"));
        slices(stage, |slice| json!({"ports": [slice["ports"][1]]}));
    })
    .told(&["D804"]),
    Break::new("slices of another protocol", anywhere, |stage| {
        slices(stage, |slice| {
            let other = |port: &Value| {
                let protocol = if port["protocol"] == "TCP" { "UDP" } else { "TCP" };
                json!({"name": port["name"], "port": port["port"], "protocol": protocol})
            };
            json!({"ports": slice["ports"].as_array().unwrap().iter().map(other).collect::<Vec<_>>()})
        });
    })
    .told(&["D804"]),
    Break::new("slices of the other family only", is_of_one_family, |stage| {
        for name in names(stage) {
            let mut slice = stage.world.kube.get("endpointslices", "default", &name).unwrap();
            stage.world.kube.delete("endpointslices", "default", &name).unwrap();
            slice["metadata"] = json!({"name": "web-other", "labels": slice["metadata"]["labels"]});
            slice["addressType"] = json!("IPv6");
            slice["endpoints"][0]["addresses"] = json!(["fd00:244:2::7"]);
            stage.world.kube.create(&slice).unwrap();
        }
    })
    .told(&["D804"]),
    Break::new("node port changed", anywhere, |stage| first_port(stage, "nodePort", &json!(31888)))
        .told(&["D701"])
        .told_in(in_cloud),
    Break::new(
        "port of the Service changed",
        |kind| in_cloud(kind) && kind != Kind::PlainEnvoy,
        |stage| first_port(stage, "port", &json!(8081)),
    )
    .told(&["D503"]),
    Break::new(
        "port of the Service changed to one that the Gateway lacks",
        |kind| kind == Kind::PlainEnvoy,
        |stage| first_port(stage, "port", &json!(8081)),
    )
    .unseen(&[9])
    .told(&["D503"]),
    Break::new("left to another service proxy", anywhere, |stage| {
        let labels = json!({"service.kubernetes.io/service-proxy-name": "other"});
        stage.patch("services", "web", &json!({"metadata": {"labels": labels}}));
    })
    .told(&["D806"]),
    Break::new("a machine shut off", is_unmonitored, |stage| {
        stage.world.cloud.set_server_status("node-1", "SHUTOFF");
        stage.world.set_ready("node-1", "Unknown");
    })
    .told(&["D705"]),
    Break::new("all nodes not ready and at work", in_cloud, |stage| {
        for node in ["node-1", "node-2"] {
            stage.world.set_ready(node, "False");
        }
    })
    .told(&["D705"])
    .told_in(|kind| !matches!(kind, Kind::Local | Kind::Monitored))
    .seen(Sight::Spare),
    Break::new("externalTrafficPolicy Local without a monitor", is_unmonitored, |stage| {
        let spec = json!({"externalTrafficPolicy": "Local", "healthCheckNodePort": 31001});
        stage.patch("services", "web", &json!({"spec": spec}));
    })
    .told(&["D802"]),
    Break::new("one node with an old service proxy", is_in_new_cluster, |stage| {
        stage.world.set_kubelet("node-1", "v1.29.4");
        kube_proxy::change_on(&stage.world, "node-1", |spec| set_image(spec, "v1.29.4"));
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("all nodes with old service proxies", is_in_new_cluster, |stage| {
        stage.world.set_kubelets("v1.29.4");
        kube_proxy::change(&stage.world, |spec| set_image(spec, "v1.29.4"));
    })
    .told(&["D301"])
    .told_in(needs_way),
];

fn is_of_one_family(kind: Kind) -> bool {
    kind != Kind::DualStack
}

fn is_unmonitored(kind: Kind) -> bool {
    in_cloud(kind) && !kind.is_monitored()
}

fn is_in_new_cluster(kind: Kind) -> bool {
    kind != Kind::Hostname
}

fn names(stage: &Stage) -> Vec<String> {
    let slices = stage.world.kube.list("endpointslices", "default").unwrap();
    let own = slices.iter().filter(|one| one["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
    own.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Changes each slice of the Service.
fn slices(stage: &Stage, change: fn(&Value) -> Value) {
    for name in names(stage) {
        let slice = stage.world.kube.get("endpointslices", "default", &name).unwrap();
        stage.patch("endpointslices", &name, &change(&slice));
    }
}

/// Changes a field of the first port of the Service.
fn first_port(stage: &Stage, field: &str, value: &Value) {
    let mut ports = stage.web()["spec"]["ports"].clone();
    ports[0][field] = value.clone();
    stage.patch("services", "web", &json!({"spec": {"ports": ports}}));
}

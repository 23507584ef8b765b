//! What a port of each program makes of the header, by the program's own documentation. A row writes down the truth beside what it changes.
//!
//! - ingress-nginx reads `use-proxy-protocol` as Go's `ParseBool` does, and asks everybody for the header; a line of
//!   `--tcp-services-configmap` decodes it where its third field is `PROXY`; the fourth is about what is sent on.
//! - Traefik takes its static configuration from one source alone: a file, else flags, else the environment. Where an entry point has
//!   `proxyProtocol`, it takes connections with and without the header.
//! - HAProxy Ingress of haproxytech expects the header from the addresses in `proxy-protocol` of the ConfigMap that `--configmap`
//!   names, at its ports for HTTP and HTTPS alone, and skips what is no address.
//! - Envoy Gateway: of policies the one for a listener counts alone, then the oldest for its Gateway; a policy counts in the namespace of
//!   its Gateway only.

use serde_json::{Value, json};

use super::application::{is_nginx, reads};
use super::{Break, Sight};
use crate::doctor_breaks::cluster;
use crate::doctor_breaks::programs::{
    TRUSTED, config_map, container, gateway_ref, labels, traefik_flags, traffic_policy,
};
use crate::doctor_breaks::stage::{Kind, Stage};

const NGINX: [u16; 2] = [8080, 8443];
const TRAEFIK: [u16; 2] = [8000, 8443];
const ENVOY: [u16; 2] = [10080, 10443];

pub(super) const BREAKS: &[Break] = &[
    Break::new("nginx: use-proxy-protocol 1", is_nginx, |stage| nginx(stage, "1")),
    Break::new("nginx: use-proxy-protocol T", is_nginx, |stage| nginx(stage, "T")),
    Break::new("nginx: use-proxy-protocol yes", is_nginx, |stage| {
        nginx(stage, "yes");
        all(stage, NGINX, "never");
    })
    .told(&["D901"]),
    Break::new("nginx: no ConfigMap named", is_nginx, |stage| {
        args(stage, &["/nginx-ingress-controller", "--http-port=8080", "--https-port=8443"]);
        all(stage, NGINX, "never");
    })
    .told(&["D901"]),
    Break::new("nginx: trusts another network", is_nginx, |stage| {
        stage.patch("configmaps", "nginx", &json!({"data": {"proxy-real-ip-cidr": "192.168.0.0/16"}}));
    })
    .told(&["D904"]),
    Break::new("nginx: trusts the networks of the way", is_nginx, |stage| {
        stage.patch("configmaps", "nginx", &json!({"data": {"proxy-real-ip-cidr": TRUSTED}}));
    }),
    Break::new("nginx: a TCP service that decodes", is_nginx, |stage| {
        tcp_service(stage, "shop/db:5432:PROXY");
        reads(stage, "web-1", &[(9000, "required")]);
    }),
    Break::new("nginx: a TCP service that does not decode", is_nginx, |stage| {
        tcp_service(stage, "shop/db:5432");
        reads(stage, "web-1", &[(9000, "never")]);
    })
    .told(&["D901"]),
    Break::new("nginx: a TCP service that encodes only", is_nginx, |stage| {
        tcp_service(stage, "shop/db:5432::PROXY");
        reads(stage, "web-1", &[(9000, "never")]);
    })
    .told(&["D901"]),
    Break::new("nginx: a rollout that is half done", is_nginx_anywhere, |stage| {
        config_map(&stage.world, "other", &json!({}));
        second_pod(stage, |container| {
            container["args"] = json!(["/nginx-ingress-controller", "--configmap=default/other", "--http-port=8080", "--https-port=8443"]);
        });
        reads(stage, "web-2", &NGINX.map(|port| (port, "never")));
    })
    .told(&["D901"]),
    Break::new("Traefik: one entry point without it", is_traefik, |stage| {
        stage_args(stage, &traefik_flags(&["websecure"]));
        reads(stage, "web-1", &[(8000, "never")]);
    })
    .told(&["D901"]),
    Break::new("Traefik: the port leads to the entry point of the dashboard", is_traefik, |stage| {
        target(stage, 0, &json!("traefik"), 8080);
        reads(stage, "web-1", &[(8080, "never")]);
    })
    .told(&["D901"]),
    Break::new("Traefik: trusts everybody", is_traefik, |stage| {
        let mut flags = traefik_flags(&[]);
        flags.extend(["--entrypoints.web.proxyprotocol.insecure", "--entryPoints.websecure.proxyProtocol.insecure=true"].map(str::to_owned));
        stage_args(stage, &flags);
    }),
    Break::new("Traefik: flags in small letters", is_traefik, |stage| {
        stage_args(stage, &traefik_flags(&["web", "websecure"]).into_iter().map(|flag| flag.to_lowercase()).collect::<Vec<_>>());
    }),
    Break::new("Traefik: trusts another network", is_traefik, |stage| {
        let flags = traefik_flags(&["web", "websecure"]).into_iter().map(|flag| flag.replace(TRUSTED, "192.168.0.0/16"));
        stage_args(stage, &flags.collect::<Vec<_>>());
    })
    .told(&["D904"]),
    Break::new("Traefik: by the environment", is_traefik, |stage| {
        stage_args(stage, &[]);
        container_field(stage, "env", &environment());
    }),
    Break::new("Traefik: by the environment beside flags", is_traefik, |stage| {
        stage_args(stage, &traefik_flags(&[]));
        container_field(stage, "env", &environment());
        all(stage, TRAEFIK, "never");
    })
    .told(&["D901"]),
    Break::new("Traefik: by a file", is_traefik, |stage| traefik_file(stage, &format!("{{trustedIPs: [{TRUSTED}]}}"), &[])),
    Break::new("Traefik: flags beside a file without it", is_traefik, |stage| {
        traefik_file(stage, "", &traefik_flags(&["web", "websecure"]));
        all(stage, TRAEFIK, "never");
    })
    .told(&["D901"]),
    Break::new("Traefik: by a file that nobody sees", is_traefik, |stage| {
        traefik_file(stage, "", &[]);
        pod_field(stage, "volumes", &json!([{"name": "static", "secret": {"secretName": "static"}}]));
        all(stage, TRAEFIK, "never");
    })
    .unseen(&[9]),
    Break::new("HAProxy: expects it from everybody", is_haproxy, |stage| {
        haproxy(stage, "0.0.0.0/0");
        all(stage, NGINX, "required");
    }),
    Break::new("HAProxy: expects it from another network", is_haproxy, |stage| {
        haproxy(stage, "192.168.0.0/16");
        all(stage, NGINX, "required from 192.168.0.0/16");
    })
    .told(&["D901"]),
    Break::new("HAProxy: a value that is no address", is_haproxy, |stage| {
        haproxy(stage, "true");
        all(stage, NGINX, "never");
    })
    .told(&["D901"]),
    Break::new("HAProxy: an address beside what is none", is_haproxy, |stage| haproxy(stage, &format!("true,{TRUSTED}"))),
    Break::new("HAProxy: the key in another ConfigMap", is_haproxy, |stage| {
        config_map(&stage.world, "other", &json!({"log": "info"}));
        args(stage, &["--configmap=default/other", "--http-bind-port=8080", "--https-bind-port=8443"]);
        all(stage, NGINX, "never");
    })
    .told(&["D901"]),
    Break::new("HAProxy: a TCP service", is_haproxy, |stage| {
        config_map(&stage.world, "tcp", &json!({"9000": "shop/db:5432"}));
        args(stage, &["--configmap=default/haproxy", "--configmap-tcp-services=default/tcp", "--http-bind-port=8080", "--https-bind-port=8443"]);
        declare(stage, 9000);
        target(stage, 1, &json!(9000), 9000);
        reads(stage, "web-1", &[(9000, "never")]);
    })
    .told(&["D901"]),
    Break::new("HAProxy Ingress of somebody else", is_haproxy, |stage| {
        container_field(stage, "image", &json!("quay.io/jcmoraisjr/haproxy-ingress:v0.14.7"));
    })
    .unseen(&[9]),
    Break::new("Envoy Gateway: no policy", is_envoy, |stage| {
        forget(stage);
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: the header is optional", is_envoy, |stage| {
        renew(stage, &json!({"targetRefs": [gateway_ref("eg")], "proxyProtocol": {"optional": true}}));
        all(stage, ENVOY, "optional");
    }),
    Break::new("Envoy Gateway: proxyProtocol without a word", is_envoy, |stage| {
        renew(stage, &json!({"targetRefs": [gateway_ref("eg")], "proxyProtocol": {}}));
    }),
    Break::new("Envoy Gateway: by the old field targetRef", is_envoy, |stage| {
        renew(stage, &json!({"targetRef": gateway_ref("eg"), "enableProxyProtocol": true}));
    }),
    Break::new("Envoy Gateway: by the Gateway's labels", is_envoy, |stage| {
        renew(stage, &json!({"targetSelectors": [{"kind": "Gateway", "matchLabels": {"team": "eg"}}], "enableProxyProtocol": true}));
    }),
    Break::new("Envoy Gateway: by labels of another Gateway", is_envoy, |stage| {
        renew(stage, &json!({"targetSelectors": [{"kind": "Gateway", "matchLabels": {"team": "other"}}], "enableProxyProtocol": true}));
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: for another Gateway", is_envoy, |stage| {
        renew(stage, &json!({"targetRefs": [gateway_ref("internal")], "enableProxyProtocol": true}));
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: in another namespace", is_envoy, |stage| {
        forget(stage);
        let spec = json!({"targetRefs": [gateway_ref("eg")], "enableProxyProtocol": true});
        traffic_policy(&stage.world, "shop", "header", &spec);
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: for one listener", is_envoy, |stage| {
        renew(stage, &json!({"targetRefs": [section("https")], "enableProxyProtocol": true}));
        reads(stage, "web-1", &[(10080, "never")]);
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: for a listener that is not there", is_envoy, |stage| {
        renew(stage, &json!({"targetRefs": [section("web")], "enableProxyProtocol": true}));
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: another policy for one listener", is_envoy, |stage| {
        traffic_policy(&stage.world, "default", "narrow", &json!({"targetRefs": [section("http")], "timeout": {}}));
        reads(stage, "web-1", &[(10080, "never")]);
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: an older policy without it", is_envoy, |stage| {
        forget(stage);
        traffic_policy(&stage.world, "default", "a-older", &json!({"targetRefs": [gateway_ref("eg")], "timeout": {}}));
        let spec = json!({"targetRefs": [gateway_ref("eg")], "enableProxyProtocol": true});
        traffic_policy(&stage.world, "default", "b-newer", &spec);
        all(stage, ENVOY, "never");
    })
    .told(&["D901"]),
    Break::new("Envoy Gateway: the policy is for the Gateway after all", |kind| kind == Kind::PlainEnvoy, |stage| {
        let spec = json!({"targetRefs": [gateway_ref("eg")], "enableProxyProtocol": true});
        traffic_policy(&stage.world, "default", "header", &spec);
        all(stage, ENVOY, "required");
    })
    .told(&["D902"]),
    Break::new("a program that nobody knows", is_nginx, |stage| {
        container_field(stage, "image", &json!("registry.example.org/shop/server:7"));
        container_field(stage, "args", &json!([]));
    })
    .seen(Sight::Hidden)
    .unseen(&[9]),
];

fn is_nginx_anywhere(kind: Kind) -> bool {
    is_nginx(kind) && !matches!(kind, Kind::Local | Kind::DualStack | Kind::Shared)
}

fn is_traefik(kind: Kind) -> bool {
    kind == Kind::Traefik
}

fn is_haproxy(kind: Kind) -> bool {
    kind == Kind::Haproxy
}

fn is_envoy(kind: Kind) -> bool {
    kind == Kind::Envoy
}

fn all(stage: &Stage, ports: [u16; 2], word: &str) {
    reads(stage, "web-1", &ports.map(|port| (port, word)));
}

fn nginx(stage: &Stage, value: &str) {
    stage.patch("configmaps", "nginx", &json!({"data": {"use-proxy-protocol": value}}));
}

fn haproxy(stage: &Stage, value: &str) {
    stage.patch("configmaps", "haproxy", &json!({"data": {"proxy-protocol": value}}));
}

fn pod_field(stage: &Stage, field: &str, value: &Value) {
    stage.patch("pods", "web-1", &json!({"spec": {field: value}}));
}

fn container_field(stage: &Stage, field: &str, value: &Value) {
    let mut pod = stage.world.kube.get("pods", "default", "web-1").unwrap();
    pod["spec"]["containers"][0][field] = value.clone();
    pod_field(stage, "containers", &pod["spec"]["containers"]);
}

fn args(stage: &Stage, words: &[&str]) {
    container_field(stage, "args", &json!(words));
}

fn stage_args(stage: &Stage, words: &[String]) {
    container_field(stage, "args", &json!(words));
}

/// Another port of the container.
fn declare(stage: &Stage, number: u16) {
    let mut pod = stage.world.kube.get("pods", "default", "web-1").unwrap();
    let ports = pod["spec"]["containers"][0]["ports"].as_array_mut().unwrap();
    ports.push(json!({"name": "tcp", "containerPort": number, "protocol": "TCP"}));
    pod_field(stage, "containers", &pod["spec"]["containers"]);
}

/// Leads the port in this place elsewhere.
fn target(stage: &Stage, place: usize, target: &Value, at: u16) {
    let mut ports = stage.web()["spec"]["ports"].clone();
    ports[place]["targetPort"] = target.clone();
    stage.patch("services", "web", &json!({"spec": {"ports": ports}}));
    for slice in stage.world.kube.list("endpointslices", "default").unwrap() {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web" {
            let mut ports = slice["ports"].clone();
            ports[place]["port"] = json!(at);
            stage.patch(
                "endpointslices",
                slice["metadata"]["name"].as_str().unwrap(),
                &json!({"ports": ports}),
            );
        }
    }
}

/// The second port of the Service leads to a TCP service of nginx.
fn tcp_service(stage: &Stage, line: &str) {
    config_map(&stage.world, "tcp", &json!({"9000": line}));
    args(
        stage,
        &[
            "/nginx-ingress-controller",
            "--configmap=$(POD_NAMESPACE)/nginx",
            "--tcp-services-configmap=default/tcp",
            "--http-port=8080",
            "--https-port=8443",
        ],
    );
    declare(stage, 9000);
    target(stage, 1, &json!(9000), 9000);
}

/// Another pod behind the Service, whose container differs.
fn second_pod(stage: &Stage, change: impl Fn(&mut Value)) {
    let mut container = container(stage.kind);
    change(&mut container);
    cluster::pod(
        &stage.world,
        "default",
        "web-2",
        &labels(stage.kind),
        "node-1",
        &["10.244.1.7"],
        &json!([container]),
    );
    let slice = stage.world.kube.get("endpointslices", "default", "web-ipv4").unwrap();
    let mut endpoints = slice["endpoints"].clone();
    endpoints.as_array_mut().unwrap().push(json!({"addresses": ["10.244.1.7"], "nodeName": "node-1",
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-2"}}));
    stage.patch("endpointslices", "web-ipv4", &json!({"endpoints": endpoints}));
}

/// All of Traefik's configuration, as variables.
fn environment() -> Value {
    let variables = [
        ("TRAEFIK_ENTRYPOINTS_WEB_ADDRESS", ":8000"),
        ("TRAEFIK_ENTRYPOINTS_WEBSECURE_ADDRESS", ":8443"),
        ("TRAEFIK_ENTRYPOINTS_WEB_PROXYPROTOCOL_TRUSTEDIPS", TRUSTED),
        ("TRAEFIK_ENTRYPOINTS_WEBSECURE_PROXYPROTOCOL_TRUSTEDIPS", TRUSTED),
    ];
    variables.map(|(name, value)| json!({"name": name, "value": value})).to_vec().into()
}

/// Traefik's configuration in a file of a ConfigMap, with this under `proxyProtocol` of both entry points.
fn traefik_file(stage: &Stage, setting: &str, flags: &[String]) {
    let entry = |name: &str, port: u16| {
        let setting =
            if setting.is_empty() { String::new() } else { format!("    proxyProtocol: {setting}\n") };
        format!("  {name}:\n    address: \":{port}\"\n{setting}")
    };
    let text = format!(
        "entryPoints:\n{}{}providers:\n  kubernetesCRD: {{}}\n",
        entry("web", 8000),
        entry("websecure", 8443)
    );
    config_map(&stage.world, "static", &json!({"traefik.yaml": text}));
    let mut words = vec!["--configFile=/etc/static/traefik.yaml".to_owned()];
    words.extend(flags.iter().cloned());
    stage_args(stage, &words);
    container_field(stage, "volumeMounts", &json!([{"name": "static", "mountPath": "/etc/static"}]));
    pod_field(stage, "volumes", &json!([{"name": "static", "configMap": {"name": "static"}}]));
}

fn forget(stage: &Stage) {
    stage.world.kube.delete("clienttrafficpolicies", "default", "header").unwrap();
}

/// Another policy in the place of the one that there is.
fn renew(stage: &Stage, spec: &Value) {
    forget(stage);
    traffic_policy(&stage.world, "default", "header", spec);
}

fn section(name: &str) -> Value {
    let mut target = gateway_ref("eg");
    target["sectionName"] = json!(name);
    target
}

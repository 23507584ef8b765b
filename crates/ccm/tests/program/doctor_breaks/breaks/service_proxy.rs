//! kube-proxy: its version, feature gate and `nodePortAddresses`, by pod, image, flag and ConfigMap.
//!
//! kube-proxy ignores its flags where it has `--config`. `LoadBalancerIPMode` is alpha in 1.29, beta in 1.30, and always on from 1.32.

use serde_json::{Value, json};

use super::{Break, Sight, in_cloud, needs_way};
use crate::doctor_breaks::kube_proxy::{change, change_on, change_template, configure, hide};
use crate::doctor_breaks::stage::{Kind, Stage};

const GATE_OFF: &str = "featureGates:\n  LoadBalancerIPMode: false\n";
const GATE_ON: &str = "featureGates:\n  LoadBalancerIPMode: true\n";

pub(super) const BREAKS: &[Break] = &[
    Break::new("kube-proxy of one node older than its kubelet", knows_mode, |stage| {
        change_on(&stage.world, "node-1", |spec| set_image(spec, "v1.29.9"));
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("kube-proxy everywhere older than the kubelets", knows_mode, |stage| {
        change(&stage.world, |spec| set_image(spec, "v1.29.9"));
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("pods of kube-proxy that are not replaced yet", knows_mode, |stage| {
        change(&stage.world, |spec| set_image(spec, "v1.28.3"));
        change_template(&stage.world, |spec| set_image(spec, "v1.36.0"));
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("kubelets older than kube-proxy", knows_mode, |stage| stage.world.set_kubelets("v1.29.4")),
    Break::new("old kube-proxy under a mirror's name", knows_mode, |stage| {
        change(&stage.world, |spec| {
            spec["containers"][0]["image"] = json!("harbor.corp:5000/k8s/kube-proxy-amd64:v1.29.9");
        });
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("kube-proxy by tag and digest", knows_mode, |stage| {
        change(&stage.world, |spec| {
            let digest = "a".repeat(64);
            spec["containers"][0]["image"] =
                json!(format!("registry.k8s.io/kube-proxy:v1.36.0@sha256:{digest}"));
        });
    }),
    Break::new("old kube-proxy by tag and digest", knows_mode, |stage| {
        change(&stage.world, |spec| {
            let digest = "a".repeat(64);
            spec["containers"][0]["image"] =
                json!(format!("registry.k8s.io/kube-proxy:v1.29.2@sha256:{digest}"));
        });
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("gate off in the ConfigMap", knows_mode, |stage| {
        release(stage, "v1.31.4");
        configure(&stage.world, GATE_OFF);
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("gate on for an old kube-proxy", knows_mode, |stage| {
        release(stage, "v1.29.9");
        configure(&stage.world, GATE_ON);
    }),
    Break::new("gate on for one that does not know it", knows_mode, |stage| {
        release(stage, "v1.28.9");
        configure(&stage.world, GATE_ON);
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("gate off by flag", knows_mode, |stage| {
        release(stage, "v1.30.1");
        flags(stage, &["--feature-gates=AllAlpha=false,LoadBalancerIPMode=false"]);
    })
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("gate off by a flag beside a file", knows_mode, |stage| {
        release(stage, "v1.31.4");
        change(&stage.world, |spec| push(spec, "--feature-gates=LoadBalancerIPMode=false"));
    }),
    Break::new("kube-proxy that nobody sees", knows_mode, |stage| hide(&stage.world)).unseen(&[3, 8]),
    Break::new("old kubelets, and kube-proxy that nobody sees", knows_mode, |stage| {
        hide(&stage.world);
        stage.world.set_kubelets("v1.29.4");
    })
    // Versions of kubelet are a guess.
    .seen(Sight::Doubt)
    .unseen(&[3, 8])
    .told(&["D301"])
    .told_in(needs_way),
    Break::new("a configuration on the disk of the nodes", knows_mode, |stage| {
        change(&stage.world, |spec| {
            spec["volumes"][0] = json!({"name": "kube-proxy", "hostPath": {"path": "/etc/kube-proxy"}});
        });
    })
    .unseen(&[3, 8]),
    Break::new("node ports at other addresses", in_cloud, |stage| {
        configure(&stage.world, "nodePortAddresses:\n- 10.0.0.0/8\n- 127.0.0.0/8\n");
    })
    .told(&["D807"]),
    Break::new("node ports at the addresses of nodes", is_ipv4, |stage| {
        configure(&stage.world, "nodePortAddresses: [\"198.18.0.0/24\"]\n");
    }),
    Break::new("node ports at the primary address", in_cloud, |stage| {
        configure(&stage.world, "nodePortAddresses:\n- primary\n");
    }),
    Break::new("node ports of this machine only, by flag", in_cloud, |stage| {
        flags(stage, &["--nodeport-addresses=127.0.0.1/32"]);
    })
    .told(&["D807"]),
    Break::new("node ports of one node at other addresses", in_cloud, |stage| {
        change_on(&stage.world, "node-1", |spec| {
            set_flags(spec, &["--nodeport-addresses=127.0.0.1/32"]);
        });
    })
    .told(&["D807", "D704"])
    .told_in(|kind| kind != Kind::Local),
    Break::new(
        "node ports of IPv4 only",
        |kind| kind == Kind::DualStack,
        |stage| {
            configure(&stage.world, "nodePortAddresses:\n- 198.18.0.0/24\n");
        },
    ),
    Break::new("mode nftables", in_cloud, |stage| configure(&stage.world, "mode: nftables\n")),
    Break::new("mode ipvs", in_cloud, |stage| {
        configure(&stage.world, "mode: ipvs\nipvs:\n  strictARP: true\n");
    }),
];

fn knows_mode(kind: Kind) -> bool {
    kind != Kind::Hostname
}

fn is_ipv4(kind: Kind) -> bool {
    in_cloud(kind) && kind != Kind::DualStack
}

pub(super) fn set_image(spec: &mut Value, version: &str) {
    spec["containers"][0]["image"] = json!(format!("registry.k8s.io/kube-proxy:{version}"));
}

/// Kubelets and kube-proxy of this release.
fn release(stage: &Stage, version: &str) {
    stage.world.set_kubelets(version);
    change(&stage.world, |spec| set_image(spec, version));
}

/// No file of configuration, and these flags.
fn flags(stage: &Stage, flags: &[&str]) {
    change(&stage.world, |spec| set_flags(spec, flags));
}

fn set_flags(spec: &mut Value, flags: &[&str]) {
    let words = ["/usr/local/bin/kube-proxy", "--kubeconfig=/var/lib/kube-proxy/kubeconfig.conf"];
    spec["containers"][0]["command"] = json!([&words, flags].concat());
}

fn push(spec: &mut Value, word: &str) {
    spec["containers"][0]["command"].as_array_mut().unwrap().push(json!(word));
}

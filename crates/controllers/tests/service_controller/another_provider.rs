//! The controllers serve any provider: what is called by a name of one cloud comes from the provider.

use std::collections::BTreeSet;
use std::path::{Path as Folder, PathBuf};
use std::time::Duration;

use openstack_ccm_core::advertise::{ClusterAccess, IpModeChoice, Needs, Path, Preference};
use openstack_ccm_core::provider::OrphanCandidate;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_kube_sim::ApiVersion;

use crate::world::{World, settle};

const PROXY: Path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
const TLS: Path = Path::ThroughLoadBalancer(Needs::TlsTermination);

/// Words of OpenStack. The name of the project is none of them.
const WORDS: [&str; 8] =
    ["openstack", "octavia", "neutron", "nova", "keystone", "amphora", "cloud.conf", "floating"];

fn words_of_one_cloud(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase().replace("openstack-ccm", "").replace("openstack_ccm", "");
    WORDS.into_iter().filter(|word| text.contains(word)).collect()
}

fn sources(folder: &Folder, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_contract_and_the_controllers_have_no_word_of_one_cloud() {
    let crates = Folder::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    ["core", "runtime", "advertise", "controllers"]
        .iter()
        .for_each(|name| sources(&crates.join(name), &mut files));
    assert!(files.len() > 100, "the sources are elsewhere");
    for file in files.iter().filter(|file| !file.ends_with("service_controller/another_provider.rs")) {
        let words = words_of_one_cloud(&std::fs::read_to_string(file).unwrap());
        assert!(words.is_empty(), "{} has {words:?}: the provider supplies such words", file.display());
    }
}

async fn events(world: &World) -> String {
    world.events("app").join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_user_reads_the_names_of_the_provider_that_serves_the_cluster() {
    let mut world = World::new(ApiVersion::V1_28);
    world.options.resync = Some(Duration::from_secs(600));
    world.cloud.publish_by(PROXY, Preference::default());
    world.start().await;
    world.serve("app").await;
    let texts = events(&world).await;
    assert!(texts.contains("set the annotation lb.example.org/hostname on the Service"), "{texts}");
    assert!(texts.contains("or hostname-suffix in example.toml"), "{texts}");

    world.kube.set_version(ApiVersion::V1_36);
    world.until_ingress("app", "203.0.113.10(Proxy)").await;
    world.cloud.let_in(ClusterAccess::Without(vec!["10.0.0.0/24".into()]));
    world.wake("app");
    settle().await;
    let texts = events(&world).await;
    assert!(texts.contains("set the annotation lb.example.org/allow-cluster-sources: \"true\""), "{texts}");

    let operators_vip = Preference { cluster_mode: IpModeChoice::Vip, ..Preference::default() };
    world.cloud.publish_by(TLS, operators_vip);
    world.wake("app");
    settle().await;
    let texts = events(&world).await;
    assert!(texts.contains("or remove ip-mode in example.toml"), "{texts}");

    world.cloud.has_made(OrphanCandidate {
        id: "lb-7".into(),
        name: "app-of-old".into(),
        service_uids: BTreeSet::from(["gone".to_owned()]),
        is_retained: false,
        service: Some(ServiceKey::new("default", "app")),
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let texts = events(&world).await;
    assert!(texts.contains("delete it: examplectl lb rm lb-7"), "{texts}");
    assert_eq!(words_of_one_cloud(&texts), [""; 0], "{texts}");
    assert_ne!(
        world.metric("cloudprovider_example_reconcile_total{operation=\"loadbalancer_ensure\"}"),
        "absent"
    );
}

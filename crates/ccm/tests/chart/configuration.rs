//! The Secret holds a cloud.conf that the program reads as the values mean it.

use base64::Engine as _;
use openstack_ccm_provider_openstack::config::{self, Loaded, ProcessEnvironment};
use rstest::rstest;

use crate::helm::{Objects, Release};

/// The text of cloud.conf.
pub(crate) fn cloud_conf(objects: &Objects) -> String {
    let data = objects.all("Secret").find_map(|secret| secret["data"]["cloud.conf"].as_str()).unwrap();
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()
}

fn load(text: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cloud.conf");
    std::fs::write(&file, text).unwrap();
    config::load(&[file], &ProcessEnvironment).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_program_reads_what_the_values_say() {
    let Some(objects) = Release::new().values("occm-documented.yaml").objects() else { return };
    let text = cloud_conf(&objects);
    assert!(text.contains(r#"application-credential-secret = "s3\"cr\\#t""#), "{text}");
    let loaded = load(&text);
    assert_eq!(loaded.config.load_balancer.max_shared_lb, 4);
    assert_eq!(loaded.config.load_balancer.monitor_delay, std::time::Duration::from_secs(7));
}

/// Defect: 73, better: lists and class sections can be given as values.
#[test]
fn lists_numbers_and_classes_keep_their_form() {
    let Some(objects) = Release::new().values("everything.yaml").objects() else { return };
    let text = cloud_conf(&objects);
    for lines in [
        "public-network-name = \"public\"\npublic-network-name = \"dmz\"\n",
        "max-shared-lb = \"12345678\"\n",
        "[LoadBalancerClass \"dmz\"]\nfloating-subnet-tags = \"dmz,ipv4\"",
    ] {
        assert!(text.contains(lines), "{lines} is not in\n{text}");
    }
}

/// Defect: 73, better: the pods roll over also when the whole text changes.
#[test]
fn a_text_takes_the_place_of_the_sections_and_rolls_the_pods() {
    let release = |text: &str| Release::new().set(&format!("cloudConfigContents={text}")).objects();
    let (Some(one), Some(two)) = (release("[Global]"), release("[Route]")) else { return };
    assert_eq!(cloud_conf(&one), "[Global]");
    let checksum =
        |objects: &Objects| objects.pod()["metadata"]["annotations"]["checksum/config"].to_string();
    assert_ne!(checksum(&one), checksum(&two));
}

/// Each of these would install something that cannot work, or drop something without a word.
#[rstest]
#[case::no_cloud_conf(&[], "there is no cloud.conf")]
#[case::two_of_them(&["cloudConfig.global.region=one", "cloudConfigContents=x"], "cloudConfig.global are set, and the latter would be ignored")]
#[case::the_port_of_the_probes(&["cloudConfig.global.region=one", "extraArgs={--secure-port=1234}"], "set securePort")]
#[case::another_cluster_name(&["cloudConfig.global.region=one", "extraArgs={--cluster-name=abc}"], "set cluster.name")]
#[case::another_charts_secret(&["cloudConfig.existingSecret=cloud-config"], "secret.create=false and secret.name")]
#[case::and_its_other_name(&["cloudConfig.secretName=cloud-config"], "secret.create=false and secret.name")]
fn what_cannot_work_is_refused_with_the_way_out(#[case] settings: &[&str], #[case] expected: &str) {
    let release = settings.iter().fold(Release::new().without_cloud_conf(), |release, one| release.set(one));
    let Some(error) = release.error() else { return };
    assert!(error.contains(expected), "{error}");
}

/// What OCCM's chart passes over does no harm here either.
#[rstest]
#[case::a_section_of_another_program(&["cloudConfig.global.region=one", "cloudConfig.block_storage.ignore-volume-az=true"])]
#[case::credentials_in_variables(&["extraEnv[0].name=OS_CLOUD", "extraEnv[0].value=lab"])]
#[case::the_same_cluster_name_twice(&["cloudConfig.global.region=one", "cluster.name=abc", "extraArgs={--cluster-name=abc}"])]
#[case::a_secret_that_exists(&["secret.create=false"])]
fn what_works_with_occms_chart_works(#[case] settings: &[&str]) {
    let release = settings.iter().fold(Release::new().without_cloud_conf(), |release, one| release.set(one));
    let Some(text) = release.text() else { return };
    assert!(!text.contains("ignore-volume-az"), "{text}");
}

//! Sections, defaults, several files.

use std::time::Duration;

use openstack_ccm_core::advertise::IpModeChoice;
use openstack_ccm_openstack_api::identity::InterfaceType;
use openstack_ccm_provider_openstack::config::gcfg::EntryValue;
use openstack_ccm_provider_openstack::config::section::{Field, Key};
use openstack_ccm_provider_openstack::config::{
    CreateMonitor, Global, LoadBalancer, LoadBalancerClass, Metadata, Networking, Route,
};
use rstest::rstest;

use crate::environment::{LOGIN, Memory, loaded, message, transcript, warnings};

/// The example that users of the Go program know.
const EXAMPLE: &str = r#"
region=RegionOne

[Networking]
public-network-name=public
public-network-name=dmz
internal-network-name=k8s-net
address-sort-order="10.0.0.0/8, 2001:db8::/32"

[LoadBalancer]
lb-provider=amphora
floating-network-id=a57af0a0-da92-49be-a98a-345ceca004b3
floating-subnet="~^pool-[0-9]+$"
create-monitor=yes
monitor-delay=5s
monitor-timeout=3s
manage-security-groups
max-shared-lb=4
node-selector="env=production, region"

[LoadBalancerClass "dmz"]
floating-subnet-tags=&dmz,ipv4
subnet-id=fa6a4e6c-6ae4-4dde-ae86-3e2f452c1f03

[Route]
router-id=6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11

[Metadata]
request-timeout=30s
"#;

#[test]
fn a_full_file_is_read() {
    let loaded = loaded(EXAMPLE);
    assert_eq!(loaded.warnings, []);
    let config = &loaded.config;
    assert_eq!(config.global.region.as_deref(), Some("RegionOne"));
    assert_eq!(config.networking.public_network_name, ["public", "dmz"]);
    assert_eq!(config.networking.internal_network_name, ["k8s-net"]);
    let order: Vec<_> = config.networking.address_sort_order.iter().map(ToString::to_string).collect();
    assert_eq!(order, ["10.0.0.0/8", "2001:db8::/32"]);
    let expected = LoadBalancer {
        placement: LoadBalancerClass {
            floating_network_id: Some("a57af0a0-da92-49be-a98a-345ceca004b3".to_owned()),
            floating_subnet: Some("~^pool-[0-9]+$".to_owned()),
            ..LoadBalancerClass::default()
        },
        create_monitor: CreateMonitor::All,
        manage_security_groups: true,
        max_shared_lb: 4,
        node_selector: Some("env=production, region".to_owned()),
        ..LoadBalancer::default()
    };
    assert_eq!(config.load_balancer, expected);
    let class = LoadBalancerClass {
        floating_subnet_tags: Some("&dmz,ipv4".to_owned()),
        subnet_id: Some("fa6a4e6c-6ae4-4dde-ae86-3e2f452c1f03".to_owned()),
        ..LoadBalancerClass::default()
    };
    assert_eq!(config.classes.get("dmz"), Some(&class));
    assert_eq!(config.route.router_id.as_deref(), Some("6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11"));
    assert_eq!(config.metadata.request_timeout(), Duration::from_secs(30));
}

#[test]
fn the_quoted_values_of_the_chart_are_read() {
    let config = loaded(
        "region = \"R1\"\n[Networking]\n[LoadBalancer]\nenabled = \"false\"\nmonitor-delay = \"10s\"\nmax-shared-lb = \"3\"\n\
         [BlockStorage]\n[Metadata]\nrequest-timeout = \"0\"\n[Route]\n",
    )
    .config;
    assert!(!config.load_balancer.enabled);
    assert_eq!(config.load_balancer.monitor_delay, Duration::from_secs(10));
    assert_eq!(config.load_balancer.max_shared_lb, 3);
    assert_eq!(config.metadata.request_timeout(), Duration::from_secs(60), "0 stands for the default");
}

#[test]
fn our_own_keys_are_read() {
    let section = loaded("[LoadBalancer]\nip-mode=proxy\nadopt-foreign-cluster\n").config.load_balancer;
    assert_eq!((section.ip_mode, section.adopt_foreign_cluster), (IpModeChoice::Proxy, true));
    let section = loaded("").config.load_balancer;
    assert_eq!((section.ip_mode, section.adopt_foreign_cluster), (IpModeChoice::Auto, false));
}

#[rstest]
#[case::nothing("", None)]
#[case::enabled("enable-ingress-hostname=true\n", Some("nip.io"))]
#[case::suffix_only("ingress-hostname-suffix=lb.example.org\n", Some("lb.example.org"))]
#[case::both("enable-ingress-hostname\ningress-hostname-suffix=.lb.example.org\n", Some("lb.example.org"))]
#[case::empty("ingress-hostname-suffix=\n", None)]
#[case::empty_and_enabled("enable-ingress-hostname\ningress-hostname-suffix=\n", Some("nip.io"))]
fn a_foreign_dns_service_is_only_used_when_asked_for(#[case] lines: &str, #[case] suffix: Option<&str>) {
    let section = loaded(&format!("[LoadBalancer]\n{lines}")).config.load_balancer;
    assert_eq!(section.effective_hostname_suffix(), suffix);
}

/// `search-order` is only checked: one or two of the two known words.
///
/// Contract: X3, same.
#[rstest]
#[case::two("search-order = configDrive, metadataService", true)]
#[case::one("search-order=metadataService", true)]
#[case::empty("search-order=", true)]
#[case::three("search-order=configDrive,metadataService,configDrive", false)]
#[case::unknown("search-order=foo", false)]
fn x3_the_search_order_is_checked(#[case] line: &str, #[case] accepted: bool) {
    let result = Memory::with_cloud_conf(format!("{LOGIN}[Metadata]\n{line}\n")).load();
    assert_eq!(result.is_ok(), accepted, "{result:?}");
}

/// `os-endpoint-type` chooses the interface of the catalog; words such as `internalURL` are errors.
///
/// Contract: X7, same.
#[rstest]
#[case("os-endpoint-type=internal", Some(InterfaceType::Internal))]
#[case("os-endpoint-type=admin", Some(InterfaceType::Admin))]
#[case("", None)]
fn x7_endpoint_types_are_exact_words(#[case] line: &str, #[case] expected: Option<InterfaceType>) {
    let loaded = loaded(line);
    assert_eq!(loaded.config.global.os_endpoint_type, expected);
    assert_eq!(loaded.auth_options.interface, expected.unwrap_or(InterfaceType::Public));
}

/// The address of a service is that of the configuration, whatever the catalog lists; what is no address is an error.
///
/// Contract: O23, better: OCCM takes addresses from the catalog only.
#[test]
fn an_endpoint_of_the_configuration_takes_the_place_of_that_of_the_catalog() {
    let keys = ["load-balancer", "network", "compute", "identity"];
    let lines: Vec<String> = keys.map(|key| format!("endpoint-{key}=https://{key}.example.org\n")).to_vec();
    let endpoints = loaded(&lines.concat()).auth_options.endpoints;
    let mut addresses: Vec<&str> = endpoints.values().map(url::Url::as_str).collect();
    addresses.sort_unstable();
    let expected =
        ["compute", "identity", "load-balancer", "network"].map(|key| format!("https://{key}.example.org/"));
    assert_eq!(addresses, expected);
    assert!(message("endpoint-network=neutron.example.org\n").contains("endpoint-network"));
}

#[test]
fn providers_that_services_may_choose_are_listed_and_one_that_is_not_known_is_a_warning() {
    let conf = "[LoadBalancer]\nlb-providers = ovn, vendor\n";
    assert_eq!(loaded(conf).config.load_balancer.lb_providers, ["ovn", "vendor"]);
    assert!(
        warnings(conf).contains("lb-providers: `vendor` is not a supported value and is used unchanged"),
        "{}",
        warnings(conf)
    );
}

#[test]
fn later_files_win_per_key_and_lists_grow() {
    let environment = Memory::with_cloud_conf(format!(
        "{LOGIN}region=one\n[LoadBalancer]\nmax-shared-lb=4\nlb-provider=ovn\n[Networking]\npublic-network-name=a\n"
    ))
    .file("extra.conf", "[Global]\nregion=two\n[Networking]\npublic-network-name=b\n[LoadBalancer]\nlb-provider=\n");
    let config = environment.load_files(&["cloud.conf", "extra.conf"]).unwrap().config;
    assert_eq!(config.global.region.as_deref(), Some("two"));
    assert_eq!(config.load_balancer.max_shared_lb, 4);
    assert_eq!(config.load_balancer.lb_provider, None, "empty leaves the choice to Octavia");
    assert_eq!(config.networking.public_network_name, ["a", "b"]);
}

#[test]
fn errors_name_their_own_file() {
    let environment = Memory::with_cloud_conf(format!("{LOGIN}use-clouds=maybe\n"))
        .file("extra.conf", "[LoadBalancer]\nmax-shared-lb=-1\n");
    let message = environment.load_files(&["cloud.conf", "extra.conf", "none.conf"]).unwrap_err().to_string();
    insta::assert_snapshot!(message, @r#"
    the cloud configuration has 3 errors:
      cloud.conf:5:1: [Global] use-clouds = "maybe": the value is not a bool; use `true` or `false` (also `yes`, `on`, `1` and `no`, `off`, `0`)
      extra.conf:2:1: [LoadBalancer] max-shared-lb = "-1": the number is out of range; use a number from 0 to 4294967295
      none.conf: the file cannot be read: entity not found; correct the path, or make the file readable for this program
    "#);
}

#[test]
fn without_a_file_nothing_is_configured() {
    insta::assert_snapshot!(Memory::default().load_files(&[]).unwrap_err(), @"
    the cloud configuration has an error:
      command line: no cloud configuration is specified; specify a file with --cloud-config
    ");
}

#[test]
fn an_empty_file_is_valid_and_the_log_in_is_missing() {
    insta::assert_snapshot!(Memory::with_cloud_conf("").load().unwrap_err(), @"
    the cloud configuration has 2 errors:
      cloud.conf: [Global] auth-url: the address of Keystone is not set; add `auth-url = https://host:5000/v3`
      cloud.conf: [Global] password: no credentials are configured; set `application-credential-id` and `application-credential-secret`, or `username`, `user-domain-name`, `password`, `tenant-name` and `tenant-domain-name`, or `use-clouds`
    ");
}

/// Each case alone, with its message.
#[test]
fn what_cannot_work_is_refused() {
    let cases = [
        "[LoadBalancer]\nlb-version=v1\n",
        "[LoadBalancer]\nmax-shared-lb=-1\n",
        "[LoadBalancer]\ningress-hostname-suffix=Bad_Name\n",
        "[LoadBalancer]\nip-mode=both\n",
        "[LoadBalancer]\nlb-method=\n",
        "[LoadBalancer]\nnode-selector==v\n",
        "[LoadBalancer]\nnode-selector=pool=edge,=v\n",
        "[LoadBalancer]\nnode-selector={}\n",
        "[LoadBalancer]\ncreate-monitor\nmonitor-timeout=500ms\n",
        "[LoadBalancer]\ncreate-monitor\nmonitor-max-retries=11\n",
        "[LoadBalancer]\nmonitor-delay=5\n",
        "os-endpoint-type=publicURL\n",
        "cert-file=/cert.pem\n",
        "ca-file=/none.pem\n",
        "cafilecontents=abc\n",
        "auth-url=keystone:5000\n",
        "[LoadBalancerClass]\nsubnet-id=s\n",
        "[LoadBalancer]\nmonitor-max-retries=0x\n",
        "[Route]\nrouter-id\n",
    ];
    insta::assert_snapshot!(transcript(&cases, message));
}

/// Each case alone, with its warnings.
///
/// Defect: 40, better: an unknown key is named with its line and the key that is nearest.
#[test]
fn what_is_most_likely_a_mistake_is_named() {
    let cases = [
        "[LoadBalancers]\n[Nowhere]\n",
        "regoin=R1\n[LoadBalancer]\nfloating-netwrok-id=x\nrouter-id=y\nbandwidth=z\n",
        "secret-name=x\n[LoadBalancer]\nuse-octavia=true\n",
        "[Metadata]\nsearch-order=configDrive\n[BlockStorage]\nbs-version=v2\nrescan-on-resize\n",
        "[LoadBalancer \"dmz\"]\nsubnet-id=x\n",
        "[LoadBalancer]\nlb-provider=foo\ncontainer-store=vault\nlb-method=FASTEST\n",
        "cloud=x\nclouds-file=y\n",
        "[LoadBalancer]\nmonitor-delay=1500ms\nmonitor-max-retries=0\n",
        "[LoadBalancer]\ncreate-monitor\nmonitor-delay=2s\n",
        "[LoadBalancer]\nnode-selector=\"pool=edge,\"\n",
        "password=abc#def\nuser-id=u\ntenant-id=t\n",
        "tls-insecure=yes\n",
        "password=abc\nuser-id=u\n",
        "[Networking]\naddress-sort-order=10.0.0.0/8 ten 10.0.0.0/40\npublic-network-name=\n",
    ];
    insta::assert_snapshot!(transcript(&cases, warnings));
}

/// Only version 2 of load balancers is known; a provider that is not known is sent to Octavia all the same.
///
/// Contract: X4, same.
#[test]
fn x4_a_provider_that_is_not_known_is_used_all_the_same() {
    assert!(message("[LoadBalancer]\nlb-version=v1\n").contains("lb-version"));
    let loaded = loaded("[LoadBalancer]\nlb-provider=foo\ncontainer-store=vault\n");
    assert_eq!(loaded.config.load_balancer.lb_provider.as_deref(), Some("foo"));
    assert!(!loaded.config.load_balancer.verifies_tls_containers());
}

/// Documented defaults are the real ones: writing them changes nothing.
#[test]
fn the_documented_defaults_are_the_real_ones() {
    fn check<S: Clone + std::fmt::Debug + Default>(keys: &'static [Key<S>]) {
        for key in keys.iter().filter(|key| !key.default.is_empty()) {
            let mut section = S::default();
            key.field.set(&mut section, &EntryValue::Text(key.default.to_owned())).unwrap();
            let (found, default) = (format!("{section:?}"), format!("{:?}", S::default()));
            let silent = ["os-endpoint-type", "search-order"].contains(&key.name);
            assert!(silent || found == default, "{}: {found}", key.name);
        }
        let bools = keys.iter().filter(|key| matches!(key.field, Field::Bool(_)));
        assert!(bools.into_iter().all(|key| !key.default.is_empty()));
    }
    check(Global::KEYS);
    check(LoadBalancer::KEYS);
    check(LoadBalancerClass::KEYS);
    check(Networking::KEYS);
    check(Route::KEYS);
    check(Metadata::KEYS);
}

#[rstest]
#[case::alone("create-monitor", CreateMonitor::All)]
#[case::bool("create-monitor = off", CreateMonitor::No)]
#[case::local("create-monitor = Local", CreateMonitor::Local)]
fn monitors_are_for_all_for_none_or_for_local_traffic(#[case] line: &str, #[case] expected: CreateMonitor) {
    let text = format!("[LoadBalancer]\n{line}\n");
    assert_eq!(loaded(&text).config.load_balancer.create_monitor, expected);
}

#[test]
fn tags_stand_on_one_line_or_on_several() {
    let text = "[LoadBalancer]\ntags = a, b=c\ntags = d\n".to_owned();
    assert_eq!(loaded(&text).config.load_balancer.tags, ["a", "b=c", "d"]);
    let text = "[LoadBalancer]\ntags = openstack-ccm-service=x\n".to_owned();
    assert!(message(&text).contains("choose another tag"), "{}", message(&text));
}

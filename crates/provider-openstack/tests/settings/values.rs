//! Each annotation: absent, empty, right, of the wrong form, out of range.

use openstack_ccm_core::advertise::IpModeChoice;
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::octavia::{Fields as _, LbAlgorithm, MonitorAttributes};
use openstack_ccm_provider_openstack::config::{Config, CreateMonitor};
use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Empty, Form};
use openstack_ccm_provider_openstack::load_balancer::settings::{
    Exposure, HealthMonitorSettings, ProxyVersion, Settings,
};
use rstest::rstest;

use super::fixture::{Case, id};

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// What cloud.conf says beside an annotation under test: a value of its own for whatever has one.
fn opposite(config: &mut Config) {
    let section = &mut config.load_balancer;
    section.flavor_id = Some(id(71));
    section.availability_zone = Some("zone-of-config".to_owned());
    section.placement.subnet_id = Some(id(72));
    section.placement.network_id = Some(id(73));
    section.placement.member_subnet_id = Some(id(74));
    section.placement.floating_network_id = Some(id(75));
    section.placement.floating_subnet_id = Some(id(76));
    section.node_selector = Some("from=config".to_owned());
    section.default_tls_container_ref = Some("https://barbican/v1/containers/config".to_owned());
    section.adopt_foreign_cluster = true;
    section.create_monitor = CreateMonitor::All;
}

/// A right value of an annotation.
fn right(key: &str) -> String {
    let text = match key.rsplit_once('/').map_or(key, |(_, name)| name) {
        "proxy-protocol" => "false",
        "lb-method" => "SOURCE_IP",
        "reclaim-policy" => "retain",
        "allow-cluster-sources" => "true",
        "health-monitor-type" => "HTTP",
        "health-monitor-path" => "/ready",
        "health-monitor-method" => "HEAD",
        "health-monitor-expected-codes" => "200-299",
        "sni-container-refs" => "https://barbican/v1/containers/c2, https://barbican/v1/secrets/s1",
        "tls-versions" => "TLSv1.2,TLSv1.3",
        "tls-ciphers" => "ECDHE-RSA-AES128-GCM-SHA256:!aNULL",
        "alpn-protocols" => "h2, http/1.1",
        "ip-mode" => "vip",
        "tags" | "load-balancer-tags" | "listener-tags" | "pool-tags" => "centre=42, web",
        "node-address-type" => "ExternalIP",
        "availability-zone" => "zone-1",
        "floating-ip" => "203.0.113.7",
        "vip-address" => "10.0.0.7",
        "lb-provider" => "amphora",
        "floating-subnet" => "pool-*",
        "floating-subnet-tags" => "&a,b",
        "default-tls-container-ref" => "https://barbican.example.org/v1/containers/c1",
        "node-selector" => "pool=edge",
        "hostname" => "app.example.org",
        "load-balancer-source-ranges" | "metrics-allow-cidrs" => "192.0.2.0/24",
        "metrics-enable" => "false",
        "metrics-port" => "9101",
        "openstack-internal-load-balancer" | "allow-foreign-cluster" | "keep-floatingip" => "true",
        "x-forwarded-for" | "x-forwarded-port" | "x-forwarded-proto" | "enable-health-monitor" => "true",
        "health-monitor-timeout" => "4",
        "health-monitor-delay" | "health-monitor-max-retries" | "health-monitor-max-retries-down" => "7",
        "connection-limit" | "timeout-client-data" | "timeout-member-connect" => "100",
        "timeout-member-data" | "timeout-tcp-inspect" => "100",
        _ => return id(1),
    };
    text.to_owned()
}

/// Wrong values of an annotation.
fn wrong(key: &str, form: Form) -> Vec<String> {
    let texts: &[&str] = match form {
        // Counts as absent.
        Form::Bool => &[],
        Form::Integer { min, max, .. } => {
            let outside = [min.wrapping_sub(1), max.wrapping_add(1)].map(|number| number.to_string());
            let forms = ["abc", "1.5", "1s", " 1", "1 ", "0x10", "99999999999999999999"].map(str::to_owned);
            return outside.into_iter().chain(forms).collect();
        }
        Form::Word(_) => &["nonsense", " v1", "Round_Robin"],
        Form::Uuid(_) => &["a-name", "1234", "{00000001-0000-4000-8000-000000000000}"],
        Form::Output(_) => &[],
        Form::Text(_) => match key.rsplit_once('/').map_or(key, |(_, name)| name) {
            "class" => &["unknown"],
            "tags" => &[
                "openstack-ccm-cluster=x",
                "kube_service_x",
                "x234567890123456789012345678901234567890123456789012345678901",
            ],
            "load-balancer-tags" | "listener-tags" | "pool-tags" => {
                &["openstack-ccm-sets=x", "kube_cluster_id_x"]
            }
            "proxy-protocol" => &[
                "nonsense",
                " v1",
                "v2:",
                "v3:80",
                "v2:http",
                "v2:443",
                "v2:80,v1:80",
                "v2:80,v1",
                "v2:99999",
                "true:80",
            ],
            "health-monitor-path" => &["healthz", "/a b", "/\u{e9}", "http://x/"],
            "health-monitor-expected-codes" => {
                &["ok", "20", "2xx", "200-", "299-200", "200;204", "600", "200,-204"]
            }
            "sni-container-refs" => &["c1", "https://barbican/v1/orders/c1"],
            "tls-versions" => &["1.2", "TLSv1.2;TLSv1.3", "tlsv1.2", ","],
            "tls-ciphers" => &["A B", "A,B", "caf\u{e9}"],
            "alpn-protocols" => &["h3", "http/2", "h2;http/1.1", " , "],
            "tls-revision" => &["a,b", "a b", "caf\u{e9}"],
            "floating-ip" => &["public", "203.0.113.256", "2001:db8::1"],
            "vip-address" => {
                &["web", "10.0.0.256", "10.0.0.0/24", ",", "10.0.0.7,10.0.0.8", "10.0.0.7,fd00::7"]
            }
            "lb-provider" => &["ovn", "Amphora"],
            "floating-subnet" => &["[abc", "~(", "~[", "!~(", "{a", "[z-a]"],
            "floating-subnet-tags" => &["!", "&", "!&", " , ,"],
            "default-tls-container-ref" => &["c1", "https://barbican/v1/orders/c1", "https://barbican/c1"],
            "node-selector" => {
                &["=edge", "a=b,=c", "=", "{}", "pool=a b", "-a", "a/b/c", "a_b/c", "pool = edge", "pool=a=b"]
            }
            "hostname" => &["192.0.2.1", "UPPER.example.org", "under_score", "a..b"],
            "load-balancer-source-ranges" | "metrics-allow-cidrs" => {
                &["192.0.2.1", "192.0.2.0/33", "everybody"]
            }
            "availability-zone" => return vec!["z".repeat(256)],
            other => panic!("no wrong value is known for {other}"),
        },
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn every_annotation_takes_its_right_value() {
    for annotation in ALL.iter().filter(|annotation| !annotation.key.ends_with("/class")) {
        Case::new().annotate(annotation.key, right(annotation.key)).settings();
    }
}

/// A Service that uses what an annotation is about.
fn used(key: &str) -> Case {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    match name {
        "sni-container-refs" | "tls-versions" | "tls-ciphers" | "alpn-protocols" | "tls-revision" => {
            Case::new().annotate(
                "default-tls-container-ref",
                right("loadbalancer.openstack.org/default-tls-container-ref"),
            )
        }
        "metrics-port" => {
            Case::new().annotate("metrics-enable", "true").annotate("metrics-allow-cidrs", "192.0.2.0/24")
        }
        "metrics-allow-cidrs" => Case::new().annotate("metrics-enable", "true"),
        _ if name.starts_with("health-monitor-") => Case::new().annotate("enable-health-monitor", "true"),
        _ => Case::new(),
    }
}

#[test]
fn every_wrong_value_is_an_error_that_names_key_value_and_fix() {
    for annotation in ALL {
        for value in wrong(annotation.key, annotation.form) {
            let errors = used(annotation.key).annotate(annotation.key, value.clone()).errors();
            assert_eq!(errors.len(), 1, "{errors:?}");
            let message = &errors[0];
            let shown: String = value.chars().take(80).collect();
            assert!(message.starts_with(&format!("annotation {}: ", annotation.key)), "{message}");
            assert!(message.contains(&format!("{shown:?}")), "{message}");
            assert!(message.contains("; "), "{message}");
        }
    }
}

#[test]
fn an_empty_annotation_is_absent_unless_the_table_says_otherwise() {
    for annotation in ALL {
        let absent = Case::new().config(opposite).settings();
        let empty = Case::new().config(opposite).annotate(annotation.key, "").settings();
        match annotation.empty {
            Empty::Absent => assert_eq!(empty, absent, "{}", annotation.key),
            Empty::Means(_) => assert_ne!(empty, absent, "{}", annotation.key),
        }
    }
}

#[test]
fn all_wrong_values_are_reported_together() {
    let case = ALL
        .iter()
        .filter_map(|annotation| Some((annotation.key, wrong(annotation.key, annotation.form).pop()?)))
        .fold(Case::new(), |case, (key, value)| case.annotate(key, value));
    let case = case.annotate("enable-health-monitor", "true").annotate("metrics-enable", "true");
    // One is hidden: the id of the floating subnet hides pattern and tags.
    let readable =
        ALL.iter().filter(|annotation| !matches!(annotation.form, Form::Output(_) | Form::Bool)).count();
    assert_eq!(case.errors().len(), readable - 2, "{:#?}", case.errors());
}

#[rstest]
#[case::absent(None, None)]
#[case::empty(Some(""), None)]
#[case::off(Some("false"), None)]
#[case::occms_true(Some("true"), Some(ProxyVersion::V1))]
#[case::version_1(Some("v1"), Some(ProxyVersion::V1))]
#[case::version_2(Some("v2"), Some(ProxyVersion::V2))]
fn proxy_protocol_has_two_versions(#[case] value: Option<&str>, #[case] expected: Option<ProxyVersion>) {
    assert_eq!(Case::new().maybe("proxy-protocol", value).settings().proxy_protocol, expected);
}

/// OCCM reads these as "off"; a Service that relies on it must not suddenly send the header.
#[rstest]
#[case("True")]
#[case("V2")]
#[case("v3")]
#[case("yes")]
fn words_that_occm_takes_for_off_do_not_turn_proxy_protocol_on(#[case] value: &str) {
    let errors = Case::new().annotate("proxy-protocol", value).errors();
    assert_eq!(
        errors,
        [format!(
            "annotation loadbalancer.openstack.org/proxy-protocol: {value:?} is not a valid value; \
             use \"true\", \"v1\", \"v2\", \"false\""
        )]
    );
}

/// OCCM knows `true` and `false` alone, and takes the default for everything else.
#[rstest]
fn a_bool_that_is_neither_counts_as_absent_and_the_user_is_warned(
    #[values("True", "FALSE", "1", "yes", "on", " true", "truee")] value: &str,
) {
    for annotation in ALL.iter().filter(|annotation| annotation.form == Form::Bool) {
        let absent = Case::new().config(opposite).settings();
        let case = Case::new().config(opposite).annotate(annotation.key, value);
        let mut odd = case.settings();
        assert!(!odd.odd.is_empty(), "{}", annotation.key);
        odd.odd.clear();
        if annotation.key.ends_with("keep-floatingip") {
            assert!(odd.keep_floating_ip, "what is kept can still be deleted");
            odd.keep_floating_ip = false;
        }
        assert_eq!(odd, absent, "{}", annotation.key);
        let messages: Vec<String> = case.notices().into_iter().map(|notice| notice.message).collect();
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        let beginning = format!("annotation {}: {value:?} is neither", annotation.key);
        assert!(message.starts_with(&beginning), "{message}");
        assert!(message.ends_with("write \"true\" or \"false\""), "{message}");
    }
}

#[rstest]
#[case::address("x-forwarded-for")]
#[case::port("x-forwarded-port")]
fn proxy_protocol_and_what_it_says_itself_exclude_each_other(#[case] header: &str) {
    let case = Case::new().annotate("proxy-protocol", "v1").annotate(header, "true");
    let message = format!(
        "annotation loadbalancer.openstack.org/{header}: \"true\" cannot be combined with annotation \
         loadbalancer.openstack.org/proxy-protocol; remove one of the two"
    );
    assert_eq!(case.errors(), [message]);
    let off = Case::new().annotate("proxy-protocol", "false").annotate(header, "true");
    assert_eq!(off.settings().headers.len(), 1);
}

#[rstest]
#[case::nothing_said(None, false, false, false)]
#[case::by_annotation(Some("true"), false, true, false)]
#[case::by_config(None, true, true, false)]
#[case::forced_although_the_user_asks_for_external(Some("false"), true, true, true)]
fn internal_is_asked_for_or_forced(
    #[case] value: Option<&str>,
    #[case] forced: bool,
    #[case] internal: bool,
    #[case] warned: bool,
) {
    let case = Case::new().maybe(INTERNAL, value).config(|config| config.load_balancer.internal_lb = forced);
    assert_eq!(case.settings().exposure == Exposure::Internal, internal);
    let reasons: Vec<_> = case.notices().iter().map(|notice| notice.reason).collect();
    assert_eq!(reasons == ["LoadBalancerForcedInternal"], warned, "{reasons:?}");
}

#[rstest]
#[case::default(None, None, LbAlgorithm::RoundRobin)]
#[case::annotation(Some("LEAST_CONNECTIONS"), Some("SOURCE_IP"), LbAlgorithm::LeastConnections)]
#[case::config(None, Some("SOURCE_IP"), LbAlgorithm::SourceIp)]
#[case::empty_is_config(Some(""), Some("SOURCE_IP"), LbAlgorithm::SourceIp)]
#[case::config_is_believed(None, Some("FASTEST"), LbAlgorithm::Other("FASTEST".into()))]
fn the_algorithm_comes_from_annotation_or_config(
    #[case] value: Option<&str>,
    #[case] configured: Option<&str>,
    #[case] expected: LbAlgorithm,
) {
    let case = Case::new().maybe("lb-method", value).config(|config| {
        if let Some(configured) = configured {
            config.load_balancer.lb_method = configured.to_owned();
        }
    });
    assert_eq!(case.settings().pool.lb_algorithm, expected);
}

fn monitor(delay: u32, timeout: u32, max_retries: u32, max_retries_down: u32) -> HealthMonitorSettings {
    let attributes = MonitorAttributes { delay, timeout, max_retries, max_retries_down, http: None };
    HealthMonitorSettings { attributes, check: None }
}

#[rstest]
#[case::default(&[], None)]
#[case::on(&[("enable-health-monitor", "true")], Some(monitor(5, 3, 1, 3)))]
#[case::values_alone_make_none(&[("health-monitor-delay", "9")], None)]
#[case::all(
    &[
        ("enable-health-monitor", "true"),
        ("health-monitor-delay", "10"),
        ("health-monitor-timeout", "10"),
        ("health-monitor-max-retries", "10"),
        ("health-monitor-max-retries-down", "1"),
    ],
    Some(monitor(10, 10, 10, 1)),
)]
fn a_health_monitor_is_made_of_annotations_and_config(
    #[case] annotations: &[(&str, &str)],
    #[case] expected: Option<HealthMonitorSettings>,
) {
    let case = annotations.iter().fold(Case::new(), |case, (key, value)| case.annotate(key, *value));
    assert_eq!(case.settings().health_monitor, expected);
}

/// A check that may last longer than the time between two checks is not an error, since Octavia accepts it; the user gets a Warning.
///
/// Defect: 36, better: checks that overlap are named.
#[test]
fn a_check_that_takes_longer_than_the_time_between_two_is_reported() {
    let case = Case::new().annotate("enable-health-monitor", "true").annotate("health-monitor-delay", "2");
    assert_eq!(case.settings().health_monitor, Some(monitor(2, 3, 1, 3)));
    let messages: Vec<String> = case.notices().into_iter().map(|notice| notice.message).collect();
    assert_eq!(
        messages,
        ["monitor-timeout in [LoadBalancer] of cloud.conf: 3 is longer than the time between two checks, \
            2 seconds, so checks overlap; set annotation loadbalancer.openstack.org/health-monitor-timeout \
            to 2 or less, or \
          loadbalancer.openstack.org/health-monitor-delay to 3 or more"]
    );
}

#[test]
fn a_wrong_monitor_value_of_config_matters_only_where_there_is_a_monitor() {
    let broken = |config: &mut Config| config.load_balancer.monitor_max_retries = 0;
    assert_eq!(Case::new().config(broken).settings().health_monitor, None);
    let errors = Case::new().config(broken).annotate("enable-health-monitor", "true").errors();
    assert_eq!(
        errors,
        ["monitor-max-retries in [LoadBalancer] of cloud.conf: \"0\" is out of range; use 1 to 10 in \
            cloud.conf, or set annotation loadbalancer.openstack.org/health-monitor-max-retries"]
    );
}

/// Connections, client, connecting, member, inspecting.
fn numbers(settings: &Settings) -> Vec<i64> {
    settings.limits.values().iter().filter_map(|(_, value)| value.as_i64()).collect()
}

#[test]
fn limits_and_timeouts_have_octavias_defaults_and_keep_their_extremes() {
    let settings = Case::new().settings();
    assert_eq!(numbers(&settings), [-1, 50_000, 5_000, 50_000, 0]);
    let settings = Case::new()
        .annotate("connection-limit", "+0")
        .annotate("timeout-client-data", "2073600000")
        .annotate("timeout-member-data", "0")
        .settings();
    assert_eq!(numbers(&settings), [0, 2_073_600_000, 5_000, 0, 0]);
}

/// Source ranges become networks without host bits, each once; without any, everybody may come.
///
/// Framework: H2, same.
/// Framework: H3, better: everybody of IPv6 is `::/0`.
#[rstest]
#[case::everybody(&[], None, IpFamily::V4, &["0.0.0.0/0"], false)]
#[case::everybody_of_ipv6(&[], None, IpFamily::V6, &["::/0"], false)]
#[case::blank_annotation(&[], Some(" , "), IpFamily::V4, &["0.0.0.0/0"], false)]
#[case::annotation(&[], Some("198.51.100.0/24, 192.0.2.7/24  2001:db8::1/64"), IpFamily::V4,
    &["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/64"], true)]
#[case::field_hides_annotation(&[" 192.0.2.9/24", "192.0.2.0/24"], Some("garbage"), IpFamily::V4, &["192.0.2.0/24"], true)]
#[case::asked_for_everybody(&["0.0.0.0/0"], None, IpFamily::V4, &["0.0.0.0/0"], true)]
#[case::everybody_with_host_bits(&["192.168.0.0/0"], None, IpFamily::V4, &["0.0.0.0/0"], true)]
#[case::twice(&["192.168.0.1/32", "192.168.0.1/32"], None, IpFamily::V4, &["192.168.0.1/32"], true)]
#[case::trailing_comma(&[], Some("10.0.0.1/32, "), IpFamily::V4, &["10.0.0.1/32"], true)]
fn framework_h2_h3_source_ranges_are_normalised_networks(
    #[case] field: &[&str],
    #[case] annotation: Option<&str>,
    #[case] family: IpFamily,
    #[case] expected: &[&str],
    #[case] requested: bool,
) {
    let case = Case::new().maybe(SOURCE_RANGES, annotation).service(|service| {
        service.source_ranges = field.iter().map(|text| (*text).to_owned()).collect();
        service.ip_families = vec![family];
    });
    let ranges = case.settings().source_ranges;
    assert_eq!(ranges.networks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    assert_eq!(ranges.requested, requested);
}

/// What is no network is an error, in the field as in the annotation.
///
/// Framework: H1, better: a comma too many is forgiven.
#[rstest]
#[case::too_long("10.0.0.1/33")]
#[case::a_name("foo.bar")]
#[case::a_star_behind_a_network("10.0.0.1/32,*")]
#[case::a_bare_address("10.0.0.1")]
fn framework_h1_what_is_no_network_is_an_error(#[case] text: &str) {
    let annotated = Case::new().maybe(SOURCE_RANGES, Some(text));
    assert_eq!(annotated.errors().len(), 1);
    let ranges: Vec<String> = text.split(',').map(str::to_owned).collect();
    let specified = Case::new().service(|service| service.source_ranges = ranges);
    assert_eq!(specified.errors().len(), 1);
}

#[test]
fn a_wrong_source_range_of_the_field_is_named() {
    let case =
        Case::new().service(|service| service.source_ranges = vec!["10.0.0.1".into(), "10.0.0.0/8".into()]);
    assert_eq!(
        case.errors(),
        ["spec.loadBalancerSourceRanges: \"10.0.0.1\" is not a CIDR; write networks such as \
            192.0.2.0/24, and a single address as 192.0.2.7/32"]
    );
}

#[rstest]
#[case::annotation(
    Some("https://b/v1/secrets/s1"),
    Some("https://b/v1/containers/c1"),
    Some("https://b/v1/secrets/s1")
)]
#[case::config(None, Some("https://b/v1/containers/c1"), Some("https://b/v1/containers/c1"))]
#[case::empty_turns_tls_off(Some(""), Some("https://b/v1/containers/c1"), None)]
fn the_certificate_comes_from_annotation_or_config(
    #[case] annotation: Option<&str>,
    #[case] configured: Option<&str>,
    #[case] expected: Option<&str>,
) {
    let case = Case::new().maybe("default-tls-container-ref", annotation).config(|config| {
        config.load_balancer.default_tls_container_ref = configured.map(str::to_owned);
    });
    let tls = case.settings().tls;
    assert_eq!(tls.as_ref().map(|tls| tls.reference.as_str()), expected);
    assert!(tls.is_none_or(|tls| tls.barbican.is_some()));
}

#[test]
fn another_container_store_takes_any_reference() {
    let case = Case::new()
        .annotate("default-tls-container-ref", "vault:web")
        .config(|config| config.load_balancer.container_store = Some("external".to_owned()));
    let tls = case.settings().tls.unwrap();
    assert_eq!((tls.reference.as_str(), tls.barbican), ("vault:web", None));
}

fn preferred(case: &Case) -> (Option<IpModeChoice>, IpModeChoice, Option<String>, bool, Option<String>) {
    let preference = case.settings().preference;
    (
        preference.service_mode,
        preference.cluster_mode,
        preference.hostname,
        preference.always_hostname,
        preference.hostname_suffix,
    )
}

#[test]
fn publication_is_what_user_and_operator_say() {
    assert_eq!(preferred(&Case::new()), (None, IpModeChoice::Auto, None, false, None));
    let case =
        Case::new().annotate("ip-mode", "Auto").annotate("hostname", "app.example.org").config(|config| {
            config.load_balancer.ip_mode = IpModeChoice::Vip;
            config.load_balancer.ingress_hostname_suffix = Some("lb.example.org".to_owned());
        });
    assert_eq!(
        preferred(&case),
        (
            Some(IpModeChoice::Auto),
            IpModeChoice::Vip,
            Some("app.example.org".into()),
            false,
            Some("lb.example.org".into())
        )
    );
    let hostnames = Case::new().config(|config| config.load_balancer.enable_ingress_hostname = true);
    assert_eq!(preferred(&hostnames), (None, IpModeChoice::Auto, None, true, Some("nip.io".into())));
}

/// The tenant of a managed cluster cannot change cloud.conf.
#[rstest]
#[case::on_without_a_suffix(false, None, "true", true, Some("nip.io"))]
#[case::on_with_the_operators_suffix(false, Some("lb.example.org"), "true", true, Some("lb.example.org"))]
#[case::off_where_the_operator_has_it_on(true, None, "false", false, Some("nip.io"))]
#[case::neither_true_nor_false(true, None, "no", true, Some("nip.io"))]
fn a_service_overrides_whether_it_is_published_by_a_name(
    #[case] configured: bool,
    #[case] suffix: Option<&str>,
    #[case] annotation: &str,
    #[case] always: bool,
    #[case] expected: Option<&str>,
) {
    let case = Case::new().annotate("enable-ingress-hostname", annotation).config(|config| {
        config.load_balancer.enable_ingress_hostname = configured;
        config.load_balancer.ingress_hostname_suffix = suffix.map(str::to_owned);
    });
    assert_eq!(preferred(&case), (None, IpModeChoice::Auto, None, always, expected.map(str::to_owned)));
}

#[test]
fn what_is_only_configured_arrives() {
    let settings: Settings = Case::new()
        .config(|config| {
            let section = &mut config.load_balancer;
            section.lb_provider = None;
            section.max_shared_lb = 5;
            section.provider_requires_serial_api_calls = true;
            section.cascade_delete = false;
            section.manage_security_groups = true;
        })
        .settings();
    assert_eq!(settings.provider, None);
    assert_eq!(settings.max_shared_load_balancer, 5);
    assert!(settings.serial_api_calls && settings.manage_security_groups && !settings.cascade_delete);
}

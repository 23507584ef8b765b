//! Networks, subnets, addresses: who wins where several say something.

use openstack_ccm_core::service::IpFamily;
use openstack_ccm_provider_openstack::config::LoadBalancerClass;
use openstack_ccm_provider_openstack::load_balancer::settings::{
    Exposure, FloatingIpSettings, FloatingSubnet, Settings,
};
use rstest::rstest;

use super::fixture::{Case, id};

const ANNOTATION: u8 = 1;
const CLASS: u8 = 2;
const CONFIG: u8 = 3;

#[track_caller]
fn floating_ip(settings: &Settings) -> FloatingIpSettings {
    match &settings.exposure {
        Exposure::External(floating_ip) => floating_ip.clone(),
        Exposure::Internal => panic!("internal"),
    }
}

#[rstest]
#[case::external_all(false, true, true, true, Some(CLASS))]
#[case::external_without_class(false, true, false, true, Some(ANNOTATION))]
#[case::external_config(false, false, false, true, Some(CONFIG))]
#[case::internal_all(true, true, true, true, Some(ANNOTATION))]
#[case::internal_without_annotation(true, false, true, true, Some(CLASS))]
#[case::internal_config(true, false, false, true, Some(CONFIG))]
#[case::nothing(false, false, false, false, None)]
fn the_vip_is_where_the_first_source_says(
    #[case] internal: bool,
    #[case] annotation: bool,
    #[case] class: bool,
    #[case] config: bool,
    #[case] expected: Option<u8>,
) {
    let mut case = Case::new();
    if internal {
        case = case.internal();
    }
    if annotation {
        case = case.annotate("subnet-id", id(ANNOTATION)).annotate("network-id", id(ANNOTATION));
    }
    case = case.class(|gold| {
        gold.subnet_id = class.then(|| id(CLASS));
        gold.network_id = class.then(|| id(CLASS));
    });
    case = case.config(|all| {
        all.load_balancer.placement.subnet_id = config.then(|| id(CONFIG));
        all.load_balancer.placement.network_id = config.then(|| id(CONFIG));
    });
    let vip = case.settings().vip;
    assert_eq!(vip.subnet_id, expected.map(id));
    assert_eq!(vip.network_id, expected.map(id));
}

#[test]
fn subnet_and_network_of_the_vip_are_found_apart() {
    let case = Case::new()
        .annotate("network-id", id(ANNOTATION))
        .class(|gold| gold.subnet_id = Some(id(CLASS)))
        .annotate("port-id", id(4));
    let vip = case.settings().vip;
    assert_eq!(
        (vip.subnet_id, vip.network_id, vip.port_id),
        (Some(id(CLASS)), Some(id(ANNOTATION)), Some(id(4)))
    );
}

#[rstest]
#[case::own_annotation(&["ann-member", "class-member", "conf-member", "conf", "ann", "class"], Some(11))]
#[case::own_class(&["class-member", "conf-member", "conf", "ann", "class"], Some(12))]
#[case::own_config(&["conf-member", "conf", "ann", "class"], Some(13))]
#[case::subnet_of_config(&["conf", "ann", "class"], Some(CONFIG))]
#[case::subnet_of_annotation(&["ann", "class"], Some(ANNOTATION))]
#[case::subnet_of_class(&["class"], Some(CLASS))]
#[case::nothing(&[], None)]
fn members_are_in_one_order_of_sources(
    #[case] given: &[&str],
    #[case] expected: Option<u8>,
    #[values(false, true)] internal: bool,
) {
    let has = |name: &str| given.contains(&name);
    let mut case = Case::new();
    if internal {
        case = case.internal();
    }
    if has("ann-member") {
        case = case.annotate("member-subnet-id", id(11));
    }
    if has("ann") {
        case = case.annotate("subnet-id", id(ANNOTATION));
    }
    let case = case
        .class(|gold| {
            gold.member_subnet_id = has("class-member").then(|| id(12));
            gold.subnet_id = has("class").then(|| id(CLASS));
        })
        .config(|all| {
            all.load_balancer.placement.member_subnet_id = has("conf-member").then(|| id(13));
            all.load_balancer.placement.subnet_id = has("conf").then(|| id(CONFIG));
        });
    let settings = case.settings();
    assert_eq!(settings.member_subnet_id, expected.map(id));
    // A message about a wrong id names the key that holds it.
    let is_own = given.iter().any(|name| name.ends_with("-member"));
    assert_eq!(settings.member_subnet_key, if is_own { "member-subnet-id" } else { "subnet-id" });
}

#[rstest]
#[case::class_wins(Some(id(ANNOTATION)), true, Some(id(CLASS)))]
#[case::annotation(Some(id(ANNOTATION)), false, Some(id(ANNOTATION)))]
#[case::config(None, false, Some(id(CONFIG)))]
#[case::empty_annotation_means_look_it_up(Some(String::new()), false, None)]
#[case::class_wins_over_the_empty_annotation(Some(String::new()), true, Some(id(CLASS)))]
fn the_floating_network_comes_from_class_annotation_or_config(
    #[case] annotation: Option<String>,
    #[case] class: bool,
    #[case] expected: Option<String>,
) {
    let case = Case::new()
        .maybe("floating-network-id", annotation.as_deref())
        .class(|gold| gold.floating_network_id = class.then(|| id(CLASS)))
        .config(|all| all.load_balancer.placement.floating_network_id = Some(id(CONFIG)));
    assert_eq!(floating_ip(&case.settings()).network_id, expected);
}

/// The subnet that a class, annotations and cloud.conf name, each by some of the three keys.
fn floating_subnet(class: &str, annotations: &str, config: &str) -> FloatingSubnet {
    let text = |given: &str, key: &str, value: &str| given.contains(key).then(|| value.to_owned());
    let case = Case::new()
        .maybe("floating-subnet-id", text(annotations, "id", &id(ANNOTATION)).as_deref())
        .maybe("floating-subnet", text(annotations, "name", "of-annotation").as_deref())
        .maybe("floating-subnet-tags", text(annotations, "tags", "of-annotation").as_deref())
        .class(|gold| {
            gold.floating_subnet_id = text(class, "id", &id(CLASS));
            gold.floating_subnet = text(class, "name", "of-class");
            gold.floating_subnet_tags = text(class, "tags", "of-class");
        })
        .config(|all| {
            all.load_balancer.placement.floating_subnet_id = text(config, "id", &id(CONFIG));
            all.load_balancer.placement.floating_subnet = text(config, "name", "of-config");
            all.load_balancer.placement.floating_subnet_tags = text(config, "tags", "of-config");
        });
    floating_ip(&case.settings()).subnet
}

#[rstest]
#[case::class_by_id("id name", "id", "id", CLASS)]
#[case::annotation_by_id("", "id name tags", "id", ANNOTATION)]
#[case::config_by_id("", "", "id name", CONFIG)]
fn an_id_hides_pattern_and_tags(
    #[case] class: &str,
    #[case] annotations: &str,
    #[case] config: &str,
    #[case] expected: u8,
) {
    assert_eq!(floating_subnet(class, annotations, config), FloatingSubnet::Id(id(expected)));
}

#[rstest]
#[case::class_hides_an_id_of_the_annotations("tags", "id", "id", "tags \"of-class\"")]
#[case::annotations_hide_an_id_of_config("", "name", "id", "name \"of-annotation\"")]
#[case::both_of_one_place("", "", "name tags", "name \"of-config\" and tags \"of-config\"")]
fn the_first_place_that_says_anything_wins_whole(
    #[case] class: &str,
    #[case] annotations: &str,
    #[case] config: &str,
    #[case] expected: &str,
) {
    match floating_subnet(class, annotations, config) {
        FloatingSubnet::Matching(wanted) => assert_eq!(wanted.to_string(), expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_word_neutron_chooses_the_floating_subnet() {
    assert_eq!(floating_subnet("", "", ""), FloatingSubnet::Any);
}

#[rstest]
#[case::external_ipv4("203.0.113.9", IpFamily::V4, false, Some("203.0.113.9"), None)]
#[case::internal_ipv4("203.0.113.9", IpFamily::V4, true, None, Some("203.0.113.9"))]
#[case::external_ipv6("2001:db8::9", IpFamily::V6, false, None, Some("2001:db8::9"))]
#[case::internal_ipv6("2001:db8::9", IpFamily::V6, true, None, Some("2001:db8::9"))]
fn load_balancer_ip_is_the_floating_ip_or_the_vip(
    #[case] address: &str,
    #[case] family: IpFamily,
    #[case] internal: bool,
    #[case] floating: Option<&str>,
    #[case] vip: Option<&str>,
) {
    let case = if internal { Case::new().internal() } else { Case::new() };
    let settings = case
        .service(|service| {
            service.load_balancer_ip = Some(address.to_owned());
            service.ip_families = vec![family];
        })
        .settings();
    assert_eq!(settings.vip.address.map(|address| address.to_string()).as_deref(), vip);
    if !internal {
        assert_eq!(floating_ip(&settings).address.map(|address| address.to_string()).as_deref(), floating);
    }
}

#[rstest]
#[case("not-an-address", "is not an IP address")]
#[case("203.0.113.9/32", "is not an IP address")]
#[case("2001:db8::9", "is not an IPv4 address, which the first entry of spec.ipFamilies requires")]
fn a_wrong_load_balancer_ip_is_reported(#[case] text: &str, #[case] problem: &str) {
    let case = Case::new().service(|service| service.load_balancer_ip = Some(text.to_owned()));
    let errors = case.errors();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with(&format!("spec.loadBalancerIP: {text:?} {problem}; ")), "{errors:?}");
}

#[test]
fn an_unknown_class_names_the_classes_there_are() {
    let case = Case::new()
        .class(|_| {})
        .config(|config| {
            config.classes.insert("silver".to_owned(), LoadBalancerClass::default());
        })
        .annotate("class", "Gold");
    assert_eq!(
        case.errors(),
        ["annotation loadbalancer.openstack.org/class: \"Gold\" is not a class in cloud.conf; use one of \
            \"gold\", \"silver\" (case-sensitive), or ask the operator to add the class"]
    );
    let none = Case::new().internal().annotate("class", "gold").errors();
    assert!(none[0].contains("has no [LoadBalancerClass] section"), "{none:?}");
}

#[test]
fn a_wrong_id_of_a_class_or_of_cloud_conf_names_its_place() {
    let case = Case::new()
        .class(|gold| gold.subnet_id = Some("lan".to_owned()))
        .config(|config| config.load_balancer.placement.floating_network_id = Some("public".to_owned()));
    let errors = case.errors();
    assert_eq!(errors.len(), 2, "{errors:#?}");
    assert!(
        errors[0]
            .starts_with("subnet-id in [LoadBalancerClass \"gold\"] of cloud.conf: \"lan\" is not a UUID")
    );
    assert!(
        errors[1]
            .starts_with("floating-network-id in [LoadBalancer] of cloud.conf: \"public\" is not a UUID")
    );
}

#[test]
fn what_a_service_does_not_use_is_not_checked_in_cloud_conf() {
    let case =
        Case::new().internal().annotate("subnet-id", id(1)).annotate("member-subnet-id", id(2)).config(
            |config| {
                config.load_balancer.placement.floating_network_id = Some("public".to_owned());
                config.load_balancer.placement.floating_subnet = Some("[".to_owned());
                config.load_balancer.placement.subnet_id = Some("lan".to_owned());
            },
        );
    assert_eq!(case.settings().vip.subnet_id, Some(id(1)));
}

#[test]
fn a_wrong_annotation_is_reported_even_where_the_class_hides_it() {
    let case = Case::new().annotate("subnet-id", "lan").class(|gold| gold.subnet_id = Some(id(CLASS)));
    assert_eq!(case.errors().len(), 1);
}

use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[test]
fn a_description_says_what_tags_would_say() {
    let tags = Tags::from([format!("{CLUSTER_TAG}c-1"), format!("{SERVICE_TAG}s-1"), "team-a".to_owned()]);
    let bare = "Floating IP for Kubernetes external service default/web from cluster c (1 2)";
    let described = described_owner(bare, &tags);
    assert_eq!(described, format!("{bare} (c-1 s-1)"));
    let (text, read) = read_owner(&described);
    assert_eq!((text, read.len()), (bare, 2));
    assert!(read.is_subset(&tags));
    assert_eq!(described_owner(&"x".repeat(255), &tags).len(), 255);
    for text in
        ["", "of a person (a b)", "Floating IP for Kubernetes external service default/web from cluster c"]
    {
        assert_eq!(read_owner(text), (text, Tags::new()));
    }
}

const UID: &str = "0a1b2c3d-0000-4000-8000-112233445566";

fn names(cluster: &str, namespace: &str, name: &str) -> Names {
    let service = Service::new(ServiceKey::new(namespace, name), UID);
    let cluster =
        ClusterIdentity { name: cluster.into(), uid: "c1c1c1c1-0000-4000-8000-000000000001".into() };
    Names::new(&cluster, &service)
}

/// Names are OCCM's, and the framework's default name is known for adoption.
///
/// Framework: H5, same.
#[test]
fn names_and_descriptions_are_those_that_occm_gives() {
    let names = names("kubernetes", "default", "web");
    assert_eq!(names.load_balancer(), "kube_service_kubernetes_default_web");
    assert_eq!(names.listener(0), "listener_0_kube_service_kubernetes_default_web");
    assert_eq!(names.pool(12), "pool_12_kube_service_kubernetes_default_web");
    assert_eq!(names.monitor(1), "monitor_1_kube_service_kubernetes_default_web");
    assert_eq!(names.legacy_load_balancer(), "a0a1b2c3d000040008000112233445566"[..32]);
    assert_eq!(names.cut_load_balancer(), None);
    assert_eq!(names.description(), "Kubernetes external service default/web from cluster kubernetes");
    assert_eq!(
        names.floating_ip_description(),
        "Floating IP for Kubernetes external service default/web from cluster kubernetes"
    );
    assert_eq!(names.security_group(), format!("lb-sg-{UID}-default-web"));
    assert_eq!(
        names.security_group_description(),
        "Security Group for default/web Service LoadBalancer in cluster kubernetes"
    );
    let address = "192.0.2.4".parse().unwrap();
    assert_eq!(serial_member("node-1", address, 30_080), "member_node-1_192.0.2.4_30080");
}

/// Defect: 60, better: long names end in a hash.
#[test]
fn two_long_names_that_begin_alike_stay_apart() {
    let cluster = "c".repeat(240);
    let (one, two) = (names(&cluster, "default", "web-one"), names(&cluster, "default", "web-two"));
    assert_eq!(one.cut_load_balancer(), two.cut_load_balancer());
    assert_eq!(one.cut_load_balancer().map(|name| name.len()), Some(255));
    for (one, two) in [
        (one.load_balancer().to_owned(), two.load_balancer().to_owned()),
        (one.pool(0), two.pool(0)),
        (one.description(), two.description()),
        (one.floating_ip_description(), two.floating_ip_description()),
    ] {
        assert_ne!(one, two);
        assert_eq!(one.len(), 255);
    }
}

#[test]
fn a_name_of_just_the_limit_is_left_alone() {
    let cluster = "c".repeat(255 - "kube_service__default_web".len());
    let names = names(&cluster, "default", "web");
    assert_eq!(names.load_balancer().len(), 255);
    assert!(names.load_balancer().ends_with("_default_web"));
    assert_eq!(names.cut_load_balancer(), None);
}

#[test]
fn tags_name_the_cluster_and_the_service_and_fit_into_neutron() {
    let names = names("kubernetes", "default", "web");
    let tags = names.tags();
    assert_eq!(cluster_uids(&tags).collect::<Vec<_>>(), ["c1c1c1c1-0000-4000-8000-000000000001"]);
    assert_eq!(service_uids(&tags).collect::<Vec<_>>(), [UID]);
    assert_eq!(user_names(&tags).collect::<Vec<_>>(), [names.load_balancer()]);
    assert_eq!(user_names(&names.identity_tags()).count(), 0, "OCCM would count it as a user");
    assert!(names.identity_tags().iter().all(|tag| tag.len() <= 60 && !tag.contains(',')));
    assert!(names.identity_tags().contains(&names.service_tag()));
}

#[rstest]
#[case::plain("kube_service_kubernetes_default_web", Some(("kubernetes", "default", "web")))]
#[case::cluster_with_underscores("kube_service_a_b_c_default_web", Some(("a_b_c", "default", "web")))]
#[case::cluster_like_the_prefix("kube_service_kube_service_ns_svc", Some(("kube_service", "ns", "svc")))]
#[case::users_own("web", None)]
#[case::too_few_parts("kube_service_default_web", None)]
#[case::no_service("kube_service_k_default_", None)]
#[case::shortened("kube_service_k_default_we~0123456789abcdef", None)]
fn a_generated_name_contains_cluster_namespace_and_service(
    #[case] name: &str,
    #[case] parts: Option<(&str, &str, &str)>,
) {
    let expected = parts.map(|(cluster, namespace, name)| GeneratedName {
        cluster: cluster.into(),
        service: ServiceKey::new(namespace, name),
    });
    assert_eq!(GeneratedName::parse(name), expected);
}

#[rstest]
#[case::plain("listener_0_kube_service_old_default_web", Some("listener_0_kube_service_c1_default_web"))]
#[case::two_digits(
    "listener_12_kube_service_old_default_web",
    Some("listener_12_kube_service_c1_default_web")
)]
#[case::users_own("http", None)]
#[case::other_service("listener_0_kube_service_old_default_api", None)]
#[case::no_index("listener__kube_service_old_default_web", None)]
#[case::renamed_already("listener_0_kube_service_c1_default_web", None)]
fn a_child_is_renamed_only_when_it_has_the_former_name(#[case] name: &str, #[case] expected: Option<&str>) {
    let (previous, present) = ("kube_service_old_default_web", "kube_service_c1_default_web");
    assert_eq!(renamed_child(name, "listener", previous, present).as_deref(), expected);
}

#[test]
fn a_cluster_named_like_a_part_of_the_name_spoils_no_name() {
    for cluster in ["kube", "service", "listener", "0", "_"] {
        let previous = format!("kube_service_{cluster}_default_web");
        let name = renamed_child(
            &format!("listener_0_{previous}"),
            "listener",
            &previous,
            "kube_service_c1_default_web",
        );
        assert_eq!(name.as_deref(), Some("listener_0_kube_service_c1_default_web"));
    }
}

proptest! {
    #[test]
    fn no_name_is_too_long_and_each_is_read_back(
        cluster in ".{0,300}",
        namespace in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        name in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?",
    ) {
        let names = names(&cluster, &namespace, &name);
        for text in [names.load_balancer().to_owned(), names.listener(9), names.description(), names.floating_ip_description()] {
            prop_assert!(text.len() <= 255);
        }
        match GeneratedName::parse(names.load_balancer()) {
            Some(parsed) => prop_assert_eq!(parsed.service, ServiceKey::new(namespace, name)),
            None => prop_assert!(names.cut_load_balancer().is_some()),
        }
    }

    #[test]
    fn any_text_can_be_read(text in ".*") {
        let _ = GeneratedName::parse(&text);
        let tags = Tags::from([text]);
        let _ = (cluster_uids(&tags).count(), service_uids(&tags).count(), user_names(&tags).count());
    }
}

#[test]
fn nobody_can_give_a_tag_that_says_whose_an_object_is() {
    let tags = names("c", "default", "web").tags();
    assert_eq!(tags.len(), 3);
    for tag in tags.iter().chain([&previous_vip_tag(IpAddr::from([192, 0, 2, 1]))]) {
        assert!(crate::user_tag::problem(tag, 255).is_some(), "{tag}");
    }
}

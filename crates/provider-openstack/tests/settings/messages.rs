//! What the user reads.

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_core::notice::Severity;
use rstest::rstest;

use super::fixture::Case;

#[test]
fn several_errors_are_one_failure_that_only_the_user_can_mend() {
    let case = Case::new().annotate("connection-limit", "-2").annotate("ip-mode", "both");
    let failure = case.read().0.unwrap_err().failure().unwrap();
    assert_eq!(failure.class, FailureClass::UserInput);
    insta::assert_snapshot!(failure, @r#"2 settings are invalid: (1) annotation loadbalancer.openstack.org/connection-limit: "-2" is out of range; write a number from -1 to 2147483647, without a unit. (2) annotation loadbalancer.openstack.org/ip-mode: "both" is not a valid value; use "auto", "proxy", "vip""#);
}

#[test]
fn a_long_value_is_shown_in_part() {
    let errors = Case::new().annotate("port-id", "x".repeat(5000)).errors();
    assert!(errors[0].len() < 400, "{}", errors[0].len());
    assert!(errors[0].contains("x\"... is not a UUID"), "{errors:?}");
}

#[test]
fn a_value_is_shown_without_its_control_characters() {
    let errors = Case::new().annotate("hostname", "a\n\u{1b}[31mb").errors();
    assert!(!errors[0].contains(['\n', '\u{1b}']), "{errors:?}");
}

#[rstest]
#[case::typing_error(
    "loadbalancer.openstack.org/proxy-protcol",
    Some("did you mean loadbalancer.openstack.org/proxy-protocol?")
)]
#[case::underscore(
    "loadbalancer.openstack.org/floating_subnet_id",
    Some("did you mean loadbalancer.openstack.org/floating-subnet-id?")
)]
#[case::suffix(
    "loadbalancer.openstack.org/proxy-protocol-hostname-suffix",
    Some(
        "to publish names under a suffix, set loadbalancer.openstack.org/enable-ingress-hostname: \"true\"; the suffix is \
         ingress-hostname-suffix in [LoadBalancer] of cloud.conf"
    )
)]
#[case::invented("loadbalancer.openstack.org/make-it-fast", Some("remove it"))]
#[case::old_prefix(
    "service.beta.kubernetes.io/openstack-internal-loadbalancer",
    Some("did you mean service.beta.kubernetes.io/openstack-internal-load-balancer?")
)]
#[case::internal(
    "loadbalancer.openstack.org/internal",
    Some(
        "for an internal load balancer set service.beta.kubernetes.io/openstack-internal-load-balancer: \"true\""
    )
)]
#[case::floating_address(
    "loadbalancer.openstack.org/floating-address",
    Some(
        "set loadbalancer.openstack.org/floating-ip, or loadbalancer.openstack.org/vip-address for an internal load balancer, to the address"
    )
)]
#[case::the_field(
    "loadbalancer.openstack.org/loadBalancerIP",
    Some(
        "set loadbalancer.openstack.org/floating-ip, or loadbalancer.openstack.org/vip-address for an internal load balancer, to the address"
    )
)]
#[case::provider(
    "loadbalancer.openstack.org/load-balancer-provider",
    Some(
        "set loadbalancer.openstack.org/lb-provider, if the operator allows it with lb-providers in [LoadBalancer] of cloud.conf"
    )
)]
#[case::foreign("service.beta.kubernetes.io/aws-load-balancer-type", None)]
#[case::output("loadbalancer.openstack.org/load-balancer-address", None)]
fn an_unknown_annotation_is_a_warning_with_the_key_that_may_be_meant(
    #[case] key: &str,
    #[case] advice: Option<&str>,
) {
    let case = Case::new().annotate(key, "x");
    case.settings();
    let notices: Vec<_> =
        case.notices().into_iter().map(|notice| (notice.severity, notice.reason, notice.message)).collect();
    let expected = advice.map(|advice| {
        let message = format!("annotation {key} is unknown and has no effect; {advice}");
        (Severity::Warning, "UnknownAnnotation", message)
    });
    assert_eq!(notices, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn an_unknown_annotation_is_reported_beside_errors_too() {
    let case = Case::new().annotate("ip-modes", "x").annotate("ip-mode", "x");
    assert_eq!((case.errors().len(), case.notices().len()), (1, 1));
}

/// Not asked of any controller, and yet meant: a database would be on the internet by the spelling of one word.
#[test]
fn a_wish_to_be_internal_in_unknown_words_makes_no_public_load_balancer() {
    let errors = Case::new().annotate("internal", "true").errors();
    assert!(errors.len() == 1 && errors[0].contains("would be public"), "{errors:?}");
    assert!(Case::new().annotate("internal", "false").read().0.is_ok());
}

/// What is not used refuses nothing; what is used stays an error.
#[rstest]
#[case::monitor("health-monitor-delay", "5s", "enable-health-monitor", "write \"5\"")]
#[case::retries("health-monitor-max-retries", "many", "enable-health-monitor", "is not a whole number")]
#[case::path("health-monitor-path", "healthz", "enable-health-monitor", "is not a path")]
fn a_wrong_value_of_something_that_is_not_used_is_a_warning(
    #[case] key: &str,
    #[case] value: &str,
    #[case] switch: &str,
    #[case] said: &str,
) {
    let case = Case::new().annotate(key, value);
    assert!(case.read().0.is_ok());
    let warnings: Vec<String> = case.notices().into_iter().map(|notice| notice.message).collect();
    assert!(
        warnings.iter().any(|text| text.contains(said) && text.contains("no effect at present")),
        "{warnings:?}"
    );
    let errors = case.annotate(switch, "true").errors();
    assert!(errors.iter().any(|text| text.contains(said)), "{errors:?}");
}

/// A second is a thousand of the unit that Octavia counts these in.
#[rstest]
#[case::seconds("50s", "write \"50000\", in milliseconds")]
#[case::milliseconds("500ms", "write \"500\", in milliseconds")]
#[case::minutes("5m", "write a number of milliseconds")]
#[case::too_much("9223372036854775s", "write a number of milliseconds")]
fn a_timeout_with_a_unit_is_offered_as_the_number_that_it_means(#[case] value: &str, #[case] fix: &str) {
    let errors = Case::new().annotate("timeout-client-data", value).errors();
    assert!(errors.len() == 1 && errors[0].contains(fix), "{errors:?}");
}

#[test]
fn a_wrong_option_of_tls_without_tls_is_a_warning() {
    let case = Case::new().annotate("tls-versions", "TLSv9");
    assert!(case.read().0.is_ok());
    assert!(case.notices().iter().any(|notice| notice.message.contains("does not terminate TLS")));
}

#[test]
fn the_words_of_persistent_volumes_are_read() {
    assert!(Case::new().annotate("reclaim-policy", "Retain").read().0.is_ok());
}

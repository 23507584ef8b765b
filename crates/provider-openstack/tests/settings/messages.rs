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
    insta::assert_snapshot!(failure, @r#"2 settings are wrong: (1) annotation loadbalancer.openstack.org/connection-limit: "-2" is out of range; write a number from -1 to 2147483647, without a unit. (2) annotation loadbalancer.openstack.org/ip-mode: "both" is not known; write one of "auto", "proxy", "vip""#);
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
#[case::invented("loadbalancer.openstack.org/make-it-fast", Some("remove it"))]
#[case::old_prefix(
    "service.beta.kubernetes.io/openstack-internal-loadbalancer",
    Some("did you mean service.beta.kubernetes.io/openstack-internal-load-balancer?")
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
        let message = format!("annotation {key} is not known and has no effect; {advice}");
        (Severity::Warning, "UnknownAnnotation", message)
    });
    assert_eq!(notices, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn an_unknown_annotation_is_told_beside_errors_too() {
    let case = Case::new().annotate("ip-modes", "x").annotate("ip-mode", "x");
    assert_eq!((case.errors().len(), case.notices().len()), (1, 1));
}

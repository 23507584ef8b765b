//! What matters when a Service goes.

use openstack_ccm_provider_openstack::load_balancer::settings::ReleaseSettings;
use rstest::rstest;

use super::fixture::{Case, id};

#[rstest]
#[case::absent(None, false, 0)]
#[case::empty(Some(""), false, 0)]
#[case::off(Some("false"), false, 0)]
#[case::not_quite_off_keeps(Some("False"), true, 1)]
#[case::on(Some("true"), true, 0)]
#[case::unclear_keeps(Some("yes"), true, 1)]
fn an_unclear_wish_keeps_the_floating_ip_and_does_not_hold_the_deletion_up(
    #[case] value: Option<&str>,
    #[case] keeps: bool,
    #[case] warnings: usize,
) {
    let case = Case::new().maybe("keep-floatingip", value).annotate("lb-method", "nonsense");
    let (release, notices) = ReleaseSettings::read(&case.service, &case.config);
    assert_eq!((release.keep_floating_ip, notices.len()), (keeps, warnings));
}

#[test]
fn a_load_balancer_id_that_is_none_counts_as_absent() {
    let named = Case::new().annotate("load-balancer-id", id(1));
    assert_eq!(
        ReleaseSettings::read(&named.service, &named.config).0.load_balancer_id.as_deref(),
        Some(id(1).as_str())
    );
    let garbage = Case::new().annotate("load-balancer-id", "../volumes");
    assert_eq!(ReleaseSettings::read(&garbage.service, &garbage.config).0.load_balancer_id, None);
}

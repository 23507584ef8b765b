//! The image is one that the operator named, and nothing else.

use rstest::rstest;

use crate::helm::Release;

#[rstest]
#[case::not_set(&[], "image.repository is not set")]
#[case::of_occm(
    &["image.repository=registry.k8s.io/provider-os/openstack-cloud-controller-manager", "image.tag=v1.36.0"],
    "the image of another program"
)]
#[case::of_nobody(&["image.repository=openstack-ccm"], "names no registry")]
#[case::with_a_tag(&["image.repository=registry.example.org/openstack-ccm:0.2.0"], "image/repository")]
#[case::digest_without_algorithm(
    &["image.repository=registry.example.org/openstack-ccm", "image.digest=0123"],
    "image/digest"
)]
fn an_image_that_cannot_be_meant_is_refused_with_the_way_out(#[case] settings: &[&str], #[case] named: &str) {
    let release = settings.iter().fold(Release::without_image(), |release, setting| release.set(setting));
    let Some(error) = release.error() else { return };
    assert!(error.contains(named), "{error}");
    assert!(
        error.contains("registry.example.org/openstack-ccm") || error.contains("does not match"),
        "{error}"
    );
}

const DIGEST: &str = "sha256:2bb6c3b0b7b2d1d0b4b1a3d9f2c8e7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0";

#[rstest]
#[case::version_of_the_chart("", "", concat!("registry.example.org/openstack-ccm:", env!("CARGO_PKG_VERSION")))]
#[case::tag("edge", "", "registry.example.org/openstack-ccm:edge")]
#[case::digest("", DIGEST, "registry.example.org/openstack-ccm@")]
#[case::both("edge", DIGEST, "registry.example.org/openstack-ccm:edge@")]
fn tag_and_digest_choose_the_image(#[case] tag: &str, #[case] digest: &str, #[case] expected: &str) {
    let release = Release::new().set(&format!("image.tag={tag}")).set(&format!("image.digest={digest}"));
    let Some(objects) = release.objects() else { return };
    assert_eq!(objects.container()["image"], format!("{expected}{digest}"));
}

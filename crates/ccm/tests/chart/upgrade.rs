//! `helm upgrade` from the chart of the Go openstack-cloud-controller-manager.

use crate::helm::Release;

#[test]
fn values_of_another_chart_are_refused_with_the_way_out() {
    // What --reuse-values does: the defaults of the chart before take the place of ours.
    let Some(rendered) = Release::new().set("kind=null").try_text() else { return };
    let error = rendered.expect_err("it was accepted");
    assert!(error.contains("--reset-then-reuse-values"), "{error}");
}

#[test]
fn the_selector_is_that_of_the_chart_before_and_never_changes_with_the_version() {
    let Some(objects) = Release::new().objects() else { return };
    let daemon_set = objects.one("DaemonSet");
    let selector = &daemon_set["spec"]["selector"]["matchLabels"];
    assert_eq!(
        *selector,
        serde_json::json!({
            "component": "controllermanager",
            "app": "openstack-cloud-controller-manager",
            "release": "occm",
        })
    );
    for (label, value) in selector.as_object().unwrap() {
        assert_eq!(objects.pod()["metadata"]["labels"][label], *value);
    }
}

#[test]
fn rights_follow_the_lease_that_the_arguments_name() {
    let Some(objects) = Release::new().values("occm-documented.yaml").objects() else { return };
    let names = &objects.one("Role")["rules"][1]["resourceNames"];
    assert_eq!(*names, serde_json::json!(["occm-lease"]));
    let elsewhere =
        Release::new().set("extraArgs={--leader-elect-resource-namespace=ccm}").objects().unwrap();
    assert_eq!(elsewhere.one("Role")["metadata"]["namespace"], "ccm");
}

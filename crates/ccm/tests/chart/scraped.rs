//! Who reads the metrics, who may connect, and who owns the rights.

use rstest::rstest;
use serde_json::json;

use crate::helm::Release;

/// A PodMonitor finds the pods by their labels, without a Service, and authenticates as a ServiceMonitor does.
#[test]
fn a_pod_monitor_reads_the_pods_with_a_token_of_its_own() {
    let Some(objects) = Release::new().set("podMonitor.enabled=true").objects() else { return };
    let monitor = objects.one("PodMonitor");
    let labels = &objects.pod()["metadata"]["labels"];
    for (label, value) in monitor["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(labels[label], *value, "{label}");
    }
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["port"], objects.container()["ports"][0]["name"]);
    let token = objects.named("Secret", "openstack-cloud-controller-manager-metrics");
    assert_eq!(endpoint["authorization"]["credentials"]["name"], token["metadata"]["name"]);
    assert!(objects.arguments().contains(&"--bind-address=0.0.0.0".to_owned()), "it is not on the node");
    assert_eq!(objects.all("Service").count() + objects.all("ServiceMonitor").count(), 0);
}

#[test]
fn a_monitor_with_its_own_credentials_needs_no_account() {
    let own = |monitor: &str| format!("{monitor}.authorization.credentials.key=token");
    let release = Release::new().set("podMonitor.enabled=true").set(&own("podMonitor"));
    let Some(objects) = release.objects() else { return };
    assert_eq!(objects.all("ServiceAccount").count(), 1);
    let both = Release::new()
        .set("podMonitor.enabled=true")
        .set(&own("podMonitor"))
        .set("serviceMonitor.enabled=true");
    assert_eq!(both.objects().unwrap().all("ServiceAccount").count(), 2, "the other one needs it");
}

#[rstest]
#[case::on_the_hosts_network(&[], None)]
#[case::by_default(&["hostNetwork=false"], Some(json!([{"ports": [{"port": 10258, "protocol": "TCP"}]}])))]
#[case::of_a_trial(
    &["hostNetwork=false", "trial.loadBalancerClass=a/b"],
    Some(json!([{"ports": [{"port": 10358, "protocol": "TCP"}]}]))
)]
#[case::switched_off(&["hostNetwork=false", "networkPolicy.enabled=false"], None)]
#[case::from_some(
    &["hostNetwork=false", "networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24"],
    Some(json!([{"ports": [{"port": 10258, "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]))
)]
fn only_the_port_of_the_endpoints_is_open_where_policies_apply(
    #[case] settings: &[&str],
    #[case] ingress: Option<serde_json::Value>,
) {
    let release = settings.iter().fold(Release::new(), |release, setting| release.set(setting));
    let Some(objects) = release.objects() else { return };
    let found = objects.all("NetworkPolicy").next().map(|policy| policy["spec"]["ingress"].clone());
    assert_eq!(found, ingress);
}

/// Who owns the rights of a platform makes them; everything else is as before.
#[test]
fn without_rbac_nothing_of_it_is_rendered() {
    let all = || Release::new().set("canary.enabled=true").set("serviceMonitor.enabled=true");
    let (Some(with), Some(without)) = (all().objects(), all().set("rbac.create=false").objects()) else {
        return;
    };
    let is_rbac = |object: &&serde_json::Value| object["apiVersion"] == "rbac.authorization.k8s.io/v1";
    assert_eq!(without.0.iter().filter(is_rbac).count(), 0);
    let others: Vec<_> = with.0.iter().filter(|object| !is_rbac(object)).collect();
    assert_eq!(without.0.iter().collect::<Vec<_>>(), others);
}

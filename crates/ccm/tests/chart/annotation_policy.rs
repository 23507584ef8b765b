//! The policy for annotations: made from the table of annotations, for the Services that this program serves.

use std::collections::BTreeMap;

use openstack_ccm_provider_openstack::load_balancer::annotations::{
    ALL, Form, OLD_PREFIX, PREFIX, RECLAIM_POLICY,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::{Release, read, repository};

const TABLE: &str = "charts/openstack-ccm/files/annotations.json";

/// What the chart makes the policy of.
fn table() -> Value {
    let of = |wanted: fn(Form) -> bool| -> Vec<&str> {
        ALL.iter().filter(|one| wanted(one.form)).map(|one| one.key).collect()
    };
    let (mut integers, mut words) = (BTreeMap::new(), BTreeMap::new());
    for annotation in ALL {
        match annotation.form {
            Form::Integer { min, max, .. } => drop(integers.insert(annotation.key, [min, max])),
            Form::Word(list) => drop(words.insert(annotation.key, list)),
            _ => {}
        }
    }
    json!({
        "prefixes": [PREFIX, OLD_PREFIX],
        "known": of(|_| true),
        "bools": of(|form| form == Form::Bool),
        "integers": integers,
        "words": words,
        "anyCase": [RECLAIM_POLICY.key],
        "uuids": of(|form| matches!(form, Form::Uuid(_))),
    })
}

#[test]
fn the_policy_is_made_from_the_table_of_annotations() {
    let table = serde_json::to_string_pretty(&table()).unwrap() + "\n";
    if std::env::var_os("UPDATE_MANIFESTS").is_some() {
        std::fs::create_dir_all(repository("charts/openstack-ccm/files")).unwrap();
        std::fs::write(repository(TABLE), &table).unwrap();
    }
    assert!(read(TABLE) == table, "{TABLE} is out of date; regenerate it with `make manifests`");
}

#[rstest]
#[case::by_default(&[], "1.36.0", false)]
#[case::switched_on(&["annotationPolicy.enabled=true"], "1.36.0", true)]
#[case::where_it_can_be(&["annotationPolicy.enabled=auto"], "1.30.0", true)]
#[case::where_it_cannot(&["annotationPolicy.enabled=auto"], "1.29.0", false)]
#[case::without_services(&["annotationPolicy.enabled=true", "enabledControllers={cloud-node}"], "1.36.0", false)]
#[case::in_a_management_cluster(
    &["annotationPolicy.enabled=auto", "workloadCluster.kubeconfigSecret=a", "kind=Deployment", "hostNetwork=false"],
    "1.36.0",
    false
)]
fn it_is_there_where_it_is_asked_for_and_possible(
    #[case] settings: &[&str],
    #[case] version: &str,
    #[case] expected: bool,
) {
    let release = settings.iter().fold(Release::new().kubernetes(version), |release, one| release.set(one));
    let Some(objects) = release.objects() else { return };
    assert_eq!(objects.all("ValidatingAdmissionPolicy").count(), usize::from(expected));
    assert_eq!(objects.all("ValidatingAdmissionPolicyBinding").count(), usize::from(expected));
    objects.0.iter().for_each(|object| crate::kubernetes::knows(object).unwrap());
}

#[test]
fn it_sees_only_what_asks_for_our_load_balancers_and_never_a_status() {
    for (settings, class) in [
        (vec![], ""),
        (vec!["trial.loadBalancerClass=a/trial"], "a/trial"),
        (vec!["extraArgs={--load-balancer-class=a/ours}"], "a/ours"),
    ] {
        let on = Release::new().set("annotationPolicy.enabled=true").set("annotationPolicy.action=Deny");
        let Some(objects) = settings.into_iter().fold(on, Release::set).objects() else {
            return;
        };
        let spec = &objects.one("ValidatingAdmissionPolicy")["spec"];
        assert_eq!(spec["failurePolicy"], "Ignore");
        assert_eq!(
            spec["matchConstraints"]["resourceRules"],
            json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["services"]}])
        );
        let before =
            spec["variables"].as_array().unwrap().iter().find(|one| one["name"] == "before").unwrap();
        let of_another_type = "oldObject == null || oldObject.spec.type != 'LoadBalancer' ? {} :";
        assert!(before["expression"].as_str().unwrap().starts_with(of_another_type), "they are unchecked");
        let expected = format!("object.spec.?loadBalancerClass.orValue('') == '{class}'");
        assert_eq!(spec["matchConditions"][1]["expression"], expected);
        assert_eq!(
            objects.one("ValidatingAdmissionPolicyBinding")["spec"]["validationActions"],
            json!(["Deny"])
        );
    }
}

#[rstest]
#[case::too_old(&[], "1.29.0", "1.30 and newer have")]
#[case::another_cluster(
    &["workloadCluster.kubeconfigSecret=a", "kind=Deployment", "hostNetwork=false"],
    "1.36.0",
    "the Services of this cluster"
)]
fn it_is_refused_where_it_would_do_nothing(
    #[case] settings: &[&str],
    #[case] version: &str,
    #[case] problem: &str,
) {
    let on = Release::new().kubernetes(version).set("annotationPolicy.enabled=true");
    let Some(error) = settings.iter().fold(on, |release, one| release.set(one)).error() else { return };
    assert!(error.contains(problem), "{error}");
}

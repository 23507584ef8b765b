//! On which nodes the pods run, how they are replaced, and what the operator reads about it.

use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::{Release, copy_of_chart};

fn required(pod: &Value) -> &Value {
    &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
}

#[test]
fn a_value_that_somebody_wrote_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, "nodeSelector: {node-role.kubernetes.io/control-plane: \"true\"}\n").unwrap();
    let Some(objects) = Release::new().values_file(&file).objects() else { return };
    assert_eq!(
        objects.pod()["spec"]["nodeSelector"],
        json!({"node-role.kubernetes.io/control-plane": "true"})
    );
    assert!(required(objects.pod()).is_null());
}

#[test]
fn the_role_is_added_to_every_term_of_an_affinity() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    let affinity = "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n        \
                    - matchExpressions: [{key: zone, operator: In, values: [a]}]\n        - matchFields: [{key: metadata.name, operator: In, values: [node-1]}]\n";
    std::fs::write(&file, affinity).unwrap();
    let Some(objects) = Release::new().values_file(&file).objects() else { return };
    let role = json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"});
    assert_eq!(
        *required(objects.pod()),
        json!([
            {"matchExpressions": [role, {"key": "zone", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [role], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
        ])
    );
}

#[test]
fn constraints_on_topology_count_the_pods_of_the_release() {
    let spread = "topologySpreadConstraints[0].topologyKey=topology.kubernetes.io/zone,\
                  topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule";
    let Some(objects) = Release::new().set(spread).objects() else { return };
    let constraint = &objects.pod()["spec"]["topologySpreadConstraints"][0];
    assert_eq!(constraint["labelSelector"], objects.one("DaemonSet")["spec"]["selector"]);
    let label = "topologySpreadConstraints[0].labelSelector.matchLabels.app=mine";
    let own = Release::new().set(spread).set(label).objects().unwrap();
    let constraint = &own.pod()["spec"]["topologySpreadConstraints"][0];
    assert_eq!(constraint["labelSelector"], json!({"matchLabels": {"app": "mine"}}));
}

#[test]
fn further_objects_are_part_of_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    let text = "extraObjects:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: as-it-is}, data: {a: '{{ b }}'}}\n  - |\n    \
                apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: \"{{ .Release.Name }}-made\"}\n";
    std::fs::write(&file, text).unwrap();
    let Some(objects) = Release::new().values_file(&file).objects() else { return };
    assert_eq!(objects.named("ConfigMap", "as-it-is")["data"]["a"], "{{ b }}");
    objects.named("ConfigMap", "occm-made");
}

/// The notes that Helm prints after an installation. Helm renders them on a cluster only, so here they are the text of an object.
fn notes(release: Release) -> Option<String> {
    let chart = copy_of_chart();
    let templates = chart.path().join("templates");
    let notes = std::fs::read_to_string(templates.join("NOTES.txt")).unwrap();
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {text: {{ include \"notes\" . | toJson }}}\n";
    std::fs::write(
        templates.join("notes.yaml"),
        format!("{{{{- define \"notes\" -}}}}{notes}{{{{- end -}}}}\n{object}"),
    )
    .unwrap();
    let objects = release.chart(chart.path()).objects()?;
    Some(objects.named("ConfigMap", "notes")["data"]["text"].as_str().unwrap().to_owned())
}

#[test]
fn the_notes_say_how_to_see_that_no_pod_is_scheduled() {
    let Some(text) = notes(Release::new()) else { return };
    assert!(text.contains("kubectl get nodes --selector 'node-role.kubernetes.io/control-plane'"), "{text}");
    assert!(
        text.contains("no pod is scheduled, although the rollout of a DaemonSet succeeds even then"),
        "{text}"
    );
    let anywhere = notes(Release::new().set("nodeSelector=null")).unwrap();
    assert!(!anywhere.contains("get nodes"), "{anywhere}");
}

/// With the network of its node, a pod of a DaemonSet is let onto a node without routes by Kubernetes, and one of a Deployment is not.
#[rstest]
#[case::a_section(&["kind=Deployment", "cloudConfig.route.router-id=r"], true)]
#[case::a_text(&["kind=Deployment", "cloudConfigContents=[Route]"], true)]
#[case::a_secret_that_nobody_sees_into(&["kind=Deployment", "secret.create=false"], true)]
#[case::no_routes(&["kind=Deployment"], false)]
#[case::not_by_this_release(&["kind=Deployment", "cloudConfig.route.router-id=r", "enabledControllers={service}"], false)]
#[case::a_daemon_set(&["cloudConfig.route.router-id=r"], false)]
#[case::pods_that_need_routes(&["kind=Deployment", "cloudConfig.route.router-id=r", "hostNetwork=false"], false)]
fn pods_that_make_routes_run_on_nodes_without_one(#[case] settings: &[&str], #[case] tolerated: bool) {
    let release = settings.iter().fold(Release::new(), |release, setting| release.set(setting));
    let Some(objects) = release.objects() else { return };
    let tolerations = objects.pod()["spec"]["tolerations"].as_array().unwrap().clone();
    let keys: Vec<&str> = tolerations.iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys.contains(&"node.kubernetes.io/network-unavailable"), tolerated, "{keys:?}");
    assert!(keys.contains(&"CriticalAddonsOnly"), "{keys:?}");
}

#[test]
fn the_notes_begin_with_the_commands_that_find_what_is_wrong() {
    let Some(text) = notes(Release::new()) else { return };
    let places: Vec<_> = ["openstack-ccm status", "openstack-ccm doctor", "helm test occm", "rollout status"]
        .map(|part| text.find(part))
        .into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

/// Keystone's refusal of the old credentials makes the program read the Secret again.
#[test]
fn the_notes_ask_for_no_restart_after_credentials_were_rotated() {
    let Some(text) = notes(Release::new().set("secret.create=false")) else { return };
    assert!(text.contains("Credentials that were rotated there are read again"), "{text}");
    assert!(!text.contains("do not notice"), "{text}");
}

#[test]
fn the_notes_name_the_lease_of_the_leader() {
    let lease = "extraArgs={--leader-elect-resource-name=mine,--leader-elect-resource-namespace=ccm}";
    let Some(text) = notes(Release::new().set(lease)) else { return };
    assert!(text.contains("kubectl -n ccm get lease mine"), "{text}");
}

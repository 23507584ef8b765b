//! Alerts: each chooses its series, keeps clusters apart, and leads to its entry in the page.

use serde_json::Value;

use crate::helm::{Release, read};
use crate::metrics::queries;

fn alerts(groups: &Value) -> Vec<&Value> {
    let groups = groups["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect()
}

fn written() -> Value {
    serde_saphyr::from_str(&read("charts/openstack-ccm/alerts.yaml")).unwrap()
}

/// Metrics of a query with what is between their braces; those without braces have none.
fn selectors(query: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in query.match_indices('{') {
        let name = query[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
        let inside = query[at + 1..].split('}').next().unwrap();
        found.push((name.to_owned(), inside.to_owned()));
    }
    found
}

#[test]
fn every_series_of_an_alert_is_chosen_by_job_and_kept_apart_by_cluster() {
    let written = written();
    let rules = alerts(&written);
    assert!(rules.len() >= 10);
    for rule in rules {
        let (name, expression) = (&rule["alert"], rule["expr"].as_str().unwrap());
        for (metric, inside) in selectors(expression) {
            assert!(inside.starts_with("$selector"), "{name}: {metric}{{{inside}}} begins with no $selector");
        }
        let bare = expression.replace("$selector", "").replace("$cluster", "");
        let names = bare.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let metrics = names.filter(|word| word.contains('_') && !word.ends_with("_over_time")).count();
        assert!(expression.matches('{').count() >= metrics.min(1), "{name}: a metric has no selector");
        for aggregation in ["sum(", "max(", "min(", "avg(", "count(", "by ()", "on ()"] {
            assert!(
                !expression.contains(aggregation),
                "{name}: {aggregation} mixes clusters; aggregate by ($cluster)"
            );
        }
        assert!(expression.contains("by ($cluster"), "{name}: aggregate by ($cluster)");
    }
}

#[test]
fn every_query_of_the_dashboard_is_chosen_by_job_and_cluster() {
    let text = read("charts/openstack-ccm/dashboards/openstack-ccm.json");
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    for query in found {
        let selectors = selectors(&query);
        assert!(!selectors.is_empty(), "{query}");
        for (_, inside) in selectors {
            assert!(inside.starts_with(r#"job=~"$job",cluster=~"$cluster""#), "{query}");
        }
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for name in ["job", "cluster"] {
        assert!(variables.iter().any(|variable| variable["name"] == name), "{name}");
    }
}

#[test]
fn every_alert_has_an_entry_in_the_page_and_the_page_no_other() {
    let page = read("docs/guides/alerts.md");
    let entries: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let written = written();
    let names: Vec<&str> = alerts(&written).iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    for name in &names {
        assert!(entries.contains(name), "docs/guides/alerts.md has no entry `## {name}`");
    }
    for entry in entries {
        assert!(names.contains(&entry), "docs/guides/alerts.md: there is no alert {entry}");
    }
}

/// `make alerts` asks Prometheus' own rule engine.
#[test]
fn every_alert_is_asked_of_the_rule_engine() {
    let asked = read("charts/tools/promtool/alerts.yaml");
    for rule in alerts(&written()) {
        let name = rule["alert"].as_str().unwrap();
        assert!(asked.contains(&format!("alertname: {name}\n")), "{name} is in no test of `make alerts`");
    }
}

#[test]
fn rendered_alerts_choose_the_series_of_their_pods_and_name_their_runbook() {
    let Some(objects) = Release::new().values("everything.yaml").objects() else { return };
    let rendered = &objects.one("PrometheusRule")["spec"];
    let written = written();
    assert_eq!(alerts(rendered).len(), alerts(&written).len());
    for rule in alerts(rendered) {
        let expression = rule["expr"].as_str().unwrap();
        assert!(!expression.contains('$'), "{expression}");
        for (_, inside) in selectors(expression) {
            assert!(inside.starts_with(r#"job="controllermanager""#), "{expression}");
        }
        let page = "https://github.com/openstack-ccm/openstack-ccm/blob/main/docs/guides/alerts.md";
        let anchor = rule["alert"].as_str().unwrap().to_lowercase();
        assert_eq!(rule["annotations"]["runbook_url"], format!("{page}#{anchor}"));
    }
    let service = objects.named("Service", "openstack-cloud-controller-manager");
    assert_eq!(
        service["metadata"]["labels"]["component"], "controllermanager",
        "the label that becomes the job"
    );
}

#[test]
fn the_operator_names_job_and_cluster() {
    let settings = "prometheusRule.enabled=true,prometheusRule.job=openstack-ccm,prometheusRule.selector.cluster=a,\
                    prometheusRule.clusterLabel=k8s_cluster,prometheusRule.alertLabels.team=cloud";
    let Some(objects) = Release::new().set(settings).objects() else { return };
    for rule in alerts(&objects.one("PrometheusRule")["spec"]) {
        let expression = rule["expr"].as_str().unwrap();
        assert!(expression.contains(r#"{job="openstack-ccm",cluster="a""#), "{expression}");
        assert!(expression.contains("by (k8s_cluster"), "{expression}");
        assert_eq!(rule["labels"]["team"], "cloud");
        assert!(!rule["labels"]["severity"].is_null());
    }
}

/// A trial beside another one must not hide that the other has no leader.
#[test]
fn a_trial_has_a_job_of_its_own() {
    let trial = "trial.loadBalancerClass=a/b,prometheusRule.enabled=true,serviceMonitor.enabled=true";
    let Some(objects) = Release::new().set(trial).objects() else { return };
    let rule = &alerts(&objects.one("PrometheusRule")["spec"])[0]["expr"];
    assert!(rule.as_str().unwrap().contains(r#"job="controllermanager-trial""#), "{rule}");
    assert_eq!(objects.one("Service")["metadata"]["labels"]["component"], "controllermanager-trial");
}

#[test]
fn a_service_monitor_authorizes_with_the_token_of_an_account_that_reads_metrics_only() {
    let settings = "serviceMonitor.enabled=true,serviceMonitor.interval=1m,serviceMonitor.scrapeTimeout=20s,\
                    serviceMonitor.relabelings[0].targetLabel=cluster,serviceMonitor.relabelings[0].replacement=a";
    let Some(objects) = Release::new().set(settings).objects() else { return };
    let endpoint = &objects.one("ServiceMonitor")["spec"]["endpoints"][0];
    let name = "openstack-cloud-controller-manager-metrics";
    let credentials = serde_json::json!({"name": name, "key": "token"});
    assert_eq!(endpoint["authorization"], serde_json::json!({"type": "Bearer", "credentials": credentials}));
    assert!(endpoint["bearerTokenFile"].is_null(), "the field is deprecated");
    assert_eq!((&endpoint["interval"], &endpoint["scrapeTimeout"]), (&"1m".into(), &"20s".into()));
    assert_eq!(endpoint["relabelings"], serde_json::json!([{"targetLabel": "cluster", "replacement": "a"}]));
    let secret = objects.named("Secret", name);
    assert_eq!(secret["type"], "kubernetes.io/service-account-token");
    assert_eq!(secret["metadata"]["annotations"]["kubernetes.io/service-account.name"], name);
    let role = objects.named("ClusterRole", "system:openstack-cloud-controller-manager:metrics");
    assert_eq!(role["rules"], serde_json::json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]));
    let binding = objects.named("ClusterRoleBinding", "system:openstack-cloud-controller-manager:metrics");
    assert_eq!(binding["subjects"][0]["name"], name);

    let own = format!(
        "{settings},serviceMonitor.authorization.credentials.name=mine,serviceMonitor.authorization.credentials.key=t"
    );
    let objects = Release::new().set(&own).objects().unwrap();
    let endpoint = &objects.one("ServiceMonitor")["spec"]["endpoints"][0];
    assert_eq!(endpoint["authorization"]["credentials"]["name"], "mine");
    assert!(objects.all("ServiceAccount").all(|account| account["metadata"]["name"] != name));
}

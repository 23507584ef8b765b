//! `docs/reference/metrics.md`, from the metrics that a running program shows.

use std::collections::{BTreeMap, BTreeSet};

use super::{GENERATED, cell};

const INTRODUCTION: &str = "# Metrics

The metrics are served at `https://<pod>:10258/metrics` in the text format of Prometheus (`text/plain; version=0.0.4`), or in
that of OpenMetrics if the request's `Accept` header prefers it, as Prometheus does. Readers need the right to `get` the
non-resource URL `/metrics`, which the API server checks. `--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics`
opens the page to everybody who can reach the port.

Names are those of the framework (`service_controller_*`, `workqueue_*`, `rest_client_*`, `leader_election_*`,
`running_managed_controllers`, `kubernetes_*`), of the Go implementation (`openstack_api_*`,
`cloudprovider_openstack_*`), of every Prometheus client library (`process_*`), and our own (`openstack_ccm_*`). Every
label has a small set of values: no label names a Service or a cloud object, and only `openstack_ccm_node_ip_mode` names nodes.
";

/// What is known of one metric.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The page, from a text in the OpenMetrics format.
pub fn markdown(text: &str) -> String {
    let mut page = format!(
        "{GENERATED}\n\n{INTRODUCTION}\n| Name | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n"
    );
    for (name, family) in families(text) {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        // Help texts of the format end in a full stop, added by the encoder.
        let help = cell(family.help.trim_end_matches('.'));
        page.push_str(&format!("| `{name}{suffix}` | {} | {} | {help} |\n", family.kind, labels.join(", ")));
    }
    page
}

fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, rest)) = line.split_once('{') {
            let known = ["", "_total", "_bucket", "_sum", "_count"].iter().find_map(|suffix| {
                name.strip_suffix(suffix).filter(|name| families.contains_key(*name)).map(str::to_owned)
            });
            if let Some(family) = known.and_then(|name| families.get_mut(&name)) {
                family.labels.extend(labels(rest).filter(|label| label != "le"));
            }
        }
    }
    families
}

/// Names in `a="x",b="y"} 1`; values of ours hold neither quotes nor `=`.
fn labels(text: &str) -> impl Iterator<Item = String> {
    let inside = text.rsplit_once('}').map_or(text, |(inside, _)| inside);
    inside.split("\",").filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_labels_and_meaning_are_read() {
        let text = "# HELP calls Calls.\n# TYPE calls counter\ncalls_total{request=\"a\",code=\"b\"} 1\n\
                    # HELP time Time.\n# TYPE time histogram\ntime_bucket{le=\"1\",request=\"a\"} 1\n# EOF\n";
        let page = markdown(text);
        assert!(page.contains("| `calls_total` | counter | `code`, `request` | Calls |"), "{page}");
        assert!(page.contains("| `time` | histogram | `request` | Time |"), "{page}");
    }
}

//! What the cluster honours and what is published, as metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use openstack_ccm_core::lock::lock;
use openstack_ccm_runtime::metrics::{count_anew, metric, set};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::announce::Labels;
use crate::cluster::ServerSupport;
use crate::node::{Fitness, NodeVerdict, Verdict};

type Label = [(&'static str, &'static str); 1];
/// Mode and reason of a publication.
type PublicationLabels = [(&'static str, &'static str); 2];

/// Name of a node, empty for a sum; verdict; source.
type OfNode = [(&'static str, String); 3];

/// Maximum of nodes with a series each. A larger cluster has counts by verdict and source.
const MAX_NODE_SERIES: usize = 100;

/// The metrics of one program that publishes addresses. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct AdvertiseMetrics {
    published: Family<PublicationLabels, Gauge>,
    publications: Family<PublicationLabels, Counter>,
    server_support: Family<Label, Gauge>,
    unfit_nodes: Gauge,
    data_plane_fit: Gauge,
    nodes: Family<OfNode, Gauge>,
    /// The series of nodes that are shown.
    shown: Arc<Mutex<BTreeSet<OfNode>>>,
}

impl AdvertiseMetrics {
    /// Creates the metrics and makes them visible in `registry`, which prefixes their names with the program's.
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self {
            published: metric(
                registry,
                "services_published",
                "Services by the mode in which the API server shows their load balancer, and the reason; `other_writer` where another program's \
                 status stays",
            ),
            publications: metric(
                registry,
                "service_publications",
                "Status writes by published mode and reason",
            ),
            server_support: metric(
                registry,
                "ip_mode_server_support",
                "Whether the API server keeps ipMode: 1 for the current value",
            ),
            unfit_nodes: metric(
                registry,
                "ip_mode_unfit_nodes",
                "Nodes whose service proxy does not honour ipMode",
            ),
            data_plane_fit: metric(
                registry,
                "ip_mode_data_plane_fit",
                "Whether the service proxies of all nodes honour ipMode",
            ),
            nodes: metric(
                registry,
                "node_ip_mode",
                "Nodes by verdict on their service proxy and its source: 1 for each node, or without a name the number of nodes \
                 in clusters of more than 100",
            ),
            shown: Arc::default(),
        };
        metrics.server(ServerSupport::Unknown);
        metrics
    }

    /// Counts a status write.
    pub fn wrote_status(&self, publication: Labels) {
        self.publications.get_or_create(&labels(publication)).inc();
    }

    /// Moves a Service from one way of publication to another; `None`: not published.
    pub fn publication_changed(&self, before: Option<Labels>, now: Option<Labels>) {
        count_anew(&self.published, before.map(labels), now.map(labels));
    }

    /// Shows what is known of the API server.
    pub(crate) fn server(&self, support: ServerSupport) {
        for (value, name) in [
            (ServerSupport::Keeps, "keeps"),
            (ServerSupport::Drops, "drops"),
            (ServerSupport::Unknown, "unknown"),
        ] {
            self.server_support.get_or_create(&[("support", name)]).set(i64::from(value == support));
        }
    }

    /// Shows the judgement over all nodes.
    pub fn data_plane(&self, fitness: &Fitness) {
        let unfit = match fitness {
            Fitness::Fit => 0,
            Fitness::Unfit { count, .. } => *count,
        };
        set(&self.unfit_nodes, unfit);
        self.data_plane_fit.set(i64::from(unfit == 0));
    }

    /// Shows the verdict on each node.
    pub fn nodes(&self, verdicts: &BTreeMap<String, NodeVerdict>) {
        let one_each = verdicts.len() <= MAX_NODE_SERIES;
        let mut counts = BTreeMap::<OfNode, i64>::new();
        for (node, held) in verdicts {
            let name = if one_each { node.clone() } else { String::new() };
            let verdict = match held.verdict {
                Verdict::Fit => "fit",
                Verdict::Unfit => "unfit",
            };
            let series = [
                ("node", name),
                ("verdict", verdict.to_owned()),
                ("source", held.source.as_str().to_owned()),
            ];
            *counts.entry(series).or_default() += 1;
        }
        let mut shown = lock(&self.shown);
        for gone in shown.iter().filter(|series| !counts.contains_key(*series)) {
            self.nodes.remove(gone);
        }
        for (series, count) in &counts {
            self.nodes.get_or_create(series).set(*count);
        }
        *shown = counts.into_keys().collect();
    }
}

fn labels((mode, reason): Labels) -> PublicationLabels {
    [("mode", mode), ("reason", reason)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Cause, Source};

    fn page(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn nodes_have_a_series_each_and_many_nodes_are_counted() {
        let mut registry = Registry::default();
        let metrics = AdvertiseMetrics::registered(registry.sub_registry_with_prefix("program"));
        let fit = NodeVerdict::fit(Source::Canary, Cause::SeenToHonour);
        let unfit = NodeVerdict::unfit(Source::Version, Cause::Windows);
        metrics.nodes(&BTreeMap::from([("a".to_owned(), unfit.clone()), ("b".to_owned(), fit.clone())]));
        metrics.nodes(&BTreeMap::from([("a".to_owned(), fit.clone())]));
        let text = page(&registry);
        assert!(
            text.contains("program_node_ip_mode{node=\"a\",verdict=\"fit\",source=\"canary\"} 1"),
            "{text}"
        );
        assert_eq!(text.matches("program_node_ip_mode{").count(), 1, "{text}");
        let many = (0..1000)
            .map(|number| (format!("n{number}"), if number < 3 { unfit.clone() } else { fit.clone() }));
        metrics.nodes(&many.collect());
        let text = page(&registry);
        assert!(
            text.contains("program_node_ip_mode{node=\"\",verdict=\"unfit\",source=\"version\"} 3"),
            "{text}"
        );
        assert_eq!(text.matches("program_node_ip_mode{").count(), 2, "{text}");
    }

    #[test]
    fn a_service_is_counted_in_one_mode_at_a_time() {
        let mut registry = Registry::default();
        let metrics = AdvertiseMetrics::registered(registry.sub_registry_with_prefix("program"));
        metrics.publication_changed(None, Some(("hostname", "server_drops_ip_mode")));
        metrics.publication_changed(
            Some(("hostname", "server_drops_ip_mode")),
            Some(("proxy", "proxy_protocol")),
        );
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "program_services_published{mode=\"proxy\",reason=\"proxy_protocol\"} 1",
            "program_services_published{mode=\"hostname\",reason=\"server_drops_ip_mode\"} 0",
            "program_ip_mode_server_support{support=\"unknown\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

//! What kube-proxy itself reports, where it can be reached: its metrics name the feature gate and its version.
//!
//! By default kube-proxy serves its metrics on loopback. Where it serves them on the node's address, as Prometheus needs it, they are
//! read there, and the answer is trusted only if it holds metrics of kube-proxy.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, redirect};

use crate::node::{Cause, NodeVerdict, Source, Version};

/// Longest wait for an answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Largest page that is read, in bytes. kube-proxy's has about 100 KB, and more with many Services.
const MAX_PAGE_SIZE: usize = 4 << 20;
/// Prefix of series that only kube-proxy has.
const OF_KUBE_PROXY: &str = "kubeproxy_";
const GATE: (&str, &str) = ("kubernetes_feature_enabled", "name=\"LoadBalancerIPMode\"");
const BUILD: (&str, &str) = ("kubernetes_build_info", "git_version=\"");
/// The first release that knows the field, and the first that has no gate any more.
const KNOWS: Version = Version(1, 29, 0);
const WITHOUT_GATE: Version = Version(1, 36, 0);

/// Reads the metrics of kube-proxies.
#[derive(Clone, Debug)]
pub struct KubeProxies {
    http: Client,
    port: u16,
}

impl KubeProxies {
    /// Creates a reader for this port of nodes.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(port: u16) -> Result<Self, reqwest::Error> {
        // Only the node itself may answer, no proxy and no redirect target.
        let http = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .build()?;
        Ok(Self { http, port })
    }

    /// Returns what the kube-proxy of the node with this address reports of itself; `None` if there is no answer in time,
    /// or the answer is not from a kube-proxy.
    pub async fn ask(&self, node: IpAddr) -> Option<NodeVerdict> {
        let url = format!("http://{}/metrics", SocketAddr::new(node, self.port));
        let mut response = self.http.get(url).send().await.ok()?.error_for_status().ok()?;
        let mut page = Vec::new();
        while let Some(part) = response.chunk().await.ok()? {
            if page.len() + part.len() > MAX_PAGE_SIZE {
                return None;
            }
            page.extend_from_slice(&part);
        }
        read(&String::from_utf8(page).ok()?)
    }
}

/// Returns the verdict of the gate.
pub(crate) fn by_gate(on: bool) -> NodeVerdict {
    if on {
        NodeVerdict::fit(Source::KubeProxy, Cause::GateOn)
    } else {
        NodeVerdict::unfit(Source::KubeProxy, Cause::GateOff)
    }
}

/// Reads a page of metrics in the text format of Prometheus.
///
/// The gate decides. A release without a line for the gate has none: before 1.29 kube-proxy does not know the field, from 1.36 on
/// it always honours it. In between, a page without the line is not believed.
pub fn read(page: &str) -> Option<NodeVerdict> {
    if !page.lines().any(|line| line.starts_with(OF_KUBE_PROXY)) {
        return None;
    }
    let gate = page.lines().find_map(|line| {
        let (labels, value) = series(line, GATE.0)?;
        labels.contains(GATE.1).then_some(value)
    });
    if let Some(value) = gate {
        return match value.parse::<f64>().ok()? {
            1.0 => Some(by_gate(true)),
            0.0 => Some(by_gate(false)),
            _ => None,
        };
    }
    let text = page.lines().find_map(|line| {
        let (labels, _) = series(line, BUILD.0)?;
        labels.split_once(BUILD.1)?.1.split('"').next()
    })?;
    let version = Version::parse(text)?;
    let cause = Cause::KubeProxyVersion(text.to_owned());
    if version < KNOWS {
        Some(NodeVerdict::unfit(Source::KubeProxy, cause))
    } else if version >= WITHOUT_GATE {
        Some(NodeVerdict::fit(Source::KubeProxy, cause))
    } else {
        None
    }
}

/// Returns labels and value of a line of this metric. No label that is read here can hold a brace.
fn series<'a>(line: &'a str, metric: &str) -> Option<(&'a str, &'a str)> {
    let (labels, rest) = line.strip_prefix(metric)?.strip_prefix('{')?.split_once('}')?;
    Some((labels, rest.split_whitespace().next()?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::node::Verdict;

    const SYNC: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds 1.7e+09\n";

    fn page(gate: &str, version: &str) -> String {
        let gate = if gate.is_empty() {
            String::new()
        } else {
            format!("kubernetes_feature_enabled{{name=\"LoadBalancerIPMode\",stage=\"ALPHA\"}} {gate}\n")
        };
        format!(
            "# HELP kubernetes_build_info [ALPHA]\n\
             kubernetes_build_info{{build_date=\"x\",git_version=\"{version}\",major=\"1\"}} 1\n\
             kubernetes_feature_enabled{{name=\"KubeProxyDrainingTerminatingNodes\",stage=\"BETA\"}} 1\n{gate}{SYNC}"
        )
    }

    #[rstest]
    #[case::gate_on("1", "v1.29.15", Some(Verdict::Fit))]
    #[case::gate_off("0", "v1.29.15", Some(Verdict::Unfit))]
    #[case::gate_off_later("0", "v1.31.1", Some(Verdict::Unfit))]
    #[case::before_the_field("", "v1.28.15", Some(Verdict::Unfit))]
    #[case::after_the_gate("", "v1.36.3", Some(Verdict::Fit))]
    #[case::of_a_vendor("", "v1.36.0+k3s1", Some(Verdict::Fit))]
    #[case::a_gate_that_should_be_there("", "v1.31.1", None)]
    #[case::no_version("", "unknown", None)]
    #[case::no_number("on", "v1.29.15", None)]
    #[case::odd_number("2", "v1.29.15", None)]
    fn kube_proxy_is_believed_where_its_page_parses(
        #[case] gate: &str,
        #[case] version: &str,
        #[case] expected: Option<Verdict>,
    ) {
        assert_eq!(read(&page(gate, version)).map(|held| held.verdict), expected);
    }

    /// A kubelet and an API server have the same two metrics.
    #[test]
    fn another_programs_page_is_not_believed() {
        assert_eq!(read(&page("1", "v1.29.15").replace(SYNC, "")), None);
        assert_eq!(read("<html>kubeproxy_</html>"), None);
        assert_eq!(read(""), None);
    }
}

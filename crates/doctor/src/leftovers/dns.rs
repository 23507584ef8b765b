//! Lines by which CoreDNS, or the DNS cache on the nodes, leads a name elsewhere.

use std::net::IpAddr;

use crate::code::Code;
use crate::facts::{ClusterFacts, DnsText};
use crate::finding::{Check, Finding};
use openstack_ccm_core::text::some_of;

/// The comment that hairpin-proxy appends to its lines.
pub(super) const HAIRPIN_MARK: &str = "# Added by hairpin-proxy";
/// The comment that begins the block of ouroboros.
pub(super) const OUROBOROS_BEGIN: &str = "# === BEGIN ouroboros";
const OUROBOROS_END: &str = "# === END ouroboros";

/// The writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// No known tool: presumably a person.
    Hand,
    /// hairpin-proxy, or a fork of it.
    HairpinProxy,
    Ouroboros,
}

/// A configuration line that answers names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `kube-system/coredns`
    pub config_map: String,
    /// Key of the ConfigMap, and line number.
    pub key: String,
    pub text: String,
    /// The names that the line answers; empty where it has a pattern.
    pub names: Vec<String>,
    /// The answer, where it is known.
    pub target: Option<String>,
    /// The writer of the line.
    pub writer: Writer,
}

impl Line {
    /// Returns the answer in words.
    pub fn answer(&self) -> String {
        self.target.clone().unwrap_or_else(|| "what the line says".to_owned())
    }
}

/// DNS services that answer a name with the address that it contains.
pub const WITH_ADDRESS: [&str; 3] = ["nip.io", "sslip.io", "xip.io"];

/// Returns the address in a name of such a service.
pub fn address_in(name: &str) -> Option<IpAddr> {
    let name = name.trim_end_matches('.');
    let rest = WITH_ADDRESS.iter().find_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('.'))?;
    let labels: Vec<&str> = rest.split('.').collect();
    let dotted = labels.len().checked_sub(4).and_then(|start| labels[start..].join(".").parse().ok());
    let last = labels.last().copied().unwrap_or_default();
    dotted.or_else(|| last.replace('-', ".").parse().ok()).or_else(|| last.replace('-', ":").parse().ok())
}

/// Returns name and namespace of the Service in a cluster-internal name: `web.shop.svc.cluster.local`.
pub fn service_of(name: &str) -> Option<(&str, &str)> {
    let mut labels = name.split('.');
    let (service, namespace, kind) = (labels.next()?, labels.next()?, labels.next()?);
    (kind == "svc").then_some((service, namespace))
}

/// Lists the lines of all texts that answer names.
pub fn lines(texts: &[DnsText]) -> Vec<Line> {
    texts.iter().flat_map(of_text).collect()
}

fn of_text(text: &DnsText) -> Vec<Line> {
    let mut found = Vec::new();
    let (mut blocks, mut ouroboros) = (Vec::<String>::new(), false);
    for (number, raw) in text.text.lines().enumerate() {
        let line = raw.trim();
        if line.starts_with(OUROBOROS_BEGIN) {
            ouroboros = true;
        } else if line.starts_with(OUROBOROS_END) {
            ouroboros = false;
        }
        let code = line.split(" #").next().unwrap_or_default().trim();
        let words: Vec<&str> = code.split_whitespace().collect();
        let inside = blocks.last().map(String::as_str);
        let answered = answered(inside, &words);
        if let Some((names, target)) = answered {
            let writer = if line.contains(HAIRPIN_MARK) {
                Writer::HairpinProxy
            } else if ouroboros {
                Writer::Ouroboros
            } else {
                Writer::Hand
            };
            found.push(Line {
                config_map: text.config_map.clone(),
                key: format!("{} line {}", text.key, number + 1),
                text: line.to_owned(),
                names,
                target,
                writer,
            });
        }
        if !line.starts_with('#') {
            if code.ends_with('{') {
                blocks.push(words.first().copied().unwrap_or_default().to_owned());
            } else if code == "}" {
                blocks.pop();
            }
        }
    }
    found
}

/// Returns the names that a line answers, with the answer; absent where the line answers none.
fn answered(inside: Option<&str>, words: &[&str]) -> Option<(Vec<String>, Option<String>)> {
    let owned = |words: &[&str]| -> Vec<String> {
        words.iter().map(|word| word.trim_end_matches('.').to_ascii_lowercase()).collect()
    };
    match (inside, words) {
        (_, [comment, ..]) if comment.starts_with('#') => None,
        // `rewrite [stop] name [exact|suffix|prefix|substring|regex] FROM TO`
        (_, ["rewrite", rest @ ..]) => {
            let rest = rest.strip_prefix(&["stop"]).or(rest.strip_prefix(&["continue"])).unwrap_or(rest);
            let rest = rest.strip_prefix(&["name"])?;
            let (pattern, rest) = match rest {
                ["exact", rest @ ..] => (false, rest),
                ["suffix" | "prefix" | "substring" | "regex", rest @ ..] => (true, rest),
                rest => (false, rest),
            };
            let [from, to, ..] = rest else { return None };
            let names = if pattern { Vec::new() } else { owned(&[from]) };
            Some((names, owned(&[to]).pop()))
        }
        // `203.0.113.10 shop.example.org` in a `hosts` block
        (Some("hosts"), [address, names @ ..]) if address.parse::<IpAddr>().is_ok() && !names.is_empty() => {
            Some((owned(names), Some((*address).to_owned())))
        }
        (Some("template"), ["answer", rest @ ..]) => Some((Vec::new(), Some(rest.join(" ")))),
        (_, ["k8s_gateway", zones @ ..]) => {
            Some((Vec::new(), Some(format!("k8s_gateway {}", zones.join(" ")))))
        }
        _ => None,
    }
}

/// Reports lines that no known tool wrote.
pub(super) fn judge(cluster: &ClusterFacts) -> Vec<Check> {
    let Ok(texts) = &cluster.dns else { return Vec::new() };
    let by_hand = lines(texts).into_iter().filter(|line| line.writer == Writer::Hand);
    by_hand
        .map(|line| {
            let what =
                if line.names.is_empty() { "names by a pattern".to_owned() } else { some_of(&line.names, 3) };
            let finding = Finding::new(Code::L104, format!("CoreDNS answers {what} with {}", line.answer()))
                .seen(format!("ConfigMap {}", line.config_map), line.key, line.text);
            super::caution(cluster, finding).into()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COREFILE: &str = "\
.:53 {
    errors
    rewrite name exact shop.example.org hairpin-proxy.hairpin-proxy.svc.cluster.local # Added by hairpin-proxy
    # rewrite name old.example.org x.y.svc.cluster.local
    # === BEGIN ouroboros (do not edit by hand) ===
    rewrite name other.example.org ouroboros.ouroboros.svc.cluster.local
    # === END ouroboros ===
    rewrite stop name regex (.*)\\.corp x.y.svc.cluster.local
    hosts {
        10.96.0.10 admin.example.org Api.Example.org.
        fallthrough
    }
    template IN A nip.example {
        answer \"{{ .Name }} 60 IN A 10.96.0.10\"
    }
    kubernetes cluster.local in-addr.arpa
    hosts /etc/coredns/NodeHosts {
        ttl 60
    }
    forward . /etc/resolv.conf
}
";

    #[test]
    fn names_with_an_address_in_them_are_read() {
        let address = |name: &str| address_in(name).map(|address| address.to_string());
        assert_eq!(address("198.19.0.7.nip.io").as_deref(), Some("198.19.0.7"));
        assert_eq!(address("web.198-19-0-7.sslip.io").as_deref(), Some("198.19.0.7"));
        assert_eq!(address("web.nip.io"), None);
        assert_eq!(address("198.19.0.7.example.org"), None);
        assert_eq!(service_of("web.shop.svc.cluster.local"), Some(("web", "shop")));
        assert_eq!(service_of("web.example.org"), None);
    }

    #[test]
    fn each_line_that_answers_names_is_found_with_its_writer() {
        let text = DnsText {
            config_map: "kube-system/coredns".into(),
            key: "Corefile".into(),
            text: COREFILE.into(),
        };
        let lines = lines(&[text]);
        let shown: Vec<(Writer, String, &str)> = lines
            .iter()
            .map(|line| (line.writer, line.names.join(" "), line.target.as_deref().unwrap_or_default()))
            .collect();
        let expected = [
            (Writer::HairpinProxy, "shop.example.org", "hairpin-proxy.hairpin-proxy.svc.cluster.local"),
            (Writer::Ouroboros, "other.example.org", "ouroboros.ouroboros.svc.cluster.local"),
            (Writer::Hand, "", "x.y.svc.cluster.local"),
            (Writer::Hand, "admin.example.org api.example.org", "10.96.0.10"),
            (Writer::Hand, "", "\"{{ .Name }} 60 IN A 10.96.0.10\""),
        ];
        assert_eq!(shown, expected.map(|(writer, names, to)| (writer, names.to_owned(), to)));
        assert_eq!(lines[0].key, "Corefile line 3");
    }
}

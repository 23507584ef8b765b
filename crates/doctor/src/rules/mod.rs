//! How a node treats packets to an address, from a dump of its rules. Pure.
//!
//! | module | reads |
//! | --- | --- |
//! | `target` | `IP:PORT[/udp]` |
//! | `ruleset` | chains and rules of any program, and the walk through them |
//! | `iptables` | `iptables-save`, `ip6tables-save` |
//! | `nftables` | `nft -j list ruleset` |
//! | `ipvs` | `ipvsadm -Sn` |
//! | `cilium` | `cilium-dbg service list` |

mod cilium;
mod iptables;
mod ipvs;
mod nftables;
mod ruleset;
mod target;

use std::fmt;

use clap::ValueEnum;
use openstack_ccm_core::text::some_of;
use serde::Serialize;

use crate::code::Code;
use crate::finding::Finding;

pub use target::{Target, TargetError, Transport};

/// The format of a dump: the program that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `iptables-save`
    Iptables,
    /// `nft -j list ruleset`
    Nftables,
    /// `ipvsadm -Sn`
    Ipvs,
    /// `cilium-dbg service list`
    Cilium,
}

impl Format {
    /// Recognises the format by the start of the text.
    pub fn of(text: &str) -> Option<Self> {
        let start = text.trim_start();
        if start.starts_with('{') {
            return Some(Self::Nftables);
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.find_map(|line| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("ID"), Some("Frontend")) => Some(Self::Cilium),
                (Some("-A"), Some("-t" | "-u" | "-f" | "--sctp-service")) => Some(Self::Ipvs),
                (Some(first), _) if first.starts_with('*') => Some(Self::Iptables),
                (Some("-A" | "-N" | "-P"), Some(_)) => Some(Self::Iptables),
                _ => None,
            }
        })
    }
}

/// The fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Fate {
    /// No rule matches the address: the packet goes on to the load balancer.
    Through,
    /// The packet goes straight to one of these pods.
    ToPod {
        /// `10.244.1.7:8080`
        pods: Vec<String>,
        /// The only sources that are admitted; others are dropped.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        only_from: Vec<String>,
    },
    /// The packet is refused, because there is no endpoint.
    Rejected,
    /// The packet is dropped.
    Dropped {
        /// The chain that drops it.
        by: String,
    },
    /// The rules are not in use, or there are none, so the fate is not known.
    NoRules,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Through => {
                f.write_str("through: no rule matches the address, so packets travel on to the load balancer")
            }
            Self::ToPod { pods, only_from } => {
                write!(f, "to a pod: {}, around the load balancer", some_of(pods, 5))?;
                if !only_from.is_empty() {
                    write!(f, "; only from {}, others are dropped", some_of(only_from, 5))?;
                }
                Ok(())
            }
            Self::Rejected => f.write_str("rejected: the Service has no endpoint"),
            Self::Dropped { by } => write!(f, "dropped by {by}"),
            Self::NoRules => {
                f.write_str("not known: the rules of a service proxy are missing, or not in use")
            }
        }
    }
}

/// The result of following packets to an address through a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The format of the dump.
    pub format: Format,
    /// The steps, chain by chain, in words.
    pub steps: Vec<String>,
    /// The fate of packets from pods on this node.
    pub fate: Fate,
    /// Defects of the rules themselves.
    pub findings: Vec<Finding>,
}

/// Why a dump cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// The dump is empty.
    #[error(
        "the dump is empty: create it as root on the node itself; if the node really has no rules, set \
         --mode, for example to iptables"
    )]
    Empty,
    /// The dump has none of the four formats.
    #[error(
        "this is not the output of iptables-save, `nft -j list ruleset`, `ipvsadm -Sn` or `cilium-dbg service list`"
    )]
    Unknown,
    /// The dump has one of the formats, but a line is broken.
    #[error("line {line} is not understood: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// JSON that nft did not write.
    #[error("this is JSON, but not the output of `nft -j list ruleset`: {0}")]
    Json(String),
}

/// Follows packets to the target through a dump. Without `format` the format is recognised by the text.
///
/// # Errors
/// The text cannot be parsed.
pub fn walk(text: &str, target: &Target, format: Option<Format>) -> Result<Walk, RulesError> {
    let none = || if text.trim().is_empty() { RulesError::Empty } else { RulesError::Unknown };
    let format = format.or_else(|| Format::of(text)).ok_or_else(none)?;
    match format {
        Format::Iptables => Ok(ruleset::walk(format, &iptables::parse(text)?, target)),
        Format::Nftables => Ok(ruleset::walk(format, &nftables::parse(text)?, target)),
        Format::Ipvs => ipvs::walk(text, target),
        Format::Cilium => cilium::walk(text, target),
    }
}

/// What a dump lists with an address and a port, each with its pods: virtual services, frontends.
struct Listed<'a> {
    /// `virtual service`
    kind: &'a str,
    /// What leads to a pod: `a real server`.
    to_pod: &'a str,
    /// How many it lists.
    count: usize,
    /// What there is for the target, in words.
    found: Option<String>,
    pods: Vec<String>,
}

impl Listed<'_> {
    fn walk(self, format: Format, target: &Target) -> Walk {
        let Self { kind, to_pod, count, found, pods } = self;
        let mut findings = Vec::new();
        let (step, fate) = match found {
            None if count == 0 => {
                let text = format!("there is not a single {kind}");
                findings.push(not_in_use(text.clone()));
                (text, Fate::NoRules)
            }
            None => (format!("{count} {kind}s, none for {target}"), Fate::Through),
            Some(found) if pods.is_empty() => (format!("{found} without {to_pod}"), Fate::Rejected),
            Some(found) => {
                let step = format!("{found} -> {}", some_of(&pods, 5));
                (step, Fate::ToPod { pods, only_from: Vec::new() })
            }
        };
        Walk { format, steps: vec![step], fate, findings }
    }
}

/// Creates the finding that a node has no rules in use.
fn not_in_use(text: String) -> Finding {
    Finding::new(Code::D303, text).fix("restart kube-proxy on this node: delete its pod in kube-system")
}

/// Creates the finding that a node bypasses the load balancer, for a path that needs it.
pub fn short_circuit(walk: &Walk, target: &Target) -> Option<Finding> {
    let Fate::ToPod { pods, .. } = &walk.fate else { return None };
    let text = format!("packets to {target} go to a pod, around the load balancer");
    let finding = Finding::new(Code::D302, text).seen("rules", "lead to", some_of(pods, 5));
    Some(walk.steps.iter().fold(finding, |finding, step| finding.seen("rules", "", step)))
}

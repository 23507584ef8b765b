//! Whether the service proxies on the nodes honour `ipMode: Proxy`. Pure.
//!
//! What a service proxy does can be measured ([`crate::canary`]), and kube-proxy reports its features where it can be reached
//! ([`crate::kube_proxy`]); by default it reports them to processes on its own node only, and the API server knows none of it (KEP-4004
//! removed even the version from the node). If neither is available, a node is judged by what it reports: the newest
//! image of kube-proxy, or else the kubelet's version, stands in for kube-proxy's version, and replacements of kube-proxy are recognised by their node
//! annotations and by the images that the node reports. That judgement may be wrong; nothing that serves may depend on it.
//!
//! Each [`NodeVerdict`] names its source, so that an observation of the service proxy outweighs a guess.

mod evidence;
mod images;
mod verdict;
mod version;
mod virtual_node;

pub use evidence::{
    JUDGEMENT_INTERVAL, by_kube_proxy, guess_by_kubelet, guess_of, is_evidence, is_unreachable_for_long,
    unreachable_since,
};
pub use verdict::{Cause, Fitness, NodeVerdict, Replacement, Source, Verdict, judge, prevailing};
pub use version::Version;

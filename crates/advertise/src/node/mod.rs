//! Whether the service proxies on the nodes honour `ipMode: Proxy`. Pure.
//!
//! kube-proxy tells its features (`kubernetes_feature_enabled{name="LoadBalancerIPMode"}`), its mode (`/proxyMode`) and its
//! configuration (`/configz`), but by default to processes on its own node only (127.0.0.1:10249), and the API server knows
//! none of it (KEP-4004 removed even the version from the node). So from outside this is judged by what a node shows: the
//! kubelet's version stands in for kube-proxy's, and replacements of kube-proxy are recognised by their node annotations
//! and by the images that the node reports. That judgement may be wrong; nothing that serves may hang on it.
//!
//! Each [`NodeVerdict`] says where it comes from, so that one who has seen what a service proxy does stands above a guess.

mod evidence;
mod images;
mod object;
mod verdict;
mod version;
mod virtual_node;

pub use evidence::{Shown, guess, guess_by_kubelet};
pub use object::{guess_of, is_unreachable_for_long, unreachable_since};
pub use verdict::{Cause, Fitness, NodeVerdict, Replacement, Source, Verdict, judge, prevailing};
pub use version::Version;

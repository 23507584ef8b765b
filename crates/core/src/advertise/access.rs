//! Whether a load balancer lets the cluster's own nodes and pods in.

/// Whether clients inside the cluster get through the load balancer's source ranges.
///
/// With `ipMode: Proxy`, and with a hostname, they come to it as every other client does, so source ranges hold for them
/// too. A Service whose pods reached it by the short circuit must not lose that to a status that is written for their good.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAccess {
    /// There are no source ranges, or they hold all addresses from which the cluster connects.
    #[default]
    Open,
    /// The source ranges lack these networks (CIDRs), from which the cluster connects. Never empty.
    Lacks(Vec<String>),
    /// There are source ranges, and from where the cluster connects could not be found out; the text says why.
    Unknown(String),
}

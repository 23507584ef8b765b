//! The cluster's ranges of pod addresses.

use std::net::IpAddr;

use ipnet::IpNet;

/// `--cluster-cidr`: one range, or one of each family. A route outside of them is not the cluster's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRanges(Vec<IpNet>);

impl ClusterRanges {
    /// Creates the ranges.
    pub fn new(ranges: Vec<IpNet>) -> Self {
        Self(ranges)
    }

    /// Whether a network belongs to the cluster: its first or its last address is in one of the ranges.
    pub fn hold(&self, network: IpNet) -> bool {
        let holds = |address: IpAddr| self.0.iter().any(|range| range.contains(&address));
        holds(network.network()) || holds(network.broadcast())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Only what is in the cluster's ranges is the cluster's.
    ///
    /// Framework: R1, same.
    #[rstest]
    #[case::first("10.244.0.0/16", "10.244.0.0/24", true)]
    #[case::inner("10.244.0.0/16", "10.244.10.0/24", true)]
    #[case::last("10.244.0.0/16", "10.244.255.0/24", true)]
    #[case::wide_last("10.244.0.0/14", "10.247.255.0/24", true)]
    #[case::behind("10.244.0.0/14", "10.248.0.0/24", false)]
    #[case::before("10.244.0.0/14", "10.243.255.0/24", false)]
    #[case::other_second_byte("10.244.0.0/16", "10.224.0.0/24", false)]
    #[case::other_middle("10.244.0.0/16", "10.0.10.0/24", false)]
    #[case::other_last("10.244.0.0/16", "10.255.255.0/24", false)]
    #[case::v6("a00:100::/10", "a00:100::/24", true)]
    #[case::v6_outside("a00:100::/10", "b00:100::/24", false)]
    #[case::other_family("10.244.0.0/16", "a00:100::/24", false)]
    #[case::begins_outside_and_ends_inside("10.244.0.0/16", "10.240.0.0/13", false)]
    #[case::last_address_inside("10.247.0.0/16", "10.244.0.0/14", true)]
    fn framework_r1_only_what_is_in_the_ranges_is_the_clusters(
        #[case] range: &str,
        #[case] network: &str,
        #[case] expected: bool,
    ) {
        let ranges = ClusterRanges::new(vec![range.parse().unwrap()]);
        assert_eq!(ranges.hold(network.parse().unwrap()), expected);
    }
}

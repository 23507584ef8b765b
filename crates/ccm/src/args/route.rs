//! Flags of the route controller.

use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::{boolean, duration};

/// Flags of the route controller.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Route controller")]
pub struct RouteArgs {
    /// Write a route for the pods of each node, where the cloud is configured for it (`[Route] router-id`).
    #[arg(
        long, value_name = "BOOL", default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set, value_parser = boolean::parse
    )]
    pub configure_cloud_routes: bool,
    /// Address range of the pods; for dual-stack one IPv4 and one IPv6 range, separated by a comma. Routes outside of
    /// it are left alone.
    #[arg(long, value_name = "CIDR", default_value = "")]
    pub cluster_cidr: String,
    /// Longest time between two comparisons of the routes with the nodes.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub route_reconciliation_period: Duration,
}

/// A `--cluster-cidr` with which routes cannot be kept.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClusterCidrError {
    /// Not given.
    #[error(
        "--cluster-cidr is missing: routes are kept within the range of the pods' addresses; give it, for example \
         --cluster-cidr=10.244.0.0/16, or switch routes off with --configure-cloud-routes=false"
    )]
    Missing,
    /// Not a range.
    #[error("--cluster-cidr={0}: this is not a range of addresses; write it as 10.244.0.0/16")]
    NotARange(String),
    /// More than two, or two of one family.
    #[error("--cluster-cidr={0}: give one range, or one of IPv4 and one of IPv6")]
    Families(String),
}

impl RouteArgs {
    /// The ranges of `--cluster-cidr`, for the controller that needs them.
    ///
    /// # Errors
    /// None given, more than one of a family, or a text that is not a range.
    pub fn cluster_cidrs(&self) -> Result<Vec<IpNet>, ClusterCidrError> {
        let mut ranges: Vec<IpNet> = Vec::new();
        for text in self.cluster_cidr.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let range: IpNet = text.parse().map_err(|_| ClusterCidrError::NotARange(text.to_owned()))?;
            ranges.push(range.trunc());
        }
        match ranges.as_slice() {
            [] => Err(ClusterCidrError::Missing),
            [_] => Ok(ranges),
            [IpNet::V4(_), IpNet::V6(_)] | [IpNet::V6(_), IpNet::V4(_)] => Ok(ranges),
            [_, _, ..] => Err(ClusterCidrError::Families(self.cluster_cidr.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Result<Vec<String>, ClusterCidrError> {
        let arguments = RouteArgs {
            configure_cloud_routes: true,
            cluster_cidr: text.to_owned(),
            route_reconciliation_period: Duration::from_secs(10),
        };
        Ok(arguments.cluster_cidrs()?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn one_range_or_one_of_each_family_is_read() {
        assert_eq!(ranges("10.244.3.0/16"), Ok(vec!["10.244.0.0/16".to_owned()]));
        assert_eq!(ranges("fd00::/48, 10.244.0.0/16").map(|ranges| ranges.len()), Ok(2));
    }

    #[test]
    fn everything_else_names_the_flag() {
        assert_eq!(ranges(""), Err(ClusterCidrError::Missing));
        assert_eq!(ranges("10.244.0.0"), Err(ClusterCidrError::NotARange("10.244.0.0".to_owned())));
        let two = "10.0.0.0/16,10.1.0.0/16";
        assert_eq!(ranges(two), Err(ClusterCidrError::Families(two.to_owned())));
    }
}

//! What can be wrong with the command line beyond the form of a single flag.

use std::time::Duration;

use super::controllers::UnknownController;

/// A flag whose value cannot work.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgumentError {
    /// An unknown provider.
    #[error("--cloud-provider={given}: this program supports only {}; set --cloud-provider={}", names.join(" and "), names.join(" or "))]
    CloudProvider {
        /// The name in the flag.
        given: String,
        names: Vec<&'static str>,
    },
    /// No configuration file.
    #[error(
        "--cloud-config is missing: specify the cloud.conf file, for example --cloud-config=/etc/config/cloud.conf"
    )]
    NoConfig,
    #[error(transparent)]
    Controllers(#[from] UnknownController),
    /// Durations that contradict each other.
    #[error(
        "--leader-elect-lease-duration ({lease:?}) must be longer than --leader-elect-renew-deadline ({renew:?}), the renew deadline must \
         be longer than 1.2 times --leader-elect-retry-period ({retry:?}), and all must be above 0"
    )]
    LeaderElection {
        lease: Duration,
        /// Renew deadline.
        renew: Duration,
        /// Retry period.
        retry: Duration,
    },
    /// An empty cluster name.
    #[error(
        "--cluster-name is empty: it is part of the name of every load balancer; give the cluster a name"
    )]
    ClusterName,
    /// A period of zero, which would be a busy loop.
    #[error("--{0}=0: the time between two rounds must be above 0; leave the flag out for the default")]
    NoPeriod(&'static str),
    /// One port for two servers.
    #[error("--webhook-secure-port={0}: --secure-port has the same value; set different ports")]
    WebhookPort(u16),
    /// Unknown or unusable cipher suites.
    #[error(transparent)]
    CipherSuites(#[from] super::tls::CipherSuiteError),
    /// Unknown or unusable key exchanges.
    #[error(transparent)]
    Curves(#[from] super::tls::CurveError),
    /// A class that no Service can have.
    #[error(
        "--load-balancer-class={0:?}: Services name a class as a label key, for example example.com/internal; write \
         it in that form"
    )]
    LoadBalancerClass(String),
}

/// Everything that is wrong with flags, a line each.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ArgumentErrors(pub(super) Vec<ArgumentError>);

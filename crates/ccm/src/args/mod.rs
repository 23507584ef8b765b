//! The command line. Flags keep the names, forms and defaults of upstream cloud-controller-managers, so that the
//! arguments of an existing Deployment work unchanged; each can also be given as an environment variable.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub mod accepted;
pub mod controllers;
pub mod duration;
pub mod feature_gates;

use accepted::AcceptedFlags;
use controllers::ControllerSelection;
use feature_gates::FeatureGates;

/// Kubernetes cloud-controller-manager for OpenStack.
#[derive(Debug, Parser)]
#[command(name = "openstack-ccm", version, about, args_conflicts_with_subcommands = true)]
pub struct CommandLine {
    /// What to do; without a subcommand the controllers run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the controllers.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What to do other than to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read the configuration, report every error and warning, and exit.
    CheckConfig(ConfigArgs),
    /// Show what the program does, on embedded simulators of OpenStack and Kubernetes.
    #[cfg(feature = "demo")]
    Demo(crate::demo::DemoArgs),
}

/// Where the provider's configuration is.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// cloud.conf; may be given several times, later files win.
    #[arg(long = "cloud-config", value_name = "FILE", env = "CLOUD_CONFIG", value_delimiter = ',')]
    pub cloud_config: Vec<PathBuf>,
}

/// Flags of the controllers.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Name of the provider; only `openstack` is served.
    #[arg(long, value_name = "NAME", default_value = "openstack")]
    pub cloud_provider: String,
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Name of the cluster; part of the name of every cloud object.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", default_value = "kubernetes")]
    pub cluster_name: String,
    /// Controllers to run: `*`, `name`, `-name`; aliases such as `service` are understood.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_value = "*")]
    pub controllers: Vec<String>,
    /// Services handled at once.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_service_syncs: u16,
    /// Feature gates as name=true|false; `LoadBalancerIPMode` replaces the detection of the cluster's support.
    #[arg(long, value_name = "GATES", default_value = "")]
    pub feature_gates: FeatureGates,
    /// Kubeconfig file; without it the service account of the pod is used.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Address of the API server, in place of the one in the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
    /// Address of the health and metrics endpoints.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// HTTPS port of the health and metrics endpoints; 0 switches them off.
    #[arg(long, value_name = "PORT", default_value_t = 10258)]
    pub secure_port: u16,
    /// Paths that are served without authorization.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "/healthz,/readyz,/livez")]
    pub authorization_always_allow_paths: Vec<String>,
    /// Certificate of the endpoints (PEM); self-signed in memory without it.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Text in the User-Agent header of OpenStack requests; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Vec<String>,
    /// Leader election.
    #[command(flatten)]
    pub leader_election: LeaderElectionArgs,
    /// Logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
    /// Upstream flags without effect here.
    #[command(flatten)]
    pub accepted: AcceptedFlags,
}

/// Flags of the leader election.
#[derive(Clone, Debug, Args)]
pub struct LeaderElectionArgs {
    /// Wait for the lease before doing anything.
    #[arg(
        long, value_name = "BOOL", default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set
    )]
    pub leader_elect: bool,
    /// How long others wait after the last renewal before they take over.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew before it stops.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between tries.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub leader_elect_retry_period: Duration,
    /// Kind of the lock object; only `leases`.
    #[arg(long, value_name = "KIND", default_value = "leases", value_parser = ["leases"])]
    pub leader_elect_resource_lock: String,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
}

/// Flags of the log output.
#[derive(Clone, Debug, Args)]
pub struct LoggingArgs {
    /// Verbosity: 0 to 3 is info, 4 and 5 debug, 6 and more trace.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: u8,
    /// `text` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub logging_format: String,
}

/// A flag whose value cannot work.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgumentError {
    /// Another provider.
    #[error(
        "--cloud-provider={0}: only \"openstack\" is served by this program; set --cloud-provider=openstack"
    )]
    CloudProvider(String),
    /// No configuration.
    #[error(
        "--cloud-config is missing: name the cloud.conf file, for example --cloud-config=/etc/config/cloud.conf"
    )]
    NoConfig,
    /// Unknown controller.
    #[error(transparent)]
    Controllers(#[from] controllers::UnknownController),
    /// Durations that do not fit.
    #[error(
        "--leader-elect-lease-duration ({lease:?}) must be longer than --leader-elect-renew-deadline ({renew:?}), and \
         that longer than 1.2 times --leader-elect-retry-period ({retry:?}), all above 0"
    )]
    LeaderElection {
        /// Lease duration.
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
}

impl RunArgs {
    /// Checks what a single flag cannot tell.
    ///
    /// # Errors
    /// All problems at once.
    pub fn validate(&self) -> Result<ControllerSelection, Vec<ArgumentError>> {
        let mut errors = Vec::new();
        if self.cloud_provider != "openstack" {
            errors.push(ArgumentError::CloudProvider(self.cloud_provider.clone()));
        }
        if self.config.cloud_config.is_empty() {
            errors.push(ArgumentError::NoConfig);
        }
        if self.cluster_name.is_empty() {
            errors.push(ArgumentError::ClusterName);
        }
        let election = &self.leader_election;
        let (lease, renew, retry) = (
            election.leader_elect_lease_duration,
            election.leader_elect_renew_deadline,
            election.leader_elect_retry_period,
        );
        if election.leader_elect && (retry.is_zero() || renew <= retry.mul_f64(1.2) || lease <= renew) {
            errors.push(ArgumentError::LeaderElection { lease, renew, retry });
        }
        match ControllerSelection::parse(&self.controllers) {
            Ok(selection) if errors.is_empty() => return Ok(selection),
            Ok(_) => {}
            Err(unknown) => errors.extend(unknown.into_iter().map(ArgumentError::from)),
        }
        Err(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> RunArgs {
        let mut all = vec!["openstack-ccm"];
        all.extend(arguments);
        CommandLine::try_parse_from(all).unwrap_or_else(|error| panic!("{error}")).run
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        CommandLine::command().debug_assert();
    }

    #[test]
    fn arguments_of_the_occm_chart_are_accepted() {
        let arguments = parse(&[
            "--v=2",
            "--cloud-config=/etc/config/cloud.conf",
            "--cluster-name=c1",
            "--cloud-provider=openstack",
            "--use-service-account-credentials=false",
            "--controllers=cloud-node,cloud-node-lifecycle,route,service",
            "--bind-address=127.0.0.1",
        ]);
        assert_eq!(arguments.cluster_name, "c1");
        assert_eq!(arguments.logging.verbosity, 2);
        assert_eq!(arguments.accepted.given(), ["use-service-account-credentials"]);
        assert!(arguments.validate().is_ok());
    }

    #[test]
    fn defaults_are_those_of_upstream() {
        let arguments = parse(&["--cloud-config=x"]);
        assert_eq!(arguments.cluster_name, "kubernetes");
        assert_eq!(arguments.secure_port, 10258);
        assert!(arguments.leader_election.leader_elect);
        assert_eq!(arguments.leader_election.leader_elect_lease_duration, Duration::from_secs(15));
        assert_eq!(arguments.leader_election.leader_elect_resource_name, "cloud-controller-manager");
        assert!(arguments.accepted.given().is_empty());
    }

    #[test]
    fn boolean_flags_work_with_and_without_a_value() {
        assert!(!parse(&["--leader-elect=false"]).leader_election.leader_elect);
        assert!(parse(&["--leader-elect"]).leader_election.leader_elect);
        assert_eq!(
            parse(&["--allocate-node-cidrs", "--configure-cloud-routes=false"]).accepted.given().len(),
            2
        );
    }

    #[test]
    fn several_configuration_files_keep_their_order() {
        let arguments = parse(&["--cloud-config=a", "--cloud-config=b"]);
        assert_eq!(arguments.config.cloud_config, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let arguments = parse(&[
            "--cloud-provider=aws",
            "--controllers=foo",
            "--leader-elect-renew-deadline=20s",
            "--cluster-name=",
        ]);
        let errors = arguments.validate().unwrap_err();
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 5, "{text:#?}");
    }

    #[test]
    fn unknown_flags_are_errors() {
        assert!(CommandLine::try_parse_from(["openstack-ccm", "--no-such-flag"]).is_err());
    }
}

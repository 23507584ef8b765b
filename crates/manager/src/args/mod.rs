//! Flags of the controllers, and those that subcommands share. They keep the names, forms and defaults of upstream
//! cloud-controller-managers, so that the arguments of an existing Deployment work unchanged. If a flag is given twice, the last
//! value counts, as with Go's flags; lists add up.
//!
//! Each module uses only modules above it.
//!
//! | module | flags, or forms of their values |
//! | --- | --- |
//! | [`value`], [`duration`] | forms |
//! | [`tls`] | the names that Go has for parts of TLS |
//! | [`feature_gates`] | `--feature-gates` |
//! | [`controllers`] | `--controllers` |
//! | `error` | what is wrong with flags together |
//! | `kubernetes` | the client of the Kubernetes API, and a person's own rights, for subcommands |
//! | `leader_election` | leader election |
//! | `serving`, `authentication` | the HTTPS endpoints, and who may call them |
//! | `controller` | what decides what the controllers do, whether they run or are planned |
//! | [`accepted`] | upstream flags without effect here |

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _};
use openstack_ccm_core::cloud::Entry;

pub mod accepted;
mod authentication;
mod controller;
pub mod controllers;
pub mod duration;
mod error;
pub mod feature_gates;
mod kubernetes;
mod leader_election;
mod serving;
pub mod tls;
pub mod value;

use accepted::AcceptedFlags;
use controllers::ControllerSelection;

pub use authentication::{AuthenticationArgs, AuthorizationArgs};
pub use controller::{
    CanaryPlaceArgs, ClusterCidrError, ControllerArgs, NodeArgs, RouteArgs, ServiceProxyArgs,
};
pub use error::{ArgumentError, ArgumentErrors};
pub use kubernetes::{KubernetesArgs, PersonArgs};
pub use leader_election::{LeaderElectionArgs, LeaseArgs};
pub use serving::{ServingArgs, TlsVersion};

/// Where the provider's configuration is.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// Path of cloud.conf; may be given several times: later files override earlier ones.
    #[arg(long = "cloud-config", value_name = "FILE", env = "CLOUD_CONFIG", value_delimiter = ',')]
    pub cloud_config: Vec<PathBuf>,
}

/// Flags of the log output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingArgs {
    /// Verbosity: 0 to 3 is info, 4 and 5 debug, 6 and more trace.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0, value_parser = value::verbosity)]
    pub verbosity: u8,
    /// `text` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub logging_format: String,
}

/// Flags of the controllers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controllers")]
pub struct RunArgs {
    /// Name of the provider; only `openstack` is served.
    #[arg(long, value_name = "NAME", default_value = "openstack")]
    pub cloud_provider: String,
    /// Text in the User-Agent header of OpenStack requests; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Vec<String>,
    /// Services that are reconciled at the same time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..),
        allow_negative_numbers = true)]
    pub concurrent_service_syncs: u16,
    // The flags of a flattened group take the heading along that its last one has, so those of this group stand first.
    /// What they do.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// Flags of the node controllers.
    #[command(flatten)]
    pub node: NodeArgs,
    /// The client of the Kubernetes API.
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    /// Leader election.
    #[command(flatten)]
    pub leader_election: LeaderElectionArgs,
    /// The HTTPS endpoints.
    #[command(flatten)]
    pub serving: ServingArgs,
    /// Who may call the endpoints.
    #[command(flatten)]
    pub authentication: AuthenticationArgs,
    /// What callers may do.
    #[command(flatten)]
    pub authorization: AuthorizationArgs,
    /// Logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
    /// Upstream flags without effect here.
    #[command(flatten)]
    pub accepted: AcceptedFlags,
}

impl RunArgs {
    /// Parses the flags after the name of the program.
    ///
    /// # Errors
    /// What is wrong with the flags.
    pub fn try_parse(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let command = Self::augment_args(clap::Command::new("openstack-ccm").args_override_self(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Checks what no single flag shows, and chooses one of the providers.
    ///
    /// # Errors
    /// All problems, in one error.
    pub fn validate<'a>(
        &self,
        providers: &'a [Entry],
    ) -> Result<(&'a Entry, ControllerSelection), ArgumentErrors> {
        let mut errors = Vec::new();
        let provider = providers.iter().find(|provider| provider.name == self.cloud_provider);
        if provider.is_none() {
            let names = providers.iter().map(|provider| provider.name).collect();
            errors.push(ArgumentError::CloudProvider { given: self.cloud_provider.clone(), names });
        }
        if self.controller.config.cloud_config.is_empty() {
            errors.push(ArgumentError::NoConfig);
        }
        match (self.selection(), provider) {
            (Ok(selection), Some(provider)) if errors.is_empty() => return Ok((provider, selection)),
            (Ok(_), _) => {}
            (Err(more), _) => errors.extend(more.0),
        }
        Err(ArgumentErrors(errors))
    }

    /// Checks the flags that no provider reads, and returns the controllers.
    ///
    /// # Errors
    /// All problems, in one error.
    pub fn selection(&self) -> Result<ControllerSelection, ArgumentErrors> {
        let mut errors = Vec::new();
        if self.controller.cluster_name.is_empty() {
            errors.push(ArgumentError::ClusterName);
        }
        errors.extend(self.periods());
        errors.extend(self.leader_election.problems());
        let webhook_port = self.accepted.value("webhook-secure-port").and_then(|port| port.parse().ok());
        if self.serving.secure_port != 0 && webhook_port == Some(self.serving.secure_port) {
            errors.push(ArgumentError::WebhookPort(self.serving.secure_port));
        }
        errors.extend(tls::cipher_suites(&self.serving.tls_cipher_suites).err().map(Into::into));
        errors.extend(tls::key_exchanges(&self.serving.tls_curve_preferences).err().map(Into::into));
        // The API server takes no other class, so that no Service would ever be served.
        let class = self.controller.load_balancer_class.as_deref();
        if let Some(class) = class.filter(|class| class.is_empty() || class.contains(char::is_whitespace)) {
            errors.push(ArgumentError::LoadBalancerClass(class.to_owned()));
        }
        match ControllerSelection::parse(&self.controller.controllers) {
            Ok(selection) if errors.is_empty() => return Ok(selection),
            Ok(_) => {}
            Err(unknown) => errors.extend(unknown.into_iter().map(ArgumentError::from)),
        }
        Err(ArgumentErrors(errors))
    }

    /// Returns an error for each period of zero, which would be a busy loop.
    fn periods(&self) -> impl Iterator<Item = ArgumentError> {
        let periods = [
            ("node-status-update-frequency", self.node.node_status_update_frequency),
            ("node-monitor-period", self.node.node_monitor_period),
            ("route-reconciliation-period", self.controller.route.route_reconciliation_period),
        ];
        let zero = periods.into_iter().filter(|(_, period)| period.is_zero());
        zero.map(|(name, _)| ArgumentError::NoPeriod(name))
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_provider_openstack::cloud::ENTRY;

    use super::*;

    fn parse(arguments: &[&str]) -> RunArgs {
        let mut all = vec!["openstack-ccm"];
        all.extend(arguments);
        RunArgs::try_parse(all).unwrap_or_else(|error| panic!("{error}"))
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
        assert_eq!(arguments.controller.cluster_name, "c1");
        assert_eq!(arguments.logging.verbosity, 2);
        assert_eq!(arguments.accepted.unfulfilled().count(), 0, "what is asked for is what is done");
        assert!(arguments.validate(&[ENTRY]).is_ok());
    }

    #[test]
    fn boolean_flags_work_with_and_without_a_value() {
        assert!(!parse(&["--leader-elect=false"]).leader_election.leader_elect);
        assert!(parse(&["--leader-elect"]).leader_election.leader_elect);
        assert!(!parse(&["--configure-cloud-routes=false"]).controller.route.configure_cloud_routes);
        assert_eq!(parse(&["--allocate-node-cidrs"]).accepted.unfulfilled().count(), 1);
    }

    #[test]
    fn several_configuration_files_keep_their_order() {
        let arguments = parse(&["--cloud-config=a", "--cloud-config=b"]);
        assert_eq!(arguments.controller.config.cloud_config, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let arguments = parse(&[
            "--cloud-provider=aws",
            "--controllers=foo",
            "--leader-elect-renew-deadline=20s",
            "--cluster-name=",
            "--node-monitor-period=0",
            "--load-balancer-class=",
        ]);
        let errors = arguments.validate(&[ENTRY]).unwrap_err().to_string();
        assert_eq!(errors.lines().count(), 7, "{errors}");
    }

    #[test]
    fn empty_paths_are_as_good_as_none() {
        let arguments = parse(&["--kubeconfig=", "--cert-dir=", "--authentication-kubeconfig="]);
        assert_eq!(value::given(arguments.kubernetes.kubeconfig.as_ref()), None);
    }

    #[test]
    fn the_last_of_two_values_counts_and_lists_add_up() {
        let arguments =
            parse(&["--v=2", "--v=4", "--user-agent=a", "--user-agent=b", "--feature-gates=AllAlpha=true"]);
        assert_eq!((arguments.logging.verbosity, arguments.user_agent.len()), (4, 2));
    }

    #[test]
    fn unknown_flags_are_errors() {
        assert!(RunArgs::try_parse(["openstack-ccm", "--no-such-flag"]).is_err());
    }
}

//! Flags of `doctor`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::code::Severity;
use openstack_ccm_doctor::rules::{Format, Target};

use crate::args::{ControllerArgs, LeaseArgs, PersonArgs, duration};
use crate::subcommands::plan::args::service_key;

/// Flags of the subcommand.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct DoctorArgs {
    /// Something else than to look at Services.
    #[command(subcommand)]
    pub(super) role: Option<DoctorRole>,
    /// Flags of the look.
    #[command(flatten)]
    pub(super) look: WalkArgs,
}

/// What `doctor` does other than to look at Services.
#[derive(Clone, Debug, Subcommand)]
pub enum DoctorRole {
    /// Show from a dump of a node's rules what the node does with packets to an address; needs no cluster.
    Rules(RulesArgs),
    /// Dial, and write what came of it as JSON: what a pod of --live does.
    #[command(hide = true)]
    Dial(DialArgs),
}

impl DoctorArgs {
    /// Whether this runs in a pod.
    pub(crate) fn is_in_a_pod(&self) -> bool {
        matches!(self.role, Some(DoctorRole::Dial(_)))
    }
}

/// Flags of the look at Services.
#[derive(Clone, Debug, Args)]
pub struct WalkArgs {
    /// The Services.
    #[arg(value_name = "NAMESPACE/SERVICE", value_parser = service_key,
        required_unless_present_any = ["all", "leftovers", "print_rbac"])]
    pub(super) services: Vec<ServiceKey>,
    /// All Services of type LoadBalancer.
    #[arg(short = 'A', long, conflicts_with = "services")]
    pub(super) all: bool,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = DoctorOutput::Table)]
    pub(super) output: DoctorOutput,
    /// Exit with code 1 if something this severe, or worse, is found.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    pub(super) fail_on: FailOn,
    /// Leave out the cloud: works on clusters of any cloud.
    #[arg(long)]
    pub(super) no_cloud: bool,
    /// Also look for workarounds that were left in the cluster.
    #[arg(long)]
    pub(super) leftovers: bool,
    /// Also connect from every node: creates a namespace with one short-lived pod on each node, and removes it.
    #[arg(long)]
    pub(super) live: bool,
    /// Do not ask before --live creates pods.
    #[arg(long, requires = "live")]
    pub(super) yes: bool,
    /// Image of openstack-ccm for --live that the nodes can pull; by default the one that runs in kube-system.
    #[arg(long, value_name = "IMAGE", requires = "live")]
    pub(super) image: Option<String>,
    /// Longest wait for the pods of --live.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub(super) live_timeout: Duration,
    /// Print the ClusterRole that doctor needs, and do nothing else.
    #[arg(long)]
    pub(super) print_rbac: bool,
    /// What the controllers run with.
    #[command(flatten, next_help_heading = "As given to the controllers")]
    pub(super) controller: ControllerArgs,
    /// The Lease.
    #[command(flatten)]
    pub(super) lease: LeaseArgs,
    /// The cluster.
    #[command(flatten)]
    pub(super) person: PersonArgs,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DoctorOutput {
    /// All hops, for people.
    Table,
    /// Problems only.
    Short,
    /// For programs.
    Json,
    /// The paths of packets as a Mermaid diagram.
    Mermaid,
}

/// From which severity on the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Warnings too.
    Warning,
    /// Errors only.
    Error,
}

impl FailOn {
    pub(super) fn severity(self) -> Severity {
        match self {
            Self::Warning => Severity::Warning,
            Self::Error => Severity::Error,
        }
    }
}

/// Flags of `doctor rules`.
#[derive(Clone, Debug, Args)]
pub struct RulesArgs {
    /// Destination of the packets.
    #[arg(long, value_name = "IP:PORT[/udp]")]
    pub(super) address: Target,
    /// What made the dump; by default this is detected from its content.
    #[arg(long, value_enum)]
    pub(super) mode: Option<RulesMode>,
    /// The path needs the load balancer (PROXY protocol, TLS, headers): a short circuit is an error.
    #[arg(long)]
    pub(super) needs_load_balancer: bool,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = RulesOutput::Table)]
    pub(super) output: RulesOutput,
    /// Output of `iptables-save`, `nft -j list ruleset`, `ipvsadm -Sn` or `cilium-dbg service list`; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// Output format of `doctor rules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RulesOutput {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// What made a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RulesMode {
    /// `iptables-save`
    Iptables,
    /// `nft -j list ruleset`
    Nftables,
    /// `ipvsadm -Sn`
    Ipvs,
    /// `cilium-dbg service list`
    Cilium,
}

impl From<RulesMode> for Format {
    fn from(mode: RulesMode) -> Self {
        match mode {
            RulesMode::Iptables => Self::Iptables,
            RulesMode::Nftables => Self::Nftables,
            RulesMode::Ipvs => Self::Ipvs,
            RulesMode::Cilium => Self::Cilium,
        }
    }
}

/// Flags of a pod that dials.
#[derive(Clone, Debug, Args)]
pub struct DialArgs {
    /// What to dial, each as `HOST:PORT` or `[IPv6]:PORT`, and what to speak: `203.0.113.10:443=tls`.
    #[arg(value_name = "HOST:PORT=SPEECH", required = true)]
    pub(super) to: Vec<String>,
    /// Addresses of the node, which show from where a connection was made.
    #[arg(long, value_name = "IP,...", value_delimiter = ',')]
    pub(super) node_ips: Vec<IpAddr>,
    /// Longest wait for each.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration::parse)]
    pub(super) dial_timeout: Duration,
}

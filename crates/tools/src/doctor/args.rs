//! Flags of `doctor`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use openstack_ccm_doctor::output::FailOn;
use openstack_ccm_doctor::rules::{Format, Target};
use openstack_ccm_manager::args::{ControllerArgs, LeaseArgs, PersonArgs, duration};
use openstack_ccm_manager::dial::DialArgs;

use crate::as_leader::Typed;
use crate::plan::args::{ServiceName, TargetArgs};
use crate::plan::rehearsal::Chosen;

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
    pub fn is_in_a_pod(&self) -> bool {
        matches!(self.role, Some(DoctorRole::Dial(_)))
    }
}

/// Flags of the look at Services.
#[derive(Clone, Debug, Args)]
pub struct WalkArgs {
    /// Which of the flags below were typed.
    #[command(flatten)]
    pub(super) typed: Typed,
    /// Services to look at: NAMESPACE/SERVICE, or, as with kubectl, SERVICE or svc/SERVICE in the namespace of -n or of the kubeconfig;
    /// by default all of that namespace.
    #[arg(value_name = "SERVICE", value_parser = ServiceName::parse)]
    pub(super) services: Vec<ServiceName>,
    /// Namespace of the Services; without names, all Services in this namespace.
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub(super) namespace: Option<String>,
    /// All Services of type LoadBalancer, in all namespaces.
    #[arg(short = 'A', long, visible_alias = "all-namespaces", conflicts_with_all = ["services", "namespace"])]
    pub(super) all: bool,
    /// A client outside: say whether the source ranges let it in.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) from: Option<IpAddr>,
    /// Longest wait for an answer of the cloud.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub(super) timeout: Duration,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = DoctorOutput::Table)]
    pub(super) output: DoctorOutput,
    /// What the exit code shows besides errors.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = FailOn::Error)]
    pub(super) fail_on: FailOn,
    /// Read cloud.conf from the Secret that the leader's pod mounts; it stays in memory.
    #[arg(long, conflicts_with_all = ["cloud_config", "no_cloud"])]
    pub(super) from_cluster: bool,
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

impl WalkArgs {
    /// The Services to look at; none where only what is left over is asked for.
    ///
    /// # Errors
    /// Two namespaces for one Service.
    pub(super) fn chosen(&self, default_namespace: &str) -> anyhow::Result<Option<Chosen>> {
        let Self { services, namespace, all, leftovers, .. } = self;
        if *all {
            return Ok(Some(Chosen::All));
        }
        if services.is_empty() && namespace.is_none() {
            return Ok((!leftovers).then(|| Chosen::In(default_namespace.to_owned())));
        }
        let target = TargetArgs { services: services.clone(), namespace: namespace.clone(), all: false };
        target.chosen(default_namespace).map(Some)
    }

    /// The namespaces of the Services to look at; none where that is all of them.
    ///
    /// # Errors
    /// Two namespaces for one Service.
    pub(super) fn namespaces(&self, default_namespace: &str) -> anyhow::Result<BTreeSet<String>> {
        Ok(match self.chosen(default_namespace)? {
            Some(Chosen::In(namespace)) => [namespace].into(),
            Some(Chosen::Named(names)) => names.iter().map(|name| name.namespace.to_string()).collect(),
            Some(Chosen::All) | None => BTreeSet::new(),
        })
    }
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
    /// The same as YAML.
    Yaml,
    /// The paths of packets as a Mermaid diagram.
    Mermaid,
}

/// Flags of `doctor rules`.
#[derive(Clone, Debug, Args)]
pub struct RulesArgs {
    /// Destination of the packets.
    #[arg(long, value_name = "IP:PORT[/udp]")]
    pub(super) address: Target,
    /// What made the dump; by default this is detected from its content.
    #[arg(long, value_enum)]
    pub(super) mode: Option<Format>,
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
    /// The same as YAML.
    Yaml,
}

//! Flags of `orphans`.

use std::time::Duration;

use clap::ValueEnum;
use openstack_ccm_manager::args::{ConfigArgs, LeaseArgs, PersonArgs, duration};

use crate::as_leader::Typed;
use openstack_ccm_core::cloud::DEFAULT_CLUSTER_NAME;

/// How orphans are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrphansOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
    /// The ids of those that may be deleted, one per line.
    Ids,
}

/// `--older-than` where nothing is said.
pub(super) const DEFAULT_AGE: &str = "10m";

/// Flags of `orphans`.
#[derive(Clone, Debug, clap::Args)]
pub struct OrphansArgs {
    /// Which of the flags below were typed.
    #[command(flatten)]
    pub typed: Typed,
    /// Also list objects with the names that OCCM gives them for this cluster; such names are not unique.
    #[arg(long)]
    pub occm_names: bool,
    /// List only objects at least this old; younger ones may still be under construction.
    #[arg(long, value_name = "DURATION", default_value = DEFAULT_AGE, value_parser = duration::parse)]
    pub older_than: Duration,
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = OrphansOutput::Text)]
    pub output: OrphansOutput,
    /// Delete the object with this id; may be given several times. Each object is checked again right before its deletion.
    #[arg(long, value_name = "ID", num_args = 1.., requires = "yes")]
    pub delete: Vec<String>,
    /// Confirm the deletion of what --delete names.
    #[arg(long)]
    pub yes: bool,
    /// Look for what is left of a cluster that no longer exists: the uid that its namespace kube-system had. All of its objects count as
    /// orphans.
    #[arg(long, value_name = "UID")]
    pub cluster_uid: Option<String>,
    /// Name of the cluster, for --occm-names.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", default_value = DEFAULT_CLUSTER_NAME)]
    pub cluster_name: String,
    /// Read cloud.conf from the Secret that the leader's pod mounts; it stays in memory.
    #[arg(long, conflicts_with_all = ["cloud_config", "cluster_uid"])]
    pub from_cluster: bool,
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The Lease of the leader, whose --cluster-name counts where none is typed.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

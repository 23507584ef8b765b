//! Flags of the leader election.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ArgumentError, duration, value};

/// Flags of the leader election.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderElectionArgs {
    /// Wait for the lease before doing anything.
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = value::boolean)]
    pub leader_elect: bool,
    /// How long others wait after the last renewal before they take over.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew before it stops leading.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between tries.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub leader_elect_retry_period: Duration,
    /// Kind of the lock object; only `leases`.
    #[arg(long, value_name = "KIND", default_value = "leases", value_parser = ["leases"])]
    pub leader_elect_resource_lock: String,
    /// The Lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Without effect: leader migration was for in-tree cloud providers, which Kubernetes 1.26 removed. On an older one the program ends.
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = value::boolean)]
    pub enable_leader_migration: bool,
    /// Without effect, as --enable-leader-migration.
    #[arg(long, value_name = "FILE", value_parser = value::path)]
    pub leader_migration_config: Option<PathBuf>,
}

/// Which Lease is meant.
#[derive(Clone, Debug, Args)]
pub struct LeaseArgs {
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
}

impl LeaderElectionArgs {
    /// Returns what is wrong with the flags.
    pub(super) fn problems(&self) -> Vec<ArgumentError> {
        let (lease, renew, retry) = (
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        );
        let mut problems = Vec::new();
        if self.leader_elect && (retry.is_zero() || renew <= retry.mul_f64(1.2) || lease <= renew) {
            problems.push(ArgumentError::LeaderElection { lease, renew, retry });
        }
        problems
    }
}

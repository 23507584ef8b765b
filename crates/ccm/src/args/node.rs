//! Flags of the node controllers.

use std::time::Duration;

use clap::Args;

use super::duration;

/// Flags of the node controller and the node lifecycle controller.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Node controllers")]
pub struct NodeArgs {
    /// New nodes that are initialised at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..),
        allow_negative_numbers = true)]
    pub concurrent_node_syncs: u16,
    /// Nodes whose addresses are written at once; 0 is the number of --concurrent-node-syncs.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub concurrent_node_status_updates: u16,
    /// Time between two checks of the addresses and labels of all nodes.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub node_status_update_frequency: Duration,
    /// Time between two checks of nodes that are not ready.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub node_monitor_period: Duration,
}

impl NodeArgs {
    /// Nodes whose addresses are written at once, at least 1.
    pub fn status_updates(&self) -> u16 {
        match self.concurrent_node_status_updates {
            0 => self.concurrent_node_syncs,
            given => given,
        }
    }
}

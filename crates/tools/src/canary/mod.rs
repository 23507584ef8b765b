//! `openstack-ccm canary`: measures whether the service proxy of each node honours `ipMode: Proxy`.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `once` | one measurement from a laptop: makes a canary, waits for its verdicts, and cleans up |
//! | `rows` | the row of each node, and the exit code |

pub mod args;
mod once;
mod rows;

use std::process::ExitCode;

use args::CanaryArgs;
pub(crate) use once::{POLL_INTERVAL, excuse, image_in_use};

/// Runs the command that the flags ask for.
///
/// # Errors
/// The command failed.
pub async fn run(arguments: CanaryArgs) -> anyhow::Result<ExitCode> {
    match arguments.role {
        None => anyhow::ensure!(arguments.once, "--once is missing"),
        Some(role) => return role.play().await.map(|()| ExitCode::SUCCESS),
    }
    once::look(&arguments.flags).await
}

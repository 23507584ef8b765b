//! `openstack-ccm canary`: whether the service proxy of each node honours `ipMode: Proxy`, measured.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `once` | the same from a laptop: makes a canary, waits for its verdicts, and cleans up |
//! | `rows` | what is said of each node, and the exit code |

pub mod args;
mod once;
mod rows;

use std::process::ExitCode;

use args::CanaryArgs;
pub(crate) use once::{POLL_INTERVAL, excuse, image_in_use};

/// Does what the flags say.
///
/// # Errors
/// It could not be done.
pub async fn run(arguments: CanaryArgs) -> anyhow::Result<ExitCode> {
    match arguments.role {
        None => anyhow::ensure!(arguments.once, "--once is missing"),
        Some(role) => return role.play().await.map(|()| ExitCode::SUCCESS),
    }
    once::look(&arguments.flags).await
}

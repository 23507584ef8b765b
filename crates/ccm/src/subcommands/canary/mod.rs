//! `openstack-ccm canary`: whether the service proxy of each node honours `ipMode: Proxy`, measured.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `look` | the two roles in the pods of the canary |
//! | `once` | the same from a laptop: makes a canary, waits for its verdicts, and cleans up |
//! | `rows` | what is said of each node, and the exit code |

pub mod args;
mod look;
mod once;
mod rows;

use std::process::ExitCode;

use args::{CanaryArgs, Role};

impl Role {
    /// Does it until a signal ends it.
    ///
    /// # Errors
    /// The ports cannot be served.
    pub(crate) async fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Look(arguments) => look::look(arguments).await,
            Self::Idle => look::idle().await,
        }
    }
}

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

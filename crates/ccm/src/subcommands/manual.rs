//! The manual page and the completion of shells, from the definitions of the command line.

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use super::output::print;

/// Writes the completion for a shell to standard output.
pub(crate) fn completion(command: &mut Command, shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "openstack-ccm", &mut script);
    print(String::from_utf8_lossy(&script))
}

/// Writes the manual page to standard output.
pub(crate) fn page(command: Command) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).context("the manual page cannot be made")?;
    print(String::from_utf8_lossy(&page))
}

//! The configuration at start, and the subcommand that only checks it.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use openstack_ccm_provider_openstack::config::{self, Loaded, ProcessEnvironment};

/// Reads the configuration and logs its warnings.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn load(files: &[PathBuf]) -> Result<Loaded, config::ConfigErrors> {
    let loaded = config::load(files, &ProcessEnvironment);
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    loaded
}

/// Reads the configuration and writes what it found to standard output.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn report(files: &[PathBuf]) -> anyhow::Result<()> {
    let loaded = config::load(files, &ProcessEnvironment);
    let mut output = std::io::stdout().lock();
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        writeln!(output, "warning: {warning}").context("standard output is closed")?;
    }
    let loaded = loaded?;
    writeln!(output, "the cloud configuration is valid, with {} warning(s)", loaded.warnings.len())
        .context("standard output is closed")
}

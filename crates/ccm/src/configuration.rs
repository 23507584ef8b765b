//! Reading cloud.conf.

use std::path::PathBuf;

use openstack_ccm_provider_openstack::config::{self, Loaded, ProcessEnvironment};

/// Reads the configuration and logs its warnings.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub(crate) fn load(files: &[PathBuf]) -> Result<Loaded, config::ConfigErrors> {
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

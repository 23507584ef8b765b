//! Faults inside Octavia: rules that its drivers read at each call to an amphora or to compute.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::Folders;

/// The file of rules. Dropping the value removes all rules.
pub(crate) struct Faults {
    file: PathBuf,
}

impl Faults {
    /// Puts rules in place; see `local_amphora/state.py` for their form.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn inject(folders: &Folders, rules: &[Value]) -> Result<Self> {
        let file = folders.state.join("state/octavia/faults.json");
        let fresh = file.with_extension("fresh");
        std::fs::write(&fresh, json!(rules).to_string())?;
        std::fs::rename(&fresh, &file)?;
        Ok(Self { file })
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        // The drivers may be about to read it: an absent file is no rule.
        std::fs::remove_file(&self.file).ok();
    }
}

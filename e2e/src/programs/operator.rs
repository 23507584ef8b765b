//! Somebody who installs the program: a shell with Helm, kubectl and the program, in a clone of this repository.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use crate::artifacts::node::Image;
use crate::artifacts::{Artifacts, source};
use crate::machine::world::in_namespace;
use crate::network::{NODES, NodePlace};

/// The machine at which the operator sits: it reaches both the API server and load balancers.
const SEAT: NodePlace = NODES[0];

/// The shell.
pub(crate) struct Operator {
    folder: PathBuf,
    kubeconfig: PathBuf,
    authorities: PathBuf,
}

impl Operator {
    /// Makes the folder in which commands are typed.
    ///
    /// # Errors
    /// It cannot be filled.
    pub(crate) fn prepare(
        folder: &Path,
        artifacts: &Artifacts,
        image: &Image,
        kubeconfig: PathBuf,
        authorities: PathBuf,
    ) -> Result<Self> {
        let programs = folder.join("bin");
        std::fs::create_dir_all(&programs)?;
        for (name, program) in [
            ("helm", artifacts.helm()?),
            ("kubectl", artifacts.kubectl()?),
            ("openstack-ccm", image.program()),
        ] {
            symlink(program, programs.join(name))?;
        }
        symlink(source("../charts"), folder.join("charts"))?;
        Ok(Self { folder: folder.to_owned(), kubeconfig, authorities })
    }

    /// Saves a file beside the clone.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn saves(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.folder.join(name), text)?)
    }

    /// Types commands, of which none may fail, and returns what they print.
    ///
    /// # Errors
    /// One fails.
    pub(crate) fn types(&self, commands: &str) -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = in_namespace(&SEAT.name(), "bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(&self.folder);
        shell.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        shell.env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.folder);
        // The operator's machine trusts the authority of the cloud too.
        shell.env("SSL_CERT_FILE", &self.authorities);
        let output = shell.stdin(Stdio::null()).output().context("bash cannot be started")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} ({}): {error}{text}", commands.trim(), output.status);
        Ok(text)
    }
}

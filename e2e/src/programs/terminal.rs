//! Somebody at a terminal who asks the program: with a kubeconfig and a cloud.conf of their own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    pub program: PathBuf,
    /// `--kubeconfig`
    pub kubeconfig: PathBuf,
    /// `--cloud-config`
    pub cloud_config: PathBuf,
}

/// What the program answered.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub text: String,
    /// Standard error.
    pub error: String,
}

impl Terminal {
    /// Types a subcommand with its arguments.
    pub(crate) fn types(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--cloud-config={}", self.cloud_config.display()))
            .stdin(Stdio::null());
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        Ok(Said {
            code: output.status.code().context("the program was killed")?,
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

impl Said {
    /// The output of a program that ended with one of these codes.
    pub(crate) fn with_code(self, codes: &[i32]) -> Result<String> {
        let Self { code, text, error } = self;
        ensure!(codes.contains(&code), "exit code {code}: {text}{error}");
        Ok(text)
    }

    /// The same as JSON.
    pub(crate) fn json(self, codes: &[i32]) -> Result<Value> {
        let text = self.with_code(codes)?;
        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))
    }
}

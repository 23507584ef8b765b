//! `openstack-ccm check-config`: whether the configuration works.
//!
//! | module | checks |
//! | --- | --- |
//! | `args` | nothing: the flags |
//! | `values` | values that every Service would be refused for |
//! | `services` | all Services of a cluster (`--services`) |
//! | `online` | that the cloud has what the configuration names (`--online`) |

pub mod args;
mod online;
mod services;
mod values;

use std::fmt::Display;

use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::{self, ProcessEnvironment};

use crate::args::controllers::ControllerSelection;
use crate::subcommands::output::print_line;
use args::CheckConfigArgs;

/// Checks what the flags ask for and writes what it found to standard output.
///
/// # Errors
/// Something is wrong, or could not be looked at.
pub async fn run(arguments: &CheckConfigArgs) -> anyhow::Result<()> {
    let loaded = config::load(&arguments.config.cloud_config, &ProcessEnvironment);
    let mut findings = Findings::default();
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        findings.warning("", warning)?;
    }
    let provider = OpenStackProvider::from(loaded?);
    values::check(provider.config(), &mut findings)?;
    findings.conclude("the cloud configuration")?;
    if arguments.online {
        let mut online = Findings::default();
        let selection = ControllerSelection::parse(&arguments.controllers);
        let selection = selection.map_err(|unknown| {
            let all: Vec<String> = unknown.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(all.join("; "))
        })?;
        online::check(&provider, &selection, &mut online).await?;
        online.conclude("what the cloud has")?;
        findings.add(&online);
    }
    if arguments.services {
        let mut services = Findings::default();
        let client = arguments.person.client().await?;
        let class = arguments.load_balancer_class.as_deref();
        let count = services::check(client, class, provider.config(), &mut services).await?;
        services.conclude(&format!("{count} Service(s) of type LoadBalancer"))?;
        findings.add(&services);
    }
    findings.result()
}

/// What a check found, written line by line as it is found, and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Findings {
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Something that does not work; `subject` says whose it is, and is empty for the configuration itself.
    fn error(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.errors += 1;
        say(subject, "error", text)
    }

    /// Something that works and is most likely not what was meant.
    fn warning(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.warnings += 1;
        say(subject, "warning", text)
    }

    /// Counts what another check found.
    fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.warnings += other.warnings;
    }

    /// Says in one line how a check went.
    fn conclude(&self, what: &str) -> anyhow::Result<()> {
        let Self { errors, warnings } = self;
        let verdict = if *errors == 0 { "valid" } else { "not valid" };
        print_line(format_args!("{what}: {verdict}, {errors} error(s), {warnings} warning(s)"))
    }

    /// The result of the whole.
    fn result(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.errors == 0, "{} error(s) found, listed above", self.errors);
        Ok(())
    }
}

fn say(subject: &str, kind: &str, text: impl Display) -> anyhow::Result<()> {
    // What a Service says may hold line breaks; a finding is one line.
    let text = text.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    if subject.is_empty() {
        print_line(format_args!("{kind}: {text}"))
    } else {
        print_line(format_args!("{subject}: {kind}: {text}"))
    }
}

//! `openstack-ccm check-config`: checks whether the configuration works.
//!
//! | module | checks |
//! | --- | --- |
//! | `args` | nothing: the flags |
//! | `values` | values for which every Service would be refused |
//! | `services` | all Services of a cluster (`--services`) |
//! | `online` | whether the cloud has the resources that the configuration names (`--online`) |
//! | `parts` | which optional parts of its API the cloud has (`--online`) |

pub mod args;
mod online;
mod parts;
mod services;
mod values;

use std::fmt::Display;
use std::process::ExitCode;

use openstack_ccm_manager::args::controllers::ControllerSelection;
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::{self, ProcessEnvironment};
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::{Form, plural, print, print_line};
use args::CheckConfigArgs;

/// Makes the checks that the flags ask for and writes the findings to standard output.
///
/// # Errors
/// A check has an error, or could not be made.
pub async fn run(arguments: &CheckConfigArgs) -> anyhow::Result<ExitCode> {
    let as_json = arguments.output != Form::Text;
    let mut sections = vec![Section::new("cloud.conf", as_json)];
    let result = check(arguments, &mut sections).await;
    if as_json {
        print(arguments.output.document(&object(&sections, result.as_ref().err()))?)?;
    }
    match result {
        Err(error) if !as_json => Err(error),
        Err(_) => Ok(ExitCode::FAILURE),
        Ok(()) if sections.iter().any(|section| section.count(CheckSeverity::Error) > 0) => {
            Ok(ExitCode::FAILURE)
        }
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

async fn check(arguments: &CheckConfigArgs, sections: &mut Vec<Section>) -> anyhow::Result<()> {
    let as_json = arguments.output != Form::Text;
    let loaded = config::load(&arguments.config.cloud_config, &ProcessEnvironment);
    let configuration = &mut sections[0];
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        configuration.warning("", warning)?;
    }
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(errors) => {
            for error in &errors.errors {
                configuration.error("", error)?;
            }
            values::check(&errors.config, configuration)?;
            return configuration.conclude();
        }
    };
    let provider = OpenStackProvider::from(loaded);
    values::check(provider.config(), configuration)?;
    configuration.conclude()?;
    if arguments.online {
        let mut online = Section::new("OpenStack", as_json);
        online.lists_writes = arguments.verbose;
        let result = match selection(&arguments.controllers) {
            Ok(selection) => online::check(&provider, &arguments.person, &selection, &mut online).await,
            Err(error) => Err(error),
        };
        if result.is_ok() {
            online.conclude()?;
        }
        sections.push(online);
        result?;
    }
    if arguments.services {
        let mut services = Section::new("Services", as_json);
        let client = arguments.person.client().await?;
        let class = arguments.load_balancer_class.as_deref();
        let count = services::check(client, class, provider.config(), &mut services).await?;
        services.name = format!("{} of type LoadBalancer", plural(count, "Service"));
        services.conclude()?;
        sections.push(services);
    }
    Ok(())
}

fn selection(controllers: &[String]) -> anyhow::Result<ControllerSelection> {
    ControllerSelection::parse(controllers).map_err(|unknown| {
        let all: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(all.join("; "))
    })
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckSeverity {
    /// Checked, and right.
    Ok,
    /// The value works, but is most likely a mistake.
    Warning,
    /// It does not work.
    Error,
    /// The check would change the cloud, so it was not made.
    NotTried,
}

/// A finding about one value or resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CheckFinding {
    severity: CheckSeverity,
    /// The Service with the value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    message: String,
}

/// The findings of one check, written line by line as they are found, unless the output is JSON.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    as_json: bool,
    /// Whether what was not tried is listed, and not only counted.
    lists_writes: bool,
    findings: Vec<CheckFinding>,
}

impl Section {
    fn new(name: &str, as_json: bool) -> Self {
        Self { name: name.to_owned(), as_json, lists_writes: false, findings: Vec::new() }
    }

    /// Reports something that is right.
    fn ok(&mut self, text: impl Display) -> anyhow::Result<()> {
        self.say("", CheckSeverity::Ok, text)
    }

    /// Reports something that only a change of the cloud would show.
    fn not_tried(&mut self, text: impl Display) -> anyhow::Result<()> {
        self.say("", CheckSeverity::NotTried, text)
    }

    /// Reports something that does not work; `subject` is the Service, or empty for the configuration itself.
    fn error(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.say(subject, CheckSeverity::Error, text)
    }

    /// Reports something that works, but is most likely a mistake.
    fn warning(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.say(subject, CheckSeverity::Warning, text)
    }

    fn say(&mut self, subject: &str, severity: CheckSeverity, text: impl Display) -> anyhow::Result<()> {
        // Values of a Service may contain line breaks; a finding is one line.
        let message = text.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let kind = match severity {
            CheckSeverity::Ok => "ok",
            CheckSeverity::Warning => "warning",
            CheckSeverity::Error => "error",
            CheckSeverity::NotTried => "not tried",
        };
        let silent = self.as_json || (severity == CheckSeverity::NotTried && !self.lists_writes);
        match (silent, subject) {
            (true, _) => {}
            (false, "") => print_line(format_args!("{kind}: {message}"))?,
            (false, _) => print_line(format_args!("{subject}: {kind}: {message}"))?,
        }
        let service = (!subject.is_empty()).then(|| subject.to_owned());
        self.findings.push(CheckFinding { severity, service, message });
        Ok(())
    }

    fn count(&self, severity: CheckSeverity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn conclude(&self) -> anyhow::Result<()> {
        if self.as_json {
            return Ok(());
        }
        let untried = self.count(CheckSeverity::NotTried);
        if untried > 0 && !self.lists_writes {
            print_line(format_args!("not tried: {} (--verbose lists them)", plural(untried, "write")))?;
        }
        print_line(self.summary())
    }

    /// `cloud.conf is valid`, `OpenStack: 1 error, 2 warnings`
    fn summary(&self) -> String {
        let (errors, warnings) = (self.count(CheckSeverity::Error), self.count(CheckSeverity::Warning));
        let checked = self.count(CheckSeverity::Ok);
        let mut counts = Vec::new();
        counts.extend((errors > 0).then(|| plural(errors, "error")));
        counts.extend((warnings > 0).then(|| plural(warnings, "warning")));
        counts.extend((checked > 0).then(|| format!("{} passed", plural(checked, "check"))));
        match (errors, warnings, checked) {
            (0, 0, 0) if self.name == "cloud.conf" => "cloud.conf is valid".to_owned(),
            (0, _, 0) if self.name == "cloud.conf" => {
                format!("cloud.conf is valid, with {}", counts.join(", "))
            }
            (0, 0, 0) => format!("{}: no errors", self.name),
            _ => format!("{}: {}", self.name, counts.join(", ")),
        }
    }
}

/// Returns the findings for programs; `failure` is the error that ended the check early.
fn object(sections: &[Section], failure: Option<&anyhow::Error>) -> Value {
    let total = |severity| sections.iter().map(|section| section.count(severity)).sum::<usize>();
    let all: Vec<_> =
        sections.iter().map(|section| json!({"name": section.name, "findings": section.findings})).collect();
    json!({
        "version": 1,
        "valid": failure.is_none() && total(CheckSeverity::Error) == 0,
        "errors": total(CheckSeverity::Error),
        "warnings": total(CheckSeverity::Warning),
        "sections": all,
        "failure": failure.map(said_once),
    })
}

//! The program `ip-mode-overlay`: sets `ipMode: Proxy` beside the controller that a cluster already has. It is the same file as
//! `openstack-ccm`, under another name or as its subcommand `overlay`, and has its own flags, help and texts: its users run
//! another cloud.
//!
//! Its controller is in [`openstack_ccm_manager::overlay`].

pub mod args;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_manager::overlay::{self, AGENT};
use openstack_ccm_overlay::check::check;
use openstack_ccm_overlay::cleanup::cleanup;
use openstack_ccm_overlay::names::PROGRAM;
use openstack_ccm_overlay::policy;
use tokio::time::Instant;

use crate::help::{self, EXIT_FOUND};
use crate::output::{Form, is_closed_pipe, plural, print, print_line};
use args::{CheckArgs, CleanupArgs, OverlayCommand, OverlayCommandLine, PolicyArgs};

/// Advice on a change that statuses do not show.
const LEFT: &str = r#"What an admission policy set is not undone here. Delete the policy, then, for each Service:
  kubectl patch service NAME --subresource=status --type=json --patch='[{"op":"replace","path":"/status/loadBalancer/ingress/0/ipMode","value":"VIP"}]'"#;
/// Interval between two checks for statuses still to be reverted.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// Returns whether the file is called by the name of the overlay.
pub fn is_called(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|path| Path::new(path).file_name());
    name.is_some_and(|name| name == PROGRAM)
}

/// Parses the command line of the overlay.
///
/// # Errors
/// The error of the command line, or the help or version that it asks for.
pub fn parse(arguments: &[OsString]) -> Result<OverlayCommand, clap::Error> {
    help::parse::<OverlayCommandLine>(arguments).map(|line| line.command)
}

/// Runs the parsed command.
pub async fn run(command: OverlayCommand) -> ExitCode {
    let result = match command {
        OverlayCommand::Policy(arguments) => print_policy(&arguments),
        OverlayCommand::Run(arguments) => overlay::run(arguments).await.map(|()| ExitCode::SUCCESS),
        OverlayCommand::Check(arguments) => report(&arguments).await,
        OverlayCommand::Cleanup(arguments) => give_back(&arguments).await,
        OverlayCommand::Canary { role } => role.play().await.map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| failed(&error, ExitCode::FAILURE))
}

fn failed(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    if is_closed_pipe(error) {
        return code;
    }
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "{PROGRAM}: {}", said_once(error));
    code
}

fn print_policy(arguments: &PolicyArgs) -> anyhow::Result<ExitCode> {
    let version = arguments.api.into();
    print(policy::yaml(&arguments.rules.rules()?, version))?;
    Ok(ExitCode::SUCCESS)
}

async fn report(arguments: &CheckArgs) -> anyhow::Result<ExitCode> {
    let client = arguments.person.client_of(AGENT).await?;
    let report = check(&client, &arguments.rules.options()?).await;
    let report =
        report.map_err(|error| anyhow::anyhow!("the cluster cannot be read: {}", error.message()))?;
    match arguments.output {
        Form::Text => print(&report)?,
        form => print(form.document(&report.json())?)?,
    }
    Ok(if report.is_green() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

async fn give_back(arguments: &CleanupArgs) -> anyhow::Result<ExitCode> {
    let client = arguments.person.client_of(AGENT).await?;
    let mut quiet_since = Instant::now();
    let mut given_back = 0;
    loop {
        let done = cleanup(&client, arguments.hostname_suffix.as_deref()).await;
        let done =
            done.map_err(|error| anyhow::anyhow!("the services cannot be listed: {}", error.message()))?;
        for service in &done.given_back {
            print_line(format_args!("{service}: ipMode VIP again"))?;
        }
        given_back += done.given_back.len();
        if !done.given_back.is_empty() {
            quiet_since = Instant::now();
        }
        if quiet_since.elapsed() >= arguments.settle {
            for (service, cause) in &done.failed {
                let _ = failed(&anyhow::anyhow!("{service}: {cause}"), ExitCode::FAILURE);
            }
            print_line(format_args!(
                "{} restored, {} failed",
                plural(given_back, "Service"),
                done.failed.len()
            ))?;
            if given_back == 0 && done.failed.is_empty() {
                print_line(LEFT)?;
            }
            return Ok(if done.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::time::sleep(LOOK_INTERVAL.min(arguments.settle)).await;
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        OverlayCommandLine::command().debug_assert();
    }

    #[test]
    fn the_name_of_the_file_chooses_the_program() {
        assert!(is_called(&words(&["/bin/ip-mode-overlay", "run"])));
        assert!(!is_called(&words(&["/bin/openstack-ccm", "overlay", "run"])));
        assert!(parse(&words(&["ip-mode-overlay", "policy", "--cloud=linode,vultr"])).is_ok());
    }

    /// The users of the overlay run another cloud.
    #[test]
    fn no_help_speaks_of_openstack() {
        fn look(command: &mut clap::Command) {
            let text = command.render_long_help().to_string();
            assert!(!text.to_lowercase().contains("openstack"), "{text}");
            command.get_subcommands_mut().for_each(look);
        }
        look(&mut OverlayCommandLine::command());
    }
}

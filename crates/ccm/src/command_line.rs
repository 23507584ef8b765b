//! The command line: the subcommands, and the flags of the controllers, which run where no subcommand is given.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::PossibleValue;
use clap::{Command, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
#[cfg(feature = "demo")]
use openstack_ccm_demo::args::DemoArgs;
use openstack_ccm_manager::args::RunArgs;
use openstack_ccm_manager::version::version;
use openstack_ccm_tools::canary::args::CanaryArgs;
use openstack_ccm_tools::check_config::args::CheckConfigArgs;
use openstack_ccm_tools::doctor::args::DoctorArgs;
use openstack_ccm_tools::hand_back::args::HandBackArgs;
use openstack_ccm_tools::orphans::args::OrphansArgs;
use openstack_ccm_tools::output::{Form, print_as_it_is, print_line};
use openstack_ccm_tools::overlay::args::OverlayCommand;
use openstack_ccm_tools::plan::args::{AdoptArgs, PlanArgs};
use openstack_ccm_tools::status::args::StatusArgs;
use openstack_ccm_tools::{
    canary, check_config, complete, doctor, hand_back, help, orphans, overlay, plan, status,
};

/// Kubernetes cloud-controller-manager for OpenStack.
#[derive(Debug, Parser)]
#[command(
    name = "openstack-ccm",
    version = version(),
    about,
    args_conflicts_with_subcommands = true,
    args_override_self = true
)]
pub struct CommandLine {
    /// What to do; without a subcommand the controllers run.
    #[command(subcommand)]
    pub command: Option<Action>,
    /// Flags of the controllers.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What to do other than to run.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Check cloud.conf; with --online also the cloud, with --services also the Services of a cluster.
    CheckConfig(CheckConfigArgs),
    /// Measure on each node whether its service proxy honours ipMode: Proxy.
    Canary(Box<CanaryArgs>),
    /// Follow a packet to a load balancer, hop by hop, and say where it ends and how to fix it.
    Doctor(Box<DoctorArgs>),
    /// Show the leader with its version and controllers, and how the cluster's load balancers are published.
    Status(StatusArgs),
    /// Show what the controllers would do to Services and their load balancers, without doing it.
    Plan(PlanArgs),
    /// Show what the controllers would do to a cluster that OCCM serves now, without doing it.
    Adopt(AdoptArgs),
    /// Show what OCCM will do to each Service when it takes over again; with --apply, write the status that it will write.
    HandBack(HandBackArgs),
    /// List what deleted Services left behind in the cloud, and delete it by id.
    Orphans(OrphansArgs),
    /// Print a script that completes commands and flags in a shell: `source <(openstack-ccm completion bash)`; or that completes the
    /// plugin for kubectl, with names of Services.
    Completion {
        /// The shell, or kubectl.
        #[arg(value_name = "SHELL")]
        of: Completed,
    },
    /// Complete the last of these words, as kubectl asks a plugin to do.
    #[command(name = "__complete", hide = true)]
    Complete {
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// Print a manual page in roff: `openstack-ccm man plan | man -l -`.
    Man {
        /// Subcommand to describe; by default the program as a whole.
        #[arg(value_name = "SUBCOMMAND")]
        subcommand: Vec<String>,
    },
    /// Print the version, as --version does.
    Version {
        /// Output format.
        #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
        output: Form,
    },
    /// Set ipMode: Proxy beside another cloud's controller; also a program of its own, ip-mode-overlay.
    #[command(subcommand)]
    Overlay(OverlayCommand),
    /// Show what the program does, on built-in simulators of OpenStack and Kubernetes.
    #[cfg(feature = "demo")]
    Demo(DemoArgs),
}

impl Action {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// The subcommand failed.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let done = |()| ExitCode::SUCCESS;
        match self {
            Self::Canary(arguments) => canary::run(*arguments).await,
            Self::CheckConfig(arguments) => check_config::run(&arguments).await,
            Self::Doctor(arguments) => doctor::run(*arguments).await,
            Self::Plan(arguments) => plan::plan(&arguments).await,
            Self::Adopt(arguments) => plan::adopt(&arguments).await,
            Self::HandBack(arguments) => hand_back::run(&arguments).await,
            Self::Orphans(arguments) => orphans::run(&arguments).await,
            Self::Completion { of } => completion(of).map(done),
            Self::Complete { words } => {
                complete::run(&help::command::<CommandLine>(), &words).await.map(done)
            }
            Self::Man { subcommand } => manual_page(&subcommand).and_then(print_as_it_is).map(done),
            Self::Version { output: Form::Text } => {
                print_line(format_args!("openstack-ccm {}", version())).map(done)
            }
            Self::Version { output } => {
                print_as_it_is(output.document(&BTreeMap::from([("version", version())]))?).map(done)
            }
            Self::Status(arguments) => status::run(&arguments).await.map(done),
            Self::Overlay(command) => Ok(overlay::run(command).await),
            #[cfg(feature = "demo")]
            Self::Demo(arguments) => openstack_ccm_demo::run(arguments).await.map(done),
        }
    }
}

/// What a completion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    Shell(Shell),
    /// kubectl runs a program beside the plugin, `kubectl_complete-openstack_ccm`.
    Kubectl,
}

impl ValueEnum for Completed {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Shell(Shell::Bash),
            Self::Shell(Shell::Elvish),
            Self::Shell(Shell::Fish),
            Self::Shell(Shell::PowerShell),
            Self::Shell(Shell::Zsh),
            Self::Kubectl,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Shell(shell) => shell.to_possible_value(),
            Self::Kubectl => Some(PossibleValue::new("kubectl")),
        }
    }
}

/// Writes a completion script to standard output.
fn completion(of: Completed) -> anyhow::Result<()> {
    let Completed::Shell(shell) = of else { return print_as_it_is(complete::SCRIPT) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command::<CommandLine>(), "openstack-ccm", &mut script);
    print_as_it_is(String::from_utf8_lossy(&script))
}

/// Returns the manual page of the program, or of the subcommand with these names.
fn manual_page(names: &[String]) -> anyhow::Result<String> {
    let mut program = help::command::<CommandLine>();
    program.build();
    let command = names.iter().try_fold(&program, |command: &Command, name| {
        let others = || command.get_subcommands().map(Command::get_name).collect::<Vec<_>>().join(", ");
        let found = command.find_subcommand(name);
        found.with_context(|| format!("there is no subcommand {name}; there are: {}", others()))
    })?;
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).context("the manual page cannot be made")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        help::command::<CommandLine>().debug_assert();
    }

    fn each_below(command: &Command, names: &[String], visit: &mut dyn FnMut(&[String])) {
        for below in command.get_subcommands() {
            let names = [names, &[below.get_name().to_owned()]].concat();
            visit(&names);
            each_below(below, &names, visit);
        }
    }

    #[test]
    fn who_writes_json_writes_yaml() {
        let mut program = help::command::<CommandLine>();
        program.build();
        let mut writers = Vec::new();
        each_below(&program, &[], &mut |names| {
            let mut below = program.clone();
            for name in names {
                below = below.find_subcommand(name).unwrap().clone();
            }
            let output = below.get_arguments().find(|argument| argument.get_id() == "output");
            let forms = output.map(clap::Arg::get_possible_values).unwrap_or_default();
            let has = |name: &str| forms.iter().any(|form| form.matches(name, false));
            if has("json") {
                assert!(has("yaml"), "{names:?}");
                writers.push(names.join(" "));
            }
        });
        assert!(writers.len() > 9, "{writers:?}");
    }

    #[test]
    fn every_subcommand_has_a_manual_page() {
        let mut program = help::command::<CommandLine>();
        program.build();
        let mut count = 0;
        each_below(&program, &[], &mut |names| {
            let page = manual_page(names).unwrap();
            let title = format!(".TH openstack-ccm-{} 1", names.join("-"));
            assert!(page.contains(&title), "{names:?}: {page}");
            count += 1;
        });
        assert!(count > 20, "{count}");
        assert!(manual_page(&["nonsense".to_owned()]).unwrap_err().to_string().contains("doctor, "));
    }
}

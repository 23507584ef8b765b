//! The one binary: its command line, its runtime and its exit codes. The controllers are in `openstack-ccm-manager`, the commands
//! for users in `openstack-ccm-tools`; the tests of whole programs are here, since they need both.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use openstack_ccm_core::cloud::Entry;
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_manager::{logging, run};
use openstack_ccm_tools::help;
use openstack_ccm_tools::output::is_closed_pipe;
use openstack_ccm_tools::overlay::{self, args::OverlayCommand};
use tokio::runtime::{Builder, Runtime};

use command_line::{Action, CommandLine};

pub mod command_line;

/// Tasks mostly wait for answers: two threads do all the work. A thread for each core of a large machine would only cost memory,
/// for its stack and for what the allocator keeps for each thread.
const WORKER_THREADS: usize = 2;

/// Runs the command that the arguments name; the first argument is the name of the program. The controllers run with one of the
/// providers; the subcommands that use a cloud support OpenStack only.
pub fn main(arguments: &[OsString], providers: &[Entry]) -> ExitCode {
    if overlay::is_called(arguments) {
        return match overlay::parse(arguments) {
            Ok(command) => {
                in_runtime(is_on_each_node(&command), |runtime| runtime.block_on(overlay::run(command)))
            }
            Err(error) => refused(&error, arguments),
        };
    }
    match help::parse(arguments) {
        Ok(command_line) => start(command_line, providers),
        Err(error) => refused(&error, arguments),
    }
}

/// Runs `work` on a runtime: with a single thread for a command that runs on each node of a cluster.
fn in_runtime(is_on_each_node: bool, work: impl FnOnce(&Runtime) -> ExitCode) -> ExitCode {
    // With two crypto providers in the process the default would be ambiguous; this line installs one before any use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKER_THREADS);
    if is_on_each_node {
        builder = Builder::new_current_thread();
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&anyhow::Error::new(error).context("the runtime cannot be started"), false);
        }
    };
    let code = work(&runtime);
    // Tasks that hang in a system call must not delay the end of the process.
    runtime.shutdown_background();
    code
}

/// Prints the error of the command line, or the help or version that it asks for.
fn refused(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if error.use_stderr() && asks_for_json(arguments) {
        let text = error.to_string();
        let text = text.trim().strip_prefix("error: ").unwrap_or(&text);
        return failed(&anyhow::Error::msg(text.to_owned()), true);
    }
    // Standard output may be closed; the exit code remains.
    let _ = error.print();
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns whether a command line that cannot be parsed asks for JSON logs.
fn asks_for_json(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    words.clone().any(|word| word == "--logging-format=json")
        || words.any(|word| word == "--logging-format") && arguments.iter().any(|word| word == "json")
}

/// Runs the parsed command line.
pub fn start(command_line: CommandLine, providers: &[Entry]) -> ExitCode {
    let as_json = command_line.run.logging.logging_format == "json";
    let is_on_each_node = match &command_line.command {
        Some(Action::Canary(arguments)) => arguments.is_in_a_pod(),
        Some(Action::Doctor(arguments)) => arguments.is_in_a_pod(),
        Some(Action::Overlay(command)) => is_on_each_node(command),
        _ => false,
    };
    in_runtime(is_on_each_node, |runtime| {
        let result = match command_line.command {
            Some(command) => runtime.block_on(command.run()),
            None => run::start(runtime, command_line.run, providers).map(|()| ExitCode::SUCCESS),
        };
        result.unwrap_or_else(|error| failed(&error, as_json))
    })
}

fn is_on_each_node(command: &OverlayCommand) -> bool {
    matches!(command, OverlayCommand::Canary { .. })
}

/// The exit code that shells report for a program that SIGPIPE ended.
const SIGPIPE_EXIT_CODE: u8 = 141;

fn failed(error: &anyhow::Error, as_json: bool) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(SIGPIPE_EXIT_CODE);
    }
    let error = said_once(error);
    let record = if as_json { logging::json::fatal(&error) } else { format!("openstack-ccm: {error}") };
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "{record}");
    ExitCode::FAILURE
}

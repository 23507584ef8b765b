//! The cloud-controller-manager as a library: command line, wiring and endpoints. The binary is a thin shell around
//! it, and tests run the whole program in process.
//!
//! | module | holds |
//! | --- | --- |
//! | [`args`] | the command line |
//! | [`run`] | start, leader election, stop |
//! | [`program`] | what a leader runs: the controllers over the provider |
//! | `wiring` | each controller over its part of the provider |
//! | [`admin`], [`health`] | the endpoints for probes and scrapers |
//! | [`check_config`] | reading the configuration, and the subcommand that only does that |
//! | [`leadership`], [`leader_migration`] | the lease, and a second one for controllers that move |
//! | [`kubernetes`] | clients of the Kubernetes API |
//! | [`call_metrics`], [`process_metrics`] | metrics that no controller has |
//! | [`reference`] | generated pages of the documentation |
//! | [`logging`] | records to standard error |
//! | `traces` | spans to a collector (cargo feature `otlp`) |
//! | `demo` | the demonstration on embedded simulators (cargo feature `demo`) |

use std::io::Write as _;
use std::process::ExitCode;

use args::{Command, CommandLine, RunArgs};
use tokio::runtime::{Builder, Runtime};

pub mod admin;
pub mod args;
pub mod backoff;
pub mod call_metrics;
pub mod check_config;
#[cfg(feature = "demo")]
pub mod demo;
pub mod health;
pub mod kubernetes;
pub mod leader_migration;
pub mod leadership;
pub mod logging;
pub mod process_metrics;
pub mod program;
pub mod reference;
pub mod run;
#[cfg(feature = "otlp")]
pub mod traces;
mod wiring;

/// The work is waiting for answers: two threads do all of it. One for each core of a large machine would only cost memory,
/// for stacks and for what the allocator keeps for each thread.
const THREADS: usize = 2;

/// Does what the command line says.
pub fn start(command_line: CommandLine) -> ExitCode {
    // Two providers in one process would be ambiguous; this one is chosen before anybody asks.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match Builder::new_multi_thread().worker_threads(THREADS).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("the runtime cannot be started")),
    };
    let result = match command_line.command {
        Some(Command::CheckConfig(arguments)) => check_config::report(&arguments.cloud_config),
        #[cfg(feature = "demo")]
        Some(Command::Demo(arguments)) => runtime.block_on(demo::run(arguments)),
        None => run(&runtime, command_line.run),
    };
    // Tasks that hang in a system call must not hold up the end of the process.
    runtime.shutdown_background();
    result.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

#[cfg(feature = "otlp")]
fn run(runtime: &Runtime, arguments: RunArgs) -> anyhow::Result<()> {
    let traces = traces::Traces::from_environment(runtime.handle())?;
    logging::start(&arguments.logging, traces.as_ref().map(traces::Traces::layer));
    let result = runtime.block_on(run::run(arguments));
    traces.into_iter().for_each(traces::Traces::finish);
    result
}

#[cfg(not(feature = "otlp"))]
fn run(runtime: &Runtime, arguments: RunArgs) -> anyhow::Result<()> {
    logging::start(&arguments.logging, None);
    logging::warn_of_traces();
    runtime.block_on(run::run(arguments))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "openstack-ccm: {error:#}");
    ExitCode::FAILURE
}

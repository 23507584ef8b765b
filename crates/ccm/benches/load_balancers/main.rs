//! What the program costs at scale: time, calls, memory, processor and allocations.
//!
//! These measurements, because no single one can show all of it:
//!
//! | module | where | shows |
//! | --- | --- | --- |
//! | `simulated` | program and simulators in one process on a paused clock | time against the cloud's own, and every call |
//! | `phases` | as `simulated`, with an Octavia that cannot do everything at once | what each kind of change costs, and bursts |
//! | `program` | the real binary as a process of its own, the simulators in this one, HTTPS in between | memory and processor of the program alone |
//! | `planned` | the same, of `plan -A` until it has ended | its time and calls |
//! | `pass` | one pass of the provider over a Service that did not change | allocations and time |
//!
//! `overlay` measures the program of that name, beside an owner of load balancers that is played.
//!
//! Each scenario runs in a process of its own, which `cloud` furnishes; `wide` keeps the members of pools where there are millions.
//! `cargo bench --bench load_balancers -- restart` runs the scenarios whose name begins so.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark prints, and what fails it ends it"
)]

#[path = "../../tests/program/calls/table.rs"]
mod calls;
mod cloud;
mod overlay;
mod pass;
mod phases;
mod planned;
mod program;
mod scenarios;
mod simulated;
mod table;
mod tls;
mod wide;

#[path = "../../tests/program/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
mod support;

use std::process::{Command, Stdio};

use scenarios::{Row, SCENARIOS};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [option, name] = arguments.as_slice()
        && option == "--scenario"
    {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        println!("{}", serde_json::to_string(&runtime.block_on(scenarios::run(name))).unwrap());
        return;
    }
    let chosen = SCENARIOS.iter().filter(|scenario| {
        arguments.is_empty() || arguments.iter().any(|name| scenario.name.starts_with(name))
    });
    let mut rows = Vec::new();
    for scenario in chosen {
        // Some take minutes.
        eprintln!("{} …", scenario.title);
        let own_program = std::env::current_exe().unwrap();
        let output = Command::new(own_program)
            .args(["--scenario", scenario.name])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{} failed", scenario.title);
        let row: Row = serde_json::from_slice(&output.stdout).unwrap();
        rows.push((scenario, row));
    }
    print!("{}", table::tables(&rows));
}

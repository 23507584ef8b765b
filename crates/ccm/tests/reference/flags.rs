//! `docs/reference/flags.md`, from the definitions of the command line.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory as _};
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_manager::args::accepted::{FLAGS, Form};
use openstack_ccm_tools::help::TABLE;

use crate::occm;
use crate::page::{GENERATED, cell};
use crate::released;

const INTRODUCTION: &str = "# Flags

`openstack-ccm` without a subcommand runs the controllers. Subcommands, each with `--help`:

| Subcommand | Does |
| --- | --- |
| `check-config` | reports everything that is wrong with cloud.conf; `--online` looks every id up in the cloud, `--services` checks all Services of a cluster |
| `canary --once` | measures on each node whether its service proxy honours `ipMode: Proxy`, and prints a table or JSON; `canary look` and `canary idle` are what the pods of the canary run |
| `doctor` | follows a packet to a load balancer, hop by hop, and says where it ends and how to fix it ([guide](../guides/doctor.md), [findings](findings.md)); `doctor rules` reads a dump of a node's rules |
| `status` | says who leads, with version, controllers and pod, and how the Services are published |
| `overlay` | sets `ipMode: Proxy` beside the controller of another cloud; also the program [`ip-mode-overlay`](../overlay/README.md) |
| `plan` | shows what the controllers would do to Services and their load balancers, without doing it |
| `adopt` | the same for a cluster that OCCM serves now |
| `hand-back` | says what OCCM will do to each Service after a rollback |
| `orphans` | lists what deleted Services left behind in the cloud, and deletes it by id |
| `completion SHELL` | prints the completion for bash, zsh, fish, elvish or PowerShell, or, for `kubectl`, that of the plugin |
| `man [SUBCOMMAND]` | prints a manual page |
| `version` | prints the version, as `--version` does |

Names, forms and defaults are those of upstream cloud-controller-managers, so that the arguments of an existing
Deployment work unchanged. Where the default differs, the last section says why. An unknown flag is an error. Durations
are written as `15s`, `1m30s` or `500ms`, booleans as `true` or `false`. If a flag is given twice, the last value
counts; lists are combined. The column *OCCM* says whether the Go openstack-cloud-controller-manager has a flag, or since
which version.

`--feature-gates` takes any gate as NAME=true or NAME=false, because platforms give one list to all components; OCCM
refuses gates that it does not know. One Warning names those without effect. Only a misspelling of `LoadBalancerIPMode`
is an error. If that gate is in such a list, it switches the detection off; the Warning says so.
";

const DIFFERENCES: &str = "## Where defaults differ from upstream

| Flag | Upstream | Here | Why |
| --- | --- | --- | --- |
| `--cloud-provider` | required | `openstack` | there is no other |
| `--concurrent-service-syncs` | `1` | `16` | creating a load balancer takes a minute; with one worker the last of many would wait for hours |
| `--authentication-kubeconfig`, `--authorization-kubeconfig` | the pod's own account | that of `--kubeconfig`, else the pod's own account | one file is enough outside of a cluster |
| `--profiling` | `true` | not offered | a profiling endpoint does not belong in production |

An instance tries to take the lease every 0.5 to 1 times `--leader-elect-retry-period` (upstream: 1 to 2.2 times), and the
leader releases it on SIGTERM. So the next instance takes over within one period.
";

/// The page.
pub(crate) fn markdown() -> String {
    let mut page = format!("{GENERATED}\n\n{INTRODUCTION}\n## Flags with effect\n\n");
    let (all, asked) = (occm::releases(), occm::asked());
    let sources: Vec<&str> = all.iter().filter(|minor| !asked.contains(minor)).copied().collect();
    let _ = write!(page, "Asked for their flags were OCCM {}", asked.join(", "));
    if !sources.is_empty() {
        let _ = write!(page, "; the sources of {} were read", sources.join(", "));
    }
    page.push_str(".\n\n");
    page.push_str("| Flag | OCCM | Default | Meaning |\n| --- | --- | --- | --- |\n");
    let command = CommandLine::command();
    let mut arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_long().is_some())
        .collect();
    arguments.sort_by_key(|argument| argument.get_long());
    for argument in arguments {
        row(&mut page, argument);
    }
    page.push_str("\n## Flags without effect\n\nThey are accepted, with a warning that gives the reason, unless the value asks for what openstack-ccm does anyway.\n\n");
    page.push_str("| Flag | OCCM | No warning for | Why it has no effect |\n| --- | --- | --- | --- |\n");
    for flag in FLAGS {
        let form = match flag.form {
            Form::Switch => "",
            Form::Value => "=VALUE",
        };
        let fulfilled = match flag.fulfilled {
            None => String::new(),
            Some("") => "an empty value".to_owned(),
            Some(value) => format!("`{value}`"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `--{}{form}` | {} | {fulfilled} | {}{} |",
            flag.name,
            of_occm(flag.name),
            since_of(flag.name),
            cell(flag.reason)
        );
    }
    let _ = write!(page, "\n{DIFFERENCES}");
    page.push_str("\n## Exit codes\n\n0 means that all is well, 1 an error (a wrong command line too), 2 that something was found, 3 that a person is needed, or something is not known. `check-config` and `status` are gates: they end with 1 also where what they look at is not well.\n\n");
    page.push_str("| Subcommand | 0 | 1 | 2 | 3 |\n| --- | --- | --- | --- | --- |\n");
    for help in TABLE.iter().filter(|help| help.codes.iter().any(|code| !code.is_empty())) {
        let [well, error, found, person] = help.codes;
        let _ = writeln!(page, "| `{}` | {well} | {error} | {found} | {person} |", help.name);
    }
    page
}

/// Which versions of OCCM have a flag: `yes`, `1.33`, `no`.
fn of_occm(flag: &str) -> String {
    occm::column("flags", flag).unwrap_or_else(|| "no".to_owned())
}

fn since_of(flag: &str) -> String {
    released::since(&format!("--{flag}"))
}

fn row(page: &mut String, argument: &Arg) {
    let name = argument.get_long().unwrap_or_default();
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let value = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .and_then(|names| names.first())
        .map(|name| format!("={name}"))
        .unwrap_or_default();
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let environment = argument.get_env().map(|name| format!(" (environment: `{}`)", name.to_string_lossy()));
    let _ = writeln!(
        page,
        "| {short}`--{name}{value}` | {} | {} | {}{}{} |",
        of_occm(name),
        cell(&defaults.join(",")),
        since_of(name),
        cell(&help),
        environment.unwrap_or_default(),
    );
}

//! The text of `--help` and the manual pages beyond flags: examples, and the exit codes, which mean the same for all subcommands.

use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

/// The exit code for a finding: a problem, or something that would be changed.
pub const EXIT_FOUND: u8 = 2;
/// The exit code when a user has to act or decide.
pub const EXIT_NEEDS_A_PERSON: u8 = 3;

/// Examples of a subcommand, and the meaning of its exit codes.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// The name of the subcommand; a space separates it from a subcommand below it.
    pub name: &'static str,
    /// Command lines, without the program.
    pub examples: &'static [&'static str],
    /// The meaning of 0, 1, 2 and 3; empty where a code does not occur.
    pub codes: [&'static str; 4],
}

const ERROR: &str =
    "an error: the command line or the configuration is wrong, or something could not be read or written";

const fn help(name: &'static str, examples: &'static [&'static str], codes: [&'static str; 4]) -> Help {
    Help { name, examples, codes }
}

/// The help of all subcommands.
pub const TABLE: &[Help] = &[
    help(
        "check-config",
        &[
            "check-config --cloud-config=cloud.conf",
            "check-config --cloud-config=cloud.conf --online --services",
        ],
        ["no errors; there may be warnings", "there are errors, or the check could not be made", "", ""],
    ),
    help(
        "canary",
        &["canary --once", "canary --once --image=registry.example.org/openstack-ccm:0.2.0 -o json"],
        ["all nodes honour ipMode", "some nodes could not be measured", "some nodes ignore ipMode", ""],
    ),
    help(
        "doctor",
        &[
            "doctor shop/web --cloud-config=cloud.conf --cluster-name=NAME",
            "doctor -n shop svc/web --cloud-config=cloud.conf --cluster-name=NAME --from=198.51.100.7",
            "doctor -A --no-cloud --output=short",
            "doctor --leftovers",
        ],
        [
            "no fault was found, or packets arrived; what was not seen is named",
            "an error: the command line is wrong, or the cluster cannot be read",
            "something at or above --fail-on was found",
            "no error, but packets may end, or something is not known, invalid or does not exist, or it is not seen whether an application \
             reads the header that it gets",
        ],
    ),
    help(
        "doctor rules",
        &["doctor rules --address 203.0.113.10:443 rules.txt"],
        [
            "the rules do what they should",
            "an error: the command line is wrong, or the file cannot be read as rules of a service proxy",
            "a rule breaks the path",
            "nothing was found, but the rules of the service proxy are missing",
        ],
    ),
    help(
        "status",
        &["status", "status -o json"],
        ["there is a leader", "there is no leader, or an error", "", ""],
    ),
    help(
        "plan",
        &[
            "plan --cloud-config=cloud.conf --cluster-name=NAME",
            "plan --cloud-config=cloud.conf --cluster-name=NAME -n shop web",
            "plan --cloud-config=cloud.conf --cluster-name=NAME shop/web --as-if loadbalancer.openstack.org/proxy-protocol=v2",
        ],
        [
            "nothing would be done",
            "an error, or something could not be planned",
            "something would be done",
            "something is refused, a setting keeps its old value, or a question has to be answered",
        ],
    ),
    help(
        "adopt",
        &["adopt --cloud-config=cloud.conf --cluster-name=NAME"],
        [
            "nothing would be done",
            "an error, or something could not be planned",
            "something would be done",
            "something is refused, a setting keeps its old value, or a question has to be answered",
        ],
    ),
    help(
        "hand-back",
        &[
            "hand-back --cloud-config=cloud.conf --cluster-name=NAME",
            "hand-back --cloud-config=cloud.conf --cluster-name=NAME --apply",
        ],
        ["OCCM will change nothing", ERROR, "OCCM will change something", "something will fail with OCCM"],
    ),
    help(
        "orphans",
        &[
            "orphans --cloud-config=cloud.conf",
            "orphans --cloud-config=cloud.conf --occm-names --cluster-name=NAME",
            "orphans --cloud-config=cloud.conf --delete ID --yes",
        ],
        ["there are no orphans, or everything named was deleted", ERROR, "there are orphans", ""],
    ),
    help(
        "completion",
        &[
            "completion bash > /etc/bash_completion.d/openstack-ccm",
            "completion kubectl > /usr/local/bin/kubectl_complete-openstack_ccm",
        ],
        ["", "", "", ""],
    ),
    help(
        "demo",
        &["demo", "demo --keep"],
        ["everything went as expected", "an error, or something did not", "", ""],
    ),
    help("man", &["man | man -l -", "man plan | man -l -", "man overlay check | man -l -"], ["", "", "", ""]),
    help("overlay policy", &["overlay policy --cloud=digitalocean > policy.yaml"], ["", "", "", ""]),
    help("overlay run", &["overlay run --hostname-suffix=lb.example.org"], ["", "", "", ""]),
    help(
        "overlay check",
        &["overlay check"],
        [
            "pods reach all selected Services through their load balancer",
            "the cluster cannot be read",
            "pods do not reach all of them, or an annotation is invalid",
            "",
        ],
    ),
    help(
        "overlay cleanup",
        &["overlay cleanup"],
        ["all changes are undone", "a change could not be undone", "", ""],
    ),
];

impl Help {
    /// Returns the text below the flags.
    fn text(&self, program: &str) -> String {
        let mut text = String::from("Examples:\n");
        for example in self.examples {
            text.push_str(&format!("  {program} {example}\n"));
        }
        if self.codes.iter().any(|code| !code.is_empty()) {
            text.push_str("\nExit codes:\n");
        }
        for (code, meaning) in self.codes.iter().enumerate().filter(|(_, meaning)| !meaning.is_empty()) {
            text.push_str(&format!("  {code}  {meaning}\n"));
        }
        text.trim_end().to_owned()
    }
}

/// Returns the definition of a command line, with examples and exit codes.
pub fn command<T: CommandFactory>() -> Command {
    let command = T::command();
    let program = command.get_name().to_owned();
    TABLE.iter().fold(command, |command, help| {
        let (below, name) =
            help.name.split_once(' ').map_or((None, help.name), |(one, other)| (Some(one), other));
        let explain = |command: Command| {
            let command = command.after_help(help.text(&program));
            if DIAGNOSES.contains(&help.name) { command.mut_args(ordered) } else { command }
        };
        match below {
            // The overlay is also a separate program.
            Some(parent) if program != "openstack-ccm" => {
                let text =
                    help.text(&program).replace(&format!("{program} {parent} "), &format!("{program} "));
                below_if_there(command, name, |command| command.after_help(text))
            }
            Some(parent) => below_if_there(command, parent, |command| below_if_there(command, name, explain)),
            None if program == "openstack-ccm" => below_if_there(command, name, explain),
            None => command,
        }
    })
}

/// Commands that share flags with the controllers.
const DIAGNOSES: [&str; 5] = ["doctor", "status", "plan", "adopt", "orphans"];
/// What says which cluster and which cloud are meant.
const WHERE: [&str; 7] = [
    "cloud_config",
    "from_cluster",
    "cluster_name",
    "load_balancer_class",
    "kubeconfig",
    "context",
    "request_timeout",
];
/// Flags that have to be typed where the controllers were given other values than usual.
const RARE: [&str; 10] = [
    "controllers",
    "feature_gates",
    "configure_cloud_routes",
    "cluster_cidr",
    "route_reconciliation_period",
    "canary_namespace",
    "canary_addresses",
    "kube_proxy_metrics_port",
    "leader_elect_resource_name",
    "leader_elect_resource_namespace",
];

/// Puts first in the help what most need.
fn ordered(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        id if WHERE.contains(&id) => argument.help_heading("Cluster and cloud"),
        id if RARE.contains(&id) => {
            argument.help_heading("Rarely needed: what else the controllers were given")
        }
        _ => argument,
    }
}

fn below_if_there(command: Command, name: &str, change: impl FnOnce(Command) -> Command) -> Command {
    if command.find_subcommand(name).is_some() { command.mut_subcommand(name, change) } else { command }
}

/// Parses a command line.
///
/// # Errors
/// The error of the command line, or the help or version that it asks for.
pub fn parse<T: CommandFactory + FromArgMatches>(
    arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<T, clap::Error> {
    let matches: ArgMatches = command::<T>().try_get_matches_from(arguments)?;
    T::from_arg_matches(&matches)
}

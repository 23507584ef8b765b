//! Help for people at a terminal.

use clap::CommandFactory as _;
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_tools::help::{TABLE, parse};
use rstest::rstest;

use crate::process::Process;
use crate::stage::Stage;

#[test]
fn every_entry_is_of_a_subcommand_that_exists_and_every_example_can_be_read() {
    let command = CommandLine::command();
    for help in TABLE {
        let mut names = help.name.split(' ');
        let found = names.try_fold(&command, |command, name| command.find_subcommand(name));
        assert!(found.is_some(), "{}", help.name);
        for example in help.examples {
            let words = example.split(['>', '|']).next().unwrap_or_default().split_whitespace();
            let words = std::iter::once("openstack-ccm").chain(words);
            let error = parse::<CommandLine>(words).err();
            assert!(error.is_none(), "{example}: {error:?}");
        }
    }
}

async fn output(arguments: &[&str]) -> String {
    let stage = Stage::new().await;
    let (status, output) = Process::run(&stage, arguments);
    assert!(status.success(), "{output}");
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_are_grouped_by_what_they_are_about() {
    let help = output(&["--help"]).await;
    let mut places = Vec::new();
    for (group, flag) in [
        ("Controllers:", "--cluster-name"),
        ("Route controller:", "--cluster-cidr"),
        ("Node controllers:", "--node-monitor-period"),
        ("Kubernetes API:", "--kube-api-qps"),
        ("Leader election:", "--leader-elect-lease-duration"),
        ("Secure serving:", "--tls-cert-file"),
        ("Authentication:", "--authentication-kubeconfig"),
        ("Authorization:", "--authorization-always-allow-paths"),
        ("Logging:", "--logging-format"),
    ] {
        let place = help.find(&format!("\n{group}\n")).unwrap_or_else(|| panic!("{group} in {help}"));
        let members = &help[place + group.len() + 2..];
        let end =
            members.find("\n\n").map_or(members.len(), |_| members.find(":\n").unwrap_or(members.len()));
        assert!(members[..end].contains(flag), "{flag} in {group}: {help}");
        places.push(place);
    }
    assert!(places.is_sorted(), "{help}");
}

#[rstest]
#[case::bash("bash", "complete ")]
#[case::zsh("zsh", "#compdef openstack-ccm")]
#[case::fish("fish", "complete -c openstack-ccm")]
#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_commands_and_flags(#[case] shell: &str, #[case] form: &str) {
    let script = output(&["completion", shell]).await;
    for part in [form, "check-config", "leader-elect-lease-duration"] {
        assert!(script.contains(part), "{part} in {script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manual_page_has_all_flags() {
    let page = output(&["man", "plan"]).await;
    for part in [".TH openstack-ccm-plan 1", "as\\-if", "Exit codes:", "Examples:"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let page = output(&["man"]).await;
    for part in [".TH openstack-ccm 1", "leader\\-elect\\-lease\\-duration", "check\\-config"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_command_line_is_an_error_and_nothing_that_was_found() {
    let stage = Stage::new().await;
    for arguments in [
        &["plan", "--no-such-flag"][..],
        &["plan", "-o", "nonsense"],
        &["orphans", "--delete"],
        &["doctor", "--no-such-flag"],
        &["--bad"],
    ] {
        let (status, output) = Process::run(&stage, arguments);
        assert_eq!(status.code(), Some(1), "{arguments:?}: {output}");
    }
    for help in [&["--help"][..], &["plan", "--help"], &["--version"], &["version"]] {
        let (status, output) = Process::run(&stage, help);
        assert_eq!(status.code(), Some(0), "{help:?}: {output}");
    }
    let (_, output) = Process::run(&stage, &["plan", "--help"]);
    assert!(
        output.contains("Examples:\n  openstack-ccm plan ") && output.contains("\nExit codes:\n  0  "),
        "{output}"
    );
}

#[rstest]
#[case::plan(&["plan"])]
#[case::doctor(&["doctor"])]
#[case::orphans(&["orphans"])]
#[case::canary(&["canary"])]
#[case::overlay(&["overlay", "check"])]
#[tokio::test(flavor = "multi_thread")]
async fn help_fits_the_terminal_and_ends_with_examples_and_exit_codes(#[case] subcommand: &[&str]) {
    let stage = Stage::new().await;
    for width in [80, 132] {
        let columns = width.to_string();
        let arguments = [subcommand, &["--help"]].concat();
        let (status, output) = Process::run_with(&stage, &[("COLUMNS", &columns)], &arguments);
        assert!(status.success(), "{output}");
        let longest = output.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width && longest > width - 20, "{longest} of {width}: {output}");
        let (_, examples) = output.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{output}"));
        assert!(examples.starts_with(&format!("  openstack-ccm {}", subcommand.join(" "))), "{output}");
        assert!(examples.contains("\n\nExit codes:\n  0  "), "{output}");
    }
}

/// As kubectl: whoever pipes into `head` has seen enough.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_reads_on_is_no_error_to_speak_of() {
    let stage = Stage::new().await;
    let program = env!("CARGO_BIN_EXE_openstack-ccm");
    let script =
        format!("{program} man | true; {program} --help | true; {program} completion bash | head -1");
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    drop(stage);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_not_there_is_named() {
    let stage = Stage::new().await;
    let (status, output) = Process::run_with(&stage, &[("KUBECONFIG", "/nope")], &["status"]);
    assert_eq!(status.code(), Some(1));
    assert!(output.contains("KUBECONFIG points to /nope, which cannot be read"), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");
}

//! Help for people at a terminal.

use rstest::rstest;

use crate::process::Process;
use crate::stage::Stage;

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
        ("Authentication:", "--client-ca-file"),
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
    let page = output(&["man"]).await;
    for part in [".TH openstack-ccm 1", "leader\\-elect\\-lease\\-duration", "check\\-config"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

//! How the whole of many errors looks.

use rstest::rstest;

use crate::environment::Memory;

#[test]
fn all_errors_come_at_once_with_place_and_fix() {
    let environment = Memory::with_cloud_conf(
        "[Global]
auth_url = https://keystone.example.org:5000/v3
username = admin
password = \"secret\\#1\"
tenant-name = k8s
use-clouds = maybe

[LoadBalancer]
monitor-delay = 5
max-shared-lb = many
lb-version = v1

[LoadBalancerClass dmz]
subnet-id = x

[Metadata]
request-timeout = 10 s
",
    );
    insta::assert_snapshot!(environment.load().unwrap_err(), @r#"
    the cloud configuration has 8 errors:
      cloud.conf:2:1: [Global] auth_url: `_` is not allowed in a key; keys hold letters, digits and `-` only, and `=` separates key and value; did you mean `auth-url`?
      cloud.conf:4:19: [Global] password: the quoted value has an unknown escape sequence; inside quotes the only escapes are `\\`, `\"`, `\n` and `\t`; write a backslash as `\\`
      cloud.conf:6:1: [Global] use-clouds = "maybe": the value is not a bool; use `true` or `false` (also `yes`, `on`, `1` and `no`, `off`, `0`)
      cloud.conf:9:1: [LoadBalancer] monitor-delay = "5": the value has no unit; write `5s` for seconds
      cloud.conf:10:1: [LoadBalancer] max-shared-lb = "many": the value is not a whole number; write digits only, such as `3`; hexadecimal numbers start with `0x`
      cloud.conf:11:1: [LoadBalancer] lb-version = "v1": this version is not supported; remove the key, or use `v2`
      cloud.conf:13:1: only a quoted name or `]` may follow the name in a section header; write `[Name]`, or `[Name "sub name"]` with the quotes
      cloud.conf:17:1: [Metadata] request-timeout = "10 s": the value is not a duration; write a number with a unit, such as `5s`, `1m30s` or `500ms`
    "#);
}

#[test]
fn a_long_value_is_cut() {
    let environment = Memory::with_cloud_conf(format!("[LoadBalancer]\nmax-shared-lb={}\n", "9".repeat(500)));
    let message = environment.load().unwrap_err().to_string();
    assert!(message.lines().all(|line| line.len() < 300), "{message}");
}

#[test]
fn an_address_with_a_password_is_not_shown() {
    let environment = Memory::with_cloud_conf("[Global]\nauth-url=ftp://user:hunter2@host/\ntoken=t\n");
    let message = environment.load().unwrap_err().to_string();
    assert!(message.contains("auth-url") && !message.contains("hunter2"), "{message}");
}

/// The words of clouds.yaml and of OpenStack's variables lead to the keys of cloud.conf.
#[rstest]
#[case::project("project-name = a", "called `tenant-name`")]
#[case::with_an_underscore("project_id = a", "did you mean `tenant-id`?")]
#[case::insecure("insecure = true", "called `tls-insecure`")]
#[case::the_annotation_of_the_monitor(
    "[LoadBalancer]\nenable-health-monitor = true",
    "set `create-monitor` in cloud.conf"
)]
#[case::single_quotes("password = 'lab'", "single quotes become part of the value")]
fn words_of_other_tools_are_recognised(#[case] line: &str, #[case] expected: &str) {
    let conf = format!(
        "[Global]\nauth-url=https://k.example.org/v3\nusername=u\nuser-domain-name=d\npassword=p\n{line}\n"
    );
    let (errors, warnings) = match Memory::with_cloud_conf(conf).load() {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(errors) => (errors.errors, errors.warnings),
    };
    let all: Vec<String> = errors.iter().chain(&warnings).map(ToString::to_string).collect();
    assert!(all.iter().any(|text| text.contains(expected)), "{all:#?}");
    assert!(!all.iter().any(|text| text.contains("'lab'")), "{all:#?}");
}

/// Sharing was switched off so with OCCM.
#[test]
fn no_load_balancer_is_shared_with_a_limit_of_none() {
    let conf = "[Global]\nauth-url=https://k.example.org/v3\ntoken=t\n[LoadBalancer]\nmax-shared-lb = 0\n";
    assert_eq!(Memory::with_cloud_conf(conf).load().unwrap().config.load_balancer.max_shared_lb, 0);
}

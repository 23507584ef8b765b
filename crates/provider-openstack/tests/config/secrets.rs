//! No secret in anything that can be printed.

use rstest::rstest;

use crate::environment::Memory;

const SECRET: &str = "hunter2-Xy";

const SECRET_KEYS: [&str; 4] = ["password", "application-credential-secret", "token", "trustee-password"];

#[rstest]
#[case::right("{key} = \"{secret}\"\n")]
#[case::cut("{key} = {secret}#{secret}\n")]
#[case::no_equal_sign("{key} {secret}\n")]
#[case::open_quote("{key} = \"{secret}\n{secret} = {secret}\n")]
#[case::bad_escape("{key} = \"{secret}\\q{secret}\"\n")]
#[case::bare_backslash("{key} = {secret}\\{secret}\n")]
#[case::wrong_key("x{key} = {secret}\n")]
#[case::wrong_character("{key}_x = {secret}\n")]
#[case::colon("{key}: {secret}\n")]
#[case::wrong_section(
    "[Nowhere]\n{key} = {secret}\n[BlockStorage]\n{key} = {secret}\n[Route]\n{key} = {secret}\n"
)]
fn a_secret_of_cloud_conf_is_never_shown(#[case] lines: &str) {
    for key in SECRET_KEYS {
        let lines = lines.replace("{key}", key).replace("{secret}", SECRET);
        let complete = "[Global]\nauth-url=http://k\nuser-id=u\ntenant-id=p\ntrustee-id=t\napplication-credential-id=a\n";
        for base in [complete, "[Global]\n"] {
            let environment = Memory::with_cloud_conf(format!("{base}{lines}"));
            let shown = match environment.load() {
                Ok(loaded) => {
                    let warnings: String = loaded.warnings.iter().map(ToString::to_string).collect();
                    format!("{loaded:?} {loaded:#?} {warnings}")
                }
                Err(errors) => format!("{errors} {errors:?} {errors:#?}"),
            };
            assert!(!shown.contains(SECRET), "{lines}\n{shown}");
        }
    }
}

#[rstest]
#[case::right(
    "clouds:\n  c:\n    auth: {auth_url: 'http://k', user_id: u, project_id: p, password: 'SECRET'}\n"
)]
#[case::wrong_indentation("clouds:\n  c:\n    auth:\n      password: SECRET\n     user_id: u\n")]
#[case::list("clouds:\n  c:\n    auth:\n      password: [SECRET]\n")]
#[case::twice("clouds:\n  c:\n    auth:\n      password: SECRET\n      password: SECRET\n")]
#[case::bool("clouds:\n  c:\n    verify: SECRET\n    auth: {password: SECRET}\n")]
#[case::open_quote("clouds:\n  c:\n    auth:\n      password: \"SECRET\n")]
#[case::tab("clouds:\n\tc:\n\t\tauth: SECRET\n")]
fn a_secret_of_clouds_yaml_is_never_shown(#[case] yaml: &str) {
    let environment = Memory::with_cloud_conf("[Global]\nuse-clouds\nclouds-file=/c.yaml\n")
        .file("/c.yaml", yaml.replace("SECRET", SECRET));
    let shown = match environment.load() {
        Ok(loaded) => format!("{loaded:?} {loaded:#?}"),
        Err(errors) => format!("{errors} {errors:?}"),
    };
    assert!(!shown.contains(SECRET), "{shown}");
}

#[test]
fn a_scanned_file_shows_no_value() {
    let document =
        openstack_ccm_provider_openstack::config::gcfg::scan(format!("[Global]\nx = {SECRET}\n").as_bytes());
    assert!(!format!("{document:?}").contains(SECRET), "{document:?}");
}

//! clouds.yaml: which file, which entry, what it fills.

use openstack_ccm_openstack_api::identity::{Credentials, InterfaceType, Scope};
use openstack_ccm_provider_openstack::config::Loaded;
use rstest::rstest;
use secrecy::ExposeSecret;

use crate::environment::{DIRECTORY, LOGIN, Memory};

const USE_CLOUDS: &str = "[Global]\nuse-clouds=true\n";

/// An entry whose region shows where it comes from.
fn entry(name: &str, region: &str) -> String {
    format!(
        "clouds:\n  {name}:\n    region_name: {region}\n    auth:\n      auth_url: https://k.example.org:5000\n      \
         user_id: u\n      password: p\n      project_id: pr\n"
    )
}

fn region(loaded: &Loaded) -> &str {
    loaded.config.global.region.as_deref().unwrap()
}

/// What cloud.conf says wins; an entry of clouds.yaml fills the rest.
///
/// Contract: X6, same.
#[test]
fn x6_an_entry_fills_what_cloud_conf_leaves_empty() {
    let environment = Memory::with_cloud_conf(
        "[Global]\nuse-clouds=true\nclouds-file=/etc/config/clouds.yaml\ncloud=mycloud\nauth-url=https://mine.example.org\npassword=mine\n",
    )
    .file(
        "/etc/config/clouds.yaml",
        "clouds:
  other: {}
  mycloud:
    region_name: R2
    interface: internal
    verify: false
    cacert: /ca.pem
    auth:
      auth_url: https://theirs.example.org
      username: 007
      password: theirs
      project_name: no
      project_domain_name: Default
      user_domain_id: default
",
    )
    .file("/ca.pem", "");
    let loaded = environment.load().unwrap();
    let (global, options) = (&loaded.config.global, &loaded.auth_options);
    assert_eq!(options.auth_url, "https://mine.example.org");
    assert_eq!(global.password.as_ref().unwrap().expose_secret(), "mine");
    assert_eq!(global.username.as_deref(), Some("007"), "a number stays as it is written");
    assert_eq!(global.tenant_name.as_deref(), Some("no"));
    assert_eq!(global.tenant_domain_name.as_deref(), Some("Default"));
    assert_eq!(global.user_domain_id.as_deref(), Some("default"));
    assert_eq!((options.region.as_deref(), options.interface), (Some("R2"), InterfaceType::Internal));
    assert!(options.tls.insecure);
    assert_eq!(options.tls.ca_file.as_ref().map(|file| file.path.as_path()), Some("/ca.pem".as_ref()));
}

/// Defect: 41, better: clouds.yaml is read only where it was asked for.
#[test]
fn without_use_clouds_the_files_are_not_looked_at() {
    let environment = Memory::with_cloud_conf(format!("{LOGIN}cloud=mycloud\n"))
        .file("/etc/openstack/clouds.yaml", entry("mycloud", "R9"))
        .variable("OS_CLOUD", "mycloud");
    assert_eq!(environment.load().unwrap().config.global.region, None);
}

#[rstest]
#[case::variable(&["/env.yaml", "D/clouds.yaml"], "/env.yaml")]
#[case::working_directory(&["D/clouds.yaml", "/home/u/.config/openstack/clouds.yaml"], "D/clouds.yaml")]
#[case::home(&["/home/u/.config/openstack/clouds.yaml", "/etc/openstack/clouds.yaml"], "/home/u/.config/openstack/clouds.yaml")]
#[case::site(&["/etc/openstack/clouds.yaml", "D/clouds.yml"], "/etc/openstack/clouds.yaml")]
#[case::short_ending(&["D/clouds.yml", "/etc/openstack/clouds.yml"], "D/clouds.yml")]
fn files_are_found_in_the_order_of_the_openstack_tools(#[case] there: &[&str], #[case] taken: &str) {
    let mut environment = Memory::with_cloud_conf(USE_CLOUDS)
        .variable("HOME", "/home/u")
        .variable("OS_CLIENT_CONFIG_FILE", "/env.yaml");
    for path in there {
        environment = environment.file(&path.replace('D', DIRECTORY), entry("c", &format!("'{path}'")));
    }
    assert_eq!(region(&environment.load().unwrap()), taken);
}

#[test]
fn clouds_file_wins_over_the_variable() {
    let environment = Memory::with_cloud_conf("[Global]\nuse-clouds=true\nclouds-file=/key.yaml\n")
        .variable("OS_CLIENT_CONFIG_FILE", "/env.yaml")
        .file("/env.yaml", entry("c", "env"))
        .file("/key.yaml", entry("c", "key"));
    assert_eq!(region(&environment.load().unwrap()), "key");
}

#[test]
fn a_clouds_file_that_is_missing_is_named() {
    let environment = Memory::with_cloud_conf("[Global]\nuse-clouds=true\nclouds-file=/key.yaml\n")
        .file("/etc/openstack/clouds.yaml", entry("c", "site"));
    let loaded = environment.load().unwrap();
    assert_eq!(region(&loaded), "site");
    assert!(
        loaded.warnings[0].to_string().contains("clouds-file: this file does not exist"),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn the_entry_is_named_by_the_key_or_the_variable_or_alone() {
    let two = format!("{}{}", entry("a", "A"), &entry("b", "B")["clouds:\n".len()..]);
    let with = |key: &str| {
        Memory::with_cloud_conf(format!("{USE_CLOUDS}{key}")).file("/etc/openstack/clouds.yaml", two.clone())
    };
    assert_eq!(region(&with("cloud=b\n").variable("OS_CLOUD", "a").load().unwrap()), "B");
    assert_eq!(region(&with("").variable("OS_CLOUD", "a").load().unwrap()), "A");
    insta::assert_snapshot!(with("").load().unwrap_err(), @"
    the cloud configuration has an error:
      cloud.conf:2:1: [Global] use-clouds: no entry of /etc/openstack/clouds.yaml is selected: the file has `a`, `b`; set `cloud`, or the environment variable OS_CLOUD, to the name of an entry
    ");
    insta::assert_snapshot!(with("cloud=c\n").load().unwrap_err(), @r#"
    the cloud configuration has an error:
      cloud.conf:3:1: [Global] cloud = "c": /etc/openstack/clouds.yaml has no such entry; use an existing entry: the file has `a`, `b`
    "#);
    insta::assert_snapshot!(with("").variable("OS_CLOUD", "c").load().unwrap_err(), @"
    the cloud configuration has an error:
      cloud.conf:2:1: [Global] use-clouds: OS_CLOUD selects the entry `c`, which is not in /etc/openstack/clouds.yaml; set `cloud`, or correct OS_CLOUD: the file has `a`, `b`
    ");
}

#[test]
fn no_file_at_all_names_the_places() {
    insta::assert_snapshot!(Memory::with_cloud_conf(USE_CLOUDS).variable("HOME", "/h").load().unwrap_err(), @"
    the cloud configuration has an error:
      cloud.conf:2:1: [Global] use-clouds: no clouds.yaml was found in /here, /h/.config/openstack, /etc/openstack; set `clouds-file` to its path, or set `use-clouds = false`
    ");
}

#[test]
fn a_file_that_is_no_yaml_names_the_place() {
    let environment =
        Memory::with_cloud_conf(USE_CLOUDS).file("/etc/openstack/clouds.yaml", "clouds:\n  a: [\n");
    insta::assert_snapshot!(environment.load().unwrap_err(), @"
    the cloud configuration has an error:
      cloud.conf:2:1: [Global] use-clouds: /etc/openstack/clouds.yaml:2:6 is not a valid clouds.yaml; correct the YAML: text values under `clouds: <name>:`, no tabs, no key twice
    ");
}

#[test]
fn secure_yaml_lies_over_and_the_public_profile_under_the_entry() {
    let environment = Memory::with_cloud_conf(USE_CLOUDS)
        .file("/etc/openstack/clouds.yaml", "clouds:\n  c:\n    profile: vendor\n    region_name: mine\n    auth: {user_id: u, project_id: p, password: old}\n")
        .file("/etc/openstack/secure.yaml", "clouds:\n  c:\n    auth: {password: new}\n")
        .file("/etc/openstack/clouds-public.yaml", "public-clouds:\n  vendor:\n    region_name: theirs\n    auth: {auth_url: 'https://vendor.example.org'}\n");
    let loaded = environment.load().unwrap();
    assert_eq!(region(&loaded), "mine");
    assert_eq!(loaded.auth_options.auth_url, "https://vendor.example.org");
    assert_eq!(loaded.config.global.password.unwrap().expose_secret(), "new");
}

#[test]
fn a_profile_that_nobody_has_is_an_error() {
    let environment = Memory::with_cloud_conf(USE_CLOUDS)
        .file("/etc/openstack/clouds.yaml", "clouds:\n  c:\n    profile: vendor\n");
    insta::assert_snapshot!(environment.load().unwrap_err(), @"
    the cloud configuration has an error:
      cloud.conf:2:1: [Global] use-clouds: /etc/openstack/clouds.yaml refers to the profile `vendor`, which is not in any clouds-public.yaml; remove the profile, or add a clouds-public.yaml that contains it
    ");
}

#[test]
fn auth_type_and_system_scope_decide_the_log_in() {
    let yaml = |auth_type: &str| {
        format!(
            "clouds:\n  c:\n    auth_type: {auth_type}\n    auth: {{auth_url: 'http://k', user_id: u, password: p, system_scope: all, \
                 application_credential_id: a, application_credential_secret: s}}\n"
        )
    };
    let load = |auth_type: &str| {
        Memory::with_cloud_conf(USE_CLOUDS).file("/etc/openstack/clouds.yaml", yaml(auth_type)).load()
    };
    let options = load("v3applicationcredential").unwrap().auth_options;
    assert!(matches!(options.credentials, Credentials::ApplicationCredential { .. }));
    assert_eq!(options.scope, Scope::Unscoped, "an application credential brings its scope");
    let options = load("v3password").unwrap().auth_options;
    assert!(matches!(options.credentials, Credentials::Password { .. }));
    assert_eq!(options.scope, Scope::System);
    insta::assert_snapshot!(load("v3oidcpassword").unwrap_err(), @r#"
    the cloud configuration has an error:
      /etc/openstack/clouds.yaml (entry `c`): [Global] auth_type = "v3oidcpassword": this authentication type is not supported; use `v3password`, `v3applicationcredential` or `v3token`
    "#);
}

#[rstest]
#[case("interface: publicURL", true)]
#[case("interface: publicUrl", false)]
#[case("endpoint_type: admin\n    interface: publicURL", true)]
#[case("interface: ''", true)]
fn endpoint_types_are_exact_words(#[case] line: &str, #[case] accepted: bool) {
    let yaml = entry("c", &format!("R\n    {line}"));
    let result = Memory::with_cloud_conf(USE_CLOUDS).file("/etc/openstack/clouds.yaml", yaml).load();
    assert_eq!(result.is_ok(), accepted, "{result:?}");
}

#[test]
fn empty_values_of_the_entry_fill_nothing() {
    let yaml = entry("c", "''");
    let loaded = Memory::with_cloud_conf(USE_CLOUDS).file("/etc/openstack/clouds.yaml", yaml).load().unwrap();
    assert_eq!(loaded.config.global.region, None);
}

#[test]
fn former_names_of_projects_are_read_and_what_leads_elsewhere_is_reported() {
    let yaml = "clouds:\n  c:\n    load_balancer_endpoint_override: https://o.example.org\n    dns_endpoint_override: https://d.example.org\n    auth:\n      auth_url: https://k\n      \
                username: u\n      user_domain_name: d\n      password: p\n      tenant_name: t\n      project_domain_name: d\n";
    let loaded = Memory::with_cloud_conf(USE_CLOUDS).file("/etc/openstack/clouds.yaml", yaml).load();
    let loaded = loaded.unwrap();
    assert_eq!(loaded.config.global.tenant_name.as_deref(), Some("t"));
    let endpoints = &loaded.auth_options.endpoints;
    let addresses: Vec<&str> = endpoints.values().map(url::Url::as_str).collect();
    assert_eq!(addresses, ["https://o.example.org/"]);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|text| text.contains("dns_endpoint_override: has no effect")),
        "{warnings:?}"
    );
}

/// As other programs of OpenStack take it, and as clusters made by Cluster API have it in a Secret.
///
/// Contract: O11, better: OCCM takes a clouds.yaml only by a cloud.conf that names it.
#[rstest]
#[case::by_its_name("/etc/config/clouds.yaml", "# mine\ncache: {}\n")]
#[case::by_its_content("/etc/config/cloud.conf", "# mine\n---\n")]
fn a_clouds_yaml_alone_is_a_configuration(#[case] path: &str, #[case] before: &str) {
    let environment = Memory::default().file(path, format!("{before}{}", entry("lab", "R1")));
    let loaded = environment.load_files(&[path]).unwrap();
    assert_eq!(region(&loaded), "R1");
    assert_eq!(loaded.auth_options.auth_url, "https://k.example.org:5000");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn a_clouds_yaml_stands_beside_a_cloud_conf_that_says_the_rest() {
    let environment = Memory::default()
        .file("clouds.yaml", entry("lab", "R1"))
        .file("cloud.conf", "[LoadBalancer]\nlb-provider = ovn\n[Global]\nregion = R2\n");
    let loaded = environment.load_files(&["clouds.yaml", "cloud.conf"]).unwrap();
    assert_eq!((region(&loaded), loaded.config.load_balancer.lb_provider.as_deref()), ("R2", Some("ovn")));
}

#[test]
fn a_clouds_yaml_of_several_entries_asks_which() {
    let both = format!("{}{}", entry("lab", "R1"), entry("shop", "R2").trim_start_matches("clouds:\n"));
    let environment = Memory::default().file("clouds.yaml", both);
    let message = environment.load_files(&["clouds.yaml"]).unwrap_err().to_string();
    assert!(message.contains("OS_CLOUD") && message.contains("`lab`, `shop`"), "{message}");
    let loaded = environment.variable("OS_CLOUD", "shop").load_files(&["clouds.yaml"]).unwrap();
    assert_eq!(region(&loaded), "R2");
}

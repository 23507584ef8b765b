//! The file format, against answers recorded from the Go parser whose dialect it is (gcfg 1.2.3).

use std::collections::BTreeMap;

use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::config::gcfg::{EntryValue, scan};
use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::environment::Memory;

/// Complete whether or not the probe sets a password, and without a value that a probe looks at.
const BASE: &str = "[Global]\nauth-url=http://k\nuser-id=u\ntoken=t\ntenant-id=p\n";

/// Values that the Go parser takes and that no cloud could work with: they fail here already.
const REFUSED_HERE: [&str; 4] = ["int -1", "int -0x2", "duration -5s", "endpoint type publicURL"];

#[derive(Deserialize)]
struct Probe {
    name: String,
    text: String,
    accepted: bool,
    #[serde(default)]
    values: BTreeMap<String, Value>,
}

/// Every form of the dialect of cloud.conf is accepted or refused as the Go program does, with the same values.
///
/// Contract: X1, same.
#[test]
fn x1_files_mean_what_they_mean_to_the_go_program() {
    let probes: Vec<Probe> = serde_json::from_str(include_str!("../recorded/gcfg-probes.json")).unwrap();
    let mut differences = Vec::new();
    for probe in &probes {
        let environment = Memory::default().file("base", BASE).file("probe", &probe.text);
        let result = environment.load_files(&["base", "probe"]);
        let refused = REFUSED_HERE.contains(&probe.name.as_str());
        let found = result.as_ref().map(|loaded| values(&loaded.config)).map_err(ToString::to_string);
        let expected = probe.accepted && !refused;
        if found.is_ok() != expected || (expected && found.as_ref() != Ok(&probe.values)) {
            differences.push(format!(
                "{}: {:?}\n  expected {:?}\n  found {found:?}",
                probe.name, probe.text, probe.values
            ));
        }
    }
    assert!(probes.len() > 150);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// What the recording holds: values that differ from their default, and the subnet of every class.
fn values(config: &Config) -> BTreeMap<String, Value> {
    let (global, balancer) = (&config.global, &config.load_balancer);
    let mut values = BTreeMap::new();
    let mut put = |name: &str, value: Value, default: Value| {
        if value != default {
            values.insert(name.to_owned(), value);
        }
    };
    let text = |text: &Option<String>| json!(text.clone().unwrap_or_default());
    put("username", text(&global.username), json!(""));
    put("password", json!(global.password.as_ref().map_or("", ExposeSecret::expose_secret)), json!(""));
    put("region", text(&global.region), json!(""));
    put(
        "os-endpoint-type",
        json!(global.os_endpoint_type.map(|interface| interface.to_string())),
        Value::Null,
    );
    put(
        "monitor-delay",
        json!(u64::try_from(balancer.monitor_delay.as_nanos()).unwrap()),
        json!(5_000_000_000_u64),
    );
    put("monitor-max-retries", json!(balancer.monitor_max_retries), json!(1));
    put("max-shared-lb", json!(balancer.max_shared_lb), json!(2));
    put("manage-security-groups", json!(balancer.manage_security_groups), json!(false));
    put("floating-subnet", text(&balancer.placement.floating_subnet), json!(""));
    put("public-network-name", json!(config.networking.public_network_name), json!([]));
    for (name, class) in &config.classes {
        put(&format!("class {name} subnet-id"), text(&class.subnet_id), Value::Null);
    }
    values
}

#[test]
fn every_value_knows_its_line_and_column() {
    let document = scan("[Global]\r\n  username = ü\\\r\n x\r\npassword=p # c\n".as_bytes());
    let places: Vec<_> =
        document.entries.iter().map(|entry| (entry.position.line, entry.position.column)).collect();
    assert_eq!(places, [(2, 3), (4, 1)]);
    assert_eq!(document.entries[0].value, EntryValue::Text("ü x".to_owned()));
}

#[test]
fn one_scan_finds_every_error() {
    let document = scan(b"a=1\n[Glo bal]\n[Global]\nuser_name=u\npassword=\"a\\q\"\nx y\n\"\nok=1\n[Route\n");
    let found: Vec<_> =
        document.errors.iter().map(|error| format!("{}: {}", error.position.line, error.problem)).collect();
    insta::assert_snapshot!(found.join("\n"), @"
    1: a key appears before the first section
    2: only a quoted name or `]` may follow the name in a section header
    4: `_` is not allowed in a key
    5: the quoted value has an unknown escape sequence
    6: an equal sign is missing after the key
    7: the line starts with neither a section, a key nor a comment
    9: only a quoted name or `]` may follow the name in a section header
    ");
    assert_eq!(document.entries.iter().filter(|entry| entry.key == "ok").count(), 1);
}

#[test]
fn the_rest_of_an_open_quote_is_not_taken_for_keys() {
    let document = scan(b"[Global]\npassword=\"first\nsecond=third\nfourth\"\n[Route]\nrouter-id=r\n");
    assert_eq!(document.errors.len(), 1);
    let keys: Vec<_> = document.entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["password", "router-id"]);
}

#[test]
fn a_file_that_is_no_text_gives_few_errors() {
    let bytes: Vec<u8> = (0..20_000_u32).flat_map(|number| [number.to_le_bytes()[0], b'\n']).collect();
    assert!((1..40).contains(&scan(&bytes).errors.len()));
}

/// A value as a careful writer quotes it.
fn quoted(value: &str) -> String {
    let escaped: String = value
        .chars()
        .map(|character| match character {
            '\\' => "\\\\".to_owned(),
            '"' => "\\\"".to_owned(),
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

proptest! {
    #[test]
    fn any_bytes_are_scanned_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let document = scan(&bytes);
        prop_assert!(document.entries.iter().all(|entry| entry.section < document.sections.len()));
    }

    #[test]
    fn near_files_are_scanned_to_an_end(text in "([\\[\\]\"\\\\=#; a_\r\n]|\\[Global\\]\n|password=){0,60}") {
        let document = scan(text.as_bytes());
        prop_assert!(document.entries.iter().all(|entry| entry.section < document.sections.len()));
    }

    #[test]
    fn what_is_written_with_quotes_is_read_again(
        entries in proptest::collection::vec(("[a-zA-Z][a-zA-Z0-9-]{0,12}", "[^\\x00\r]{0,20}"), 0..12),
        subsection in "[^\\x00\r\n\t]{1,10}",
        line_end in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let mut file = format!("[Section {}] # comment{line_end}", quoted(&subsection));
        for (key, value) in &entries {
            file.push_str(&format!("\t{key} = {} ; comment{line_end}{line_end}", quoted(value)));
        }
        let document = scan(file.as_bytes());
        prop_assert_eq!(&document.errors, &[]);
        prop_assert_eq!(document.sections[0].subsection.as_deref(), Some(subsection.as_str()));
        let read: Vec<_> = document.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let written: Vec<_> = entries.into_iter().map(|(key, value)| (key, EntryValue::Text(value))).collect();
        prop_assert_eq!(read, written);
    }
}

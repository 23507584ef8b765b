//! What the program's own texts advise exists: flags, keys of cloud.conf and subcommands. Annotations are checked beside those of pages.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use openstack_ccm::command_line::CommandLine;
use regex::Regex;

use crate::names::{flags, gather_texts, known_flags, of_another_program};
use crate::pages::{read, repository, written_pages};
use crate::writes::PACKAGES;

/// Flags of other programs that texts name beside nothing else of them: k3s, kube-proxy, Contour, Traefik.
const OF_OTHERS: [&str; 4] =
    ["disable", "cleanup", "use-proxy-protocol", "entryPoints.NAME.proxyProtocol.trustedIPs"];

/// Texts between quotes in the sources of a package, with the lines of each joined.
fn texts(package: &str) -> Vec<String> {
    let mut sources = String::new();
    gather_texts(&repository().join(format!("crates/{package}/src")), &mut sources);
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let code: Vec<&str> = sources.lines().filter(|line| !is_comment(line)).collect();
    let code = code.join("\n").replace("'\"'", "' '").replace("\\n", " ");
    let quoted = Regex::new(r#"(?s)"((?:[^"\\]|\\.)*)""#).unwrap();
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let texts = quoted.captures_iter(&code).map(|text| continued.replace_all(&text[1], "").into_owned());
    texts.filter(|text| text.contains(' ')).collect()
}

/// What each text names and is not known.
fn unknown(named: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
    let of_package = |package: &&str| {
        let package = (*package).to_owned();
        let texts = texts(&package).into_iter();
        texts.flat_map(|text| named(&text)).map(move |name| format!("{package}: {name}")).collect::<Vec<_>>()
    };
    PACKAGES.iter().flat_map(of_package).collect()
}

/// The keys of the reference page, which is made from the tables.
fn keys() -> BTreeSet<String> {
    let reference = read("docs/reference/cloud-conf.md");
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

fn subcommands() -> BTreeSet<String> {
    CommandLine::command().get_subcommands().map(|one| one.get_name().to_owned()).collect()
}

#[test]
fn no_text_of_the_program_advises_a_flag_that_does_not_exist() {
    let known = known_flags();
    let unknown = unknown(|text| {
        let of_ours = flags(text).filter(|_| !of_another_program(text));
        let of_ours = of_ours.filter(|flag| !OF_OTHERS.contains(flag));
        of_ours.filter(|flag| !known.contains(*flag)).map(|flag| format!("--{flag}")).collect()
    });
    assert!(unknown.is_empty(), "no such flags: {unknown:#?}");
}

#[test]
fn no_text_advises_a_key_of_cloud_conf_that_does_not_exist() {
    let keys = keys();
    assert!(keys.contains("lb-provider") && keys.contains("router-id"), "the page is read");
    let named = Regex::new(
        r"`?([a-z][a-z0-9]*(?:-[a-z0-9]+)+)`? (?:in|of) (?:`?\[[A-Za-z]+\]`? (?:in|of) )?`?cloud\.conf",
    );
    let named = named.unwrap();
    let unknown_in = |text: &str| -> Vec<String> {
        let names = named.captures_iter(text).map(|found| found[1].to_owned());
        names.filter(|name| !keys.contains(name)).collect()
    };
    let mut unknown = unknown(unknown_in);
    for page in written_pages().iter().filter(|page| !page.path.starts_with("docs/adr/")) {
        let prose = page.prose.join(" ");
        unknown.extend(unknown_in(&prose).into_iter().map(|name| format!("{}: {name}", page.path)));
    }
    assert!(unknown.is_empty(), "no such keys: {unknown:#?}");
}

#[test]
fn no_text_advises_a_subcommand_that_does_not_exist() {
    let known = subcommands();
    let named = Regex::new(r"^(?:\$ )?(?:kubectl )?openstack-ccm ([a-z][a-z-]*)").unwrap();
    let unknown_in = |text: &str| {
        let name = named.captures(text)?[1].to_owned();
        (!known.contains(&name)).then_some(name)
    };
    let mut unknown = unknown(|text| text.split('`').skip(1).step_by(2).filter_map(unknown_in).collect());
    for page in written_pages() {
        let names = page.spans().filter_map(unknown_in);
        unknown.extend(names.map(|name| format!("{}: {name}", page.path)));
    }
    assert!(unknown.is_empty(), "no such subcommands: {unknown:#?}");
}

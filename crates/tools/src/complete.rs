//! Completion of `kubectl openstack-ccm`: subcommands, flags, and names of Services.
//!
//! kubectl runs `kubectl_complete-openstack_ccm` with the words after the plugin's name, and reads from it a candidate per line
//! and, last, a directive.

use std::time::Duration;

use clap::Command;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use openstack_ccm_manager::args::PersonArgs;

use super::output::print_as_it_is;

/// The program that kubectl runs.
pub const SCRIPT: &str = "#!/bin/sh\nexec kubectl openstack-ccm __complete \"$@\"\n";
/// The directive to offer only the candidates, without file names.
const ONLY_THESE: &str = ":4\n";
const BY_SHELL: &str = ":0\n";
/// The longest wait for Services: a user who completes a word does not wait long.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes the candidates for the last word, and the directive.
///
/// # Errors
/// Standard output is closed.
pub async fn run(program: &Command, words: &[String]) -> anyhow::Result<()> {
    let (candidates, directive) = match candidates(program, words) {
        Candidates::Words(words) => (words, ONLY_THESE),
        Candidates::Services(start) => {
            let names = tokio::time::timeout(COMPLETION_TIMEOUT, services(words, &start)).await;
            (names.ok().and_then(Result::ok).unwrap_or_default(), ONLY_THESE)
        }
        Candidates::Value => (Vec::new(), BY_SHELL),
    };
    let lines: String = candidates.iter().map(|candidate| format!("{candidate}\n")).collect();
    print_as_it_is(format!("{lines}{directive}"))
}

#[derive(Debug, PartialEq, Eq)]
enum Candidates {
    Words(Vec<String>),
    /// The Services whose name starts with this text.
    Services(String),
    /// The value of a flag.
    Value,
}

fn candidates(program: &Command, words: &[String]) -> Candidates {
    let Some((last, before)) = words.split_last() else { return Candidates::Words(Vec::new()) };
    let mut command = program;
    for word in before {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => break,
        }
    }
    if last.starts_with('-') && last.contains('=') {
        return Candidates::Value;
    }
    if last.starts_with('-') {
        let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
        let flags = flags.filter_map(|flag| Some(format!("--{}", flag.get_long()?)));
        return Candidates::Words(flags.filter(|flag| flag.starts_with(last.as_str())).collect());
    }
    let is_service = |name: &[clap::builder::Str]| name.iter().any(|name| name.as_str() == "SERVICE");
    if command.get_positionals().any(|positional| positional.get_value_names().is_some_and(is_service)) {
        return Candidates::Services(last.clone());
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
    Candidates::Words(below.filter(|name| name.starts_with(last.as_str())).map(str::to_owned).collect())
}

/// Returns the value of a flag, given as one word or two.
fn value(words: &[String], names: &[&str]) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        for name in names {
            if word == *name {
                return words.next().cloned();
            }
            if let Some(value) = word.strip_prefix(*name).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value.to_owned());
            }
        }
    }
    None
}

/// Lists Services of type LoadBalancer: by name in the given namespace, or else the kubeconfig's, and as `namespace/name` in other
/// namespaces.
async fn services(words: &[String], start: &str) -> anyhow::Result<Vec<String>> {
    let person = PersonArgs {
        kubeconfig: value(words, &["--kubeconfig"]).map(Into::into),
        context: value(words, &["--context"]),
        // Nobody waits longer for a completion, and nothing is said while a line is typed.
        request_timeout: Duration::from_millis(1900),
    };
    let client = person.client().await?;
    let given = value(words, &["--namespace", "-n"]);
    let home = given.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let api: Api<Service> = match &given {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let name = |service: Service| {
        let is_chosen = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
        let (namespace, name) = (service.metadata.namespace?, service.metadata.name?);
        let full = format!("{namespace}/{name}");
        let shown = if namespace == home && !start.contains('/') { name } else { full };
        (is_chosen && shown.starts_with(start)).then_some(shown)
    };
    Ok(api.list(&ListParams::default()).await?.items.into_iter().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use clap::Arg;
    use rstest::rstest;

    use super::*;

    fn program() -> Command {
        let services = Arg::new("services").value_name("SERVICE").num_args(0..);
        let with_services = |name: &'static str| {
            let hidden = Arg::new("hidden").long("left-alone").hide(true);
            let flags = ["leftovers", "no-cloud"].map(|flag| Arg::new(flag).long(flag));
            Command::new(name).arg(services.clone()).args(flags).arg(hidden)
        };
        let hidden = Command::new("documents").hide(true);
        Command::new("openstack-ccm").subcommands([
            with_services("doctor"),
            with_services("plan"),
            Command::new("status"),
            hidden,
        ])
    }

    fn words(words: &[&str]) -> Candidates {
        Candidates::Words(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[rstest]
    #[case::a_subcommand(&["doc"], words(&["doctor"]))]
    #[case::below_a_subcommand(&["doctor", "w"], Candidates::Services("w".to_owned()))]
    #[case::behind_a_flag(&["doctor", "--no-cloud", ""], Candidates::Services(String::new()))]
    #[case::of_another_subcommand(&["plan", "shop/"], Candidates::Services("shop/".to_owned()))]
    #[case::a_flag(&["doctor", "--left"], words(&["--leftovers"]))]
    #[case::a_value(&["doctor", "--cloud-config=c"], Candidates::Value)]
    #[case::nothing_to_name(&["status", ""], words(&[]))]
    fn the_last_word_is_completed(#[case] typed: &[&str], #[case] expected: Candidates) {
        let typed: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(candidates(&program(), &typed), expected);
    }

    #[test]
    fn a_flag_has_its_value_in_one_word_or_two() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for text in ["doctor -n shop w", "doctor --namespace shop w", "doctor --namespace=shop w"] {
            assert_eq!(value(&words(text), &["--namespace", "-n"]).as_deref(), Some("shop"), "{text}");
        }
        assert_eq!(value(&words("doctor w"), &["--namespace", "-n"]), None);
    }
}

//! Checks of the whole configuration, which need more than one value.

use super::assembly::Assembly;
use super::environment::Environment;
use super::error::{ConfigOrigin, Finding, ValueFault};
use super::login;
use super::section::{CreateMonitor, LoginKind, SectionName};
use openstack_ccm_core::node_selector::NodeSelector;

const KNOWN_PROVIDERS: [&str; 5] = ["amphora", "octavia", "ovn", "f5", "amphorav2"];
/// The methods of pools that Octavia accepts.
pub const KNOWN_METHODS: [&str; 4] = ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"];
const KNOWN_CONTAINER_STORES: [&str; 2] = ["barbican", "external"];

pub(super) fn check(assembly: &mut Assembly, environment: &dyn Environment) {
    known_words(assembly);
    monitor(assembly);
    node_selector(assembly);
    address(assembly);
    tls(assembly, environment);
    kinds_of_login(assembly);
    variables(assembly, environment);
}

/// Warns about unknown words, which are passed on unchanged.
fn known_words(assembly: &mut Assembly) {
    let section = &assembly.config.load_balancer;
    let words = [
        ("lb-provider", section.lb_provider.clone(), KNOWN_PROVIDERS.as_slice()),
        ("lb-method", Some(section.lb_method.clone()), &KNOWN_METHODS),
        ("container-store", section.container_store.clone(), &KNOWN_CONTAINER_STORES),
    ];
    let listed = section.lb_providers.clone().into_iter();
    let listed = listed.map(|provider| ("lb-providers", Some(provider), KNOWN_PROVIDERS.as_slice()));
    for (key, word, known) in words.into_iter().chain(listed) {
        if let Some(word) = word.filter(|word| !known.contains(&word.as_str())) {
            let text = format!(
                "`{word}` is not a supported value and is used unchanged; supported values are {}",
                known.join(", ")
            );
            assembly.warn(SectionName::LoadBalancer, key, text);
        }
    }
}

/// Checks Octavia's rules for health monitors: whole seconds, 1 to 10 tries. Octavia accepts a timeout longer than the delay,
/// though checks then overlap.
fn monitor(assembly: &mut Assembly) {
    let section = assembly.config.load_balancer.clone();
    for (key, value) in
        [("monitor-delay", section.monitor_delay), ("monitor-timeout", section.monitor_timeout)]
    {
        if value.as_secs() == 0 {
            let fault = ValueFault::new("the value is below one second", "use whole seconds, `1s` or more");
            monitor_fault(assembly, key, &format!("{value:?}"), &fault);
        } else if value.subsec_nanos() > 0 {
            let text =
                format!("Octavia uses whole seconds: {value:?} is rounded down to {}s", value.as_secs());
            assembly.warn(SectionName::LoadBalancer, key, text);
        }
    }
    let tries = [
        ("monitor-max-retries", section.monitor_max_retries),
        ("monitor-max-retries-down", section.monitor_max_retries_down),
    ];
    for (key, value) in tries {
        if !(1..=10).contains(&value) {
            let fault = ValueFault::new("Octavia accepts 1 to 10", "use 1 to 10");
            monitor_fault(assembly, key, &value.to_string(), &fault);
        }
    }
    let (delay, timeout) = (section.monitor_delay_seconds(), section.monitor_timeout_seconds());
    if timeout > delay && delay > 0 && !assembly.has_failed(SectionName::LoadBalancer, "monitor-delay") {
        let text = format!(
            "monitor-timeout ({timeout}s) is longer than monitor-delay ({delay}s), so checks overlap: raise \
             monitor-delay or lower monitor-timeout"
        );
        let written = assembly.is_written(SectionName::LoadBalancer, "monitor-timeout");
        let key = if written { "monitor-timeout" } else { "monitor-delay" };
        assembly.warn(SectionName::LoadBalancer, key, text);
    }
}

/// Reports an error if monitors are created; otherwise a warning, since annotations may still ask for them.
fn monitor_fault(assembly: &mut Assembly, key: &str, value: &str, fault: &ValueFault) {
    if assembly.has_failed(SectionName::LoadBalancer, key) {
        return;
    }
    if assembly.config.load_balancer.create_monitor != CreateMonitor::No {
        assembly.fault(SectionName::LoadBalancer, key, Some(value), fault);
    } else {
        let ValueFault { problem, fix } = fault;
        let text =
            format!("{problem} (now {value}); {fix}; otherwise Services that enable a health monitor fail");
        assembly.warn(SectionName::LoadBalancer, key, text);
    }
}

fn node_selector(assembly: &mut Assembly) {
    let Some(selector) = assembly.config.load_balancer.node_selector.clone() else { return };
    if let Err(error) = NodeSelector::parse(&selector) {
        let fix = "write `key=value` or `key`, separated by commas";
        let fault = ValueFault::new(format!("no node can match: {error}"), fix);
        assembly.fault(SectionName::LoadBalancer, "node-selector", Some(&selector), &fault);
    }
}

fn address(assembly: &mut Assembly) {
    let Some(text) = assembly.config.global.auth_url.clone() else {
        if assembly.may_miss_keys() && !assembly.has_failed(SectionName::Global, "auth-url") {
            let fix = "add `auth-url = https://host:5000/v3`";
            let fault = ValueFault::new("the address of Keystone is not set", fix);
            assembly.fault(SectionName::Global, "auth-url", None, &fault);
        }
        return;
    };
    let url = url::Url::parse(&text).ok();
    if url.as_ref().is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
        return;
    }
    // The URL may contain a password before the host.
    let value = (!text.contains('@')).then_some(text);
    let fault =
        ValueFault::new("the value is not an http or https address", "write it as `https://host:5000/v3`");
    assembly.fault(SectionName::Global, "auth-url", value.as_deref(), &fault);
}

fn tls(assembly: &mut Assembly, environment: &dyn Environment) {
    let global = assembly.config.global.clone();
    if global.tls_insecure == Some(true) {
        let text = "server certificates are not verified: anyone on the network path can read the credentials; remove `tls-insecure` \
                    and set `ca-file`";
        assembly.warn(SectionName::Global, "tls-insecure", text);
    }
    for (key, other, given, other_given) in [
        ("key-file", "cert-file", global.key_file.is_some(), global.cert_file.is_some()),
        ("cert-file", "key-file", global.cert_file.is_some(), global.key_file.is_some()),
    ] {
        if given && !other_given && !assembly.has_failed(SectionName::Global, other) {
            let problem = format!("a client certificate also requires `{other}`");
            let fault = ValueFault::new(problem, format!("add `{other}`"));
            assembly.fault(SectionName::Global, key, None, &fault);
        }
    }
    for (key, path) in
        [("ca-file", global.ca_file), ("cert-file", global.cert_file), ("key-file", global.key_file)]
    {
        let Some(path) = path else { continue };
        if let Err(error) = environment.read(path.as_ref()) {
            let problem = format!("the file cannot be read: {error}");
            let fault = ValueFault::new(problem, "correct the path, or mount the file");
            assembly.fault(SectionName::Global, key, Some(&path), &fault);
        }
    }
    if global.ca_file_contents.is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----\n")) {
        let fix = "put the text in double quotes, with `\\n` for each line break";
        let fault = ValueFault::new("the value contains no PEM certificate", fix);
        assembly.fault(SectionName::Global, "cafilecontents", None, &fault);
    }
}

/// Warns about several kinds of login, or a login without a scope.
fn kinds_of_login(assembly: &mut Assembly) {
    let global = &assembly.config.global;
    let kinds = login::kinds(global);
    let name = |kind: &LoginKind| match kind {
        LoginKind::Password => "password",
        LoginKind::Token => "token",
        LoginKind::ApplicationCredential => "application-credential-secret",
    };
    if let (Some(taken), Some(other), None, None) =
        (kinds.first(), kinds.get(1), global.login_kind, &global.trust_id)
    {
        let text = format!(
            "this key is not used: `{}` is also set, and the login uses `{}`; remove one of the two",
            name(taken),
            name(taken)
        );
        let key = name(other);
        assembly.warn(SectionName::Global, key, text);
        return;
    }
    let no_scope =
        [&global.tenant_id, &global.tenant_name, &global.domain_id, &global.domain_name, &global.trust_id];
    let unscoped = no_scope.iter().all(|part| part.is_none()) && !global.system_scope;
    if unscoped && kinds.first() == Some(&LoginKind::Password) && global.login_kind != Some(LoginKind::Token)
    {
        let text =
            "no project is set: the login uses the user's default project, if the user has one in Keystone";
        assembly.warn(SectionName::Global, "tenant-id", text);
    }
}

fn variables(assembly: &mut Assembly, environment: &dyn Environment) {
    if environment.variable("OCCM_WAIT_LB_ACTIVE_STEPS").is_some() {
        let text =
            "has no effect, because this program does not poll in steps: remove the environment variable";
        let origin = ConfigOrigin::file("environment");
        assembly.warnings.push(Finding::warning(origin, None, Some("OCCM_WAIT_LB_ACTIVE_STEPS"), text));
    }
}

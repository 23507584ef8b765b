//! Suggestions for unknown names.

use super::section::{
    Global, Key, LoadBalancer, LoadBalancerClass, LoadBalancerNamespace, Metadata, Networking, Route,
    SectionName,
};

/// Keys of earlier versions of OCCM that old files may still contain.
const LEGACY_KEYS: [(SectionName, &str); 3] = [
    (SectionName::Global, "secret-name"),
    (SectionName::Global, "secret-namespace"),
    (SectionName::LoadBalancer, "use-octavia"),
];

/// Names from clouds.yaml or OpenStack's environment variables that users may write in `[Global]`, and the right keys.
const OTHER_WORDS: [(&[&str], &str); 8] = [
    (&["project-name", "project", "os-project-name"], "tenant-name"),
    (&["project-id", "os-project-id"], "tenant-id"),
    (&["project-domain-name"], "tenant-domain-name"),
    (&["project-domain-id"], "tenant-domain-id"),
    (&["insecure", "verify"], "tls-insecure"),
    (&["cacert", "os-cacert"], "ca-file"),
    (&["region-name", "os-region-name"], "region"),
    (&["interface", "endpoint-type"], "os-endpoint-type"),
];

/// Returns the key for a name that other tools use.
pub(super) fn other_word(section: SectionName, key: &str) -> Option<&'static str> {
    let plain = key.to_ascii_lowercase().replace('_', "-");
    let of_others = OTHER_WORDS.iter().find(|(words, _)| words.contains(&plain.as_str()));
    of_others.filter(|_| section == SectionName::Global).map(|(_, meant)| *meant)
}

/// Returns the message about an unknown key.
pub(super) fn about_unknown_key(section: SectionName, key: &str) -> String {
    if LEGACY_KEYS.iter().any(|(of, legacy)| *of == section && legacy.eq_ignore_ascii_case(key)) {
        return "this key of earlier versions no longer has any effect; remove it".to_owned();
    }
    if let Some(meant) = other_word(section, key) {
        return format!("this key is unknown and is ignored; in cloud.conf it is called `{meant}`");
    }
    if section == SectionName::LoadBalancer && key.eq_ignore_ascii_case("enable-health-monitor") {
        return "this key is unknown and is ignored; `enable-health-monitor` is an annotation; set `create-monitor` in cloud.conf"
            .to_owned();
    }
    let holds = |other: &SectionName| key_names(*other).iter().any(|known| known.eq_ignore_ascii_case(key));
    let hint = match (SectionName::ALL.into_iter().find(holds), nearest(key, key_names(section))) {
        (Some(other), _) => format!("; it belongs to [{other}]"),
        (None, Some(meant)) => format!("; did you mean `{meant}`?"),
        (None, None) => String::new(),
    };
    format!("this key is unknown and is ignored{hint}")
}

/// Returns the candidate most similar to the name, if it is similar enough. Case and the difference between `-` and `_` are
/// ignored.
pub(crate) fn nearest<'name>(
    name: &str,
    candidates: impl IntoIterator<Item = &'name str>,
) -> Option<&'name str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
    let name = plain(name);
    // Allow one mistake per three characters, but not so many that any word fits.
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the names of a section's keys.
pub(super) fn key_names(section: SectionName) -> Vec<&'static str> {
    fn names<S>(keys: &[Key<S>]) -> Vec<&'static str> {
        keys.iter().map(|key| key.name).collect()
    }
    match section {
        SectionName::Global => names(Global::KEYS),
        SectionName::LoadBalancer => names(LoadBalancer::KEYS),
        SectionName::LoadBalancerClass => names(LoadBalancerClass::KEYS),
        SectionName::LoadBalancerNamespace => names(LoadBalancerNamespace::KEYS),
        SectionName::Networking => names(Networking::KEYS),
        SectionName::Route => names(Route::KEYS),
        SectionName::Metadata => names(Metadata::KEYS),
        SectionName::BlockStorage => Vec::new(),
    }
}

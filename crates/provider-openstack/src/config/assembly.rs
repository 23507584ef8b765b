//! Converts scanned files to typed sections.
//!
//! The entries of all files are applied in their order: a later value wins, lists grow. The origins of all keys are kept for the
//! checks of the whole configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::Config;
use super::error::{ConfigOrigin, Finding, ValueFault};
use super::gcfg::{Document, Entry, EntryValue, Position, Section};
use super::section::{
    Global, Key, LoadBalancer, LoadBalancerClass, LoadBalancerNamespace, Metadata, Networking, Route,
    SectionName,
};
use super::suggestion::{self, key_names, nearest};

/// A configuration under construction.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) config: Config,
    pub(super) errors: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
    /// Last origin of each key.
    origins: BTreeMap<(SectionName, String), ConfigOrigin>,
    /// Position of each key that has a single value, by file, section title and key.
    written: BTreeMap<(String, String, &'static str), Position>,
    /// First origin of each section.
    headers: BTreeMap<SectionName, ConfigOrigin>,
    /// Keys that already have an error, which the checks of the whole configuration skip.
    failed: BTreeSet<(SectionName, String)>,
    /// Sections and keys that are accepted and have no effect.
    without_effect: BTreeMap<SectionName, BTreeSet<String>>,
    first_without_effect: Option<ConfigOrigin>,
    files: Vec<String>,
    /// Whether a file, or a part of one, could not be read.
    unread: bool,
}

impl Assembly {
    /// Applies one file after the previous ones.
    pub(super) fn add(&mut self, file: &str, document: &Document) {
        self.files.push(file.to_owned());
        self.add_syntax_errors(file, document);
        for section in &document.sections {
            self.add_header(file, section);
        }
        for entry in &document.entries {
            if let Some(section) = document.sections.get(entry.section) {
                self.add_entry(file, section, entry);
            }
        }
    }

    /// Uses a clouds.yaml in place of a cloud.conf: it contains the login.
    pub(super) fn add_clouds_yaml(&mut self, file: &str) {
        self.files.push(file.to_owned());
        self.config.global.use_clouds = true;
        self.config.global.clouds_file = Some(file.to_owned());
        for key in ["use-clouds", "clouds-file"] {
            self.set_origin(SectionName::Global, key, ConfigOrigin::file(file));
        }
    }

    /// Returns the last origin of a key, else of its section, else all files.
    pub(super) fn origin(&self, section: SectionName, key: &str) -> ConfigOrigin {
        let written = self.origins.get(&(section, key.to_owned())).or_else(|| self.headers.get(&section));
        written.cloned().unwrap_or_else(|| ConfigOrigin::file(self.files.join(", ")))
    }

    /// Returns whether a key is set in any file.
    pub(super) fn is_written(&self, section: SectionName, key: &str) -> bool {
        self.origins.contains_key(&(section, key.to_owned()))
    }

    /// Returns whether a key has an error.
    pub(super) fn has_failed(&self, section: SectionName, key: &str) -> bool {
        self.failed.contains(&(section, key.to_owned()))
    }

    /// Returns whether absent keys may be reported as missing: not if a file, a line or clouds.yaml could not be read.
    pub(super) fn may_miss_keys(&self) -> bool {
        !self.unread
            && !["use-clouds", "clouds-file", "cloud"]
                .iter()
                .any(|key| self.has_failed(SectionName::Global, key))
    }

    /// Adds an error about a whole file.
    pub(super) fn file_error(&mut self, origin: ConfigOrigin, problem: String, fix: &str) {
        self.unread = true;
        self.errors.push(Finding::error(origin, None, None, None, &ValueFault::new(problem, fix)));
    }

    /// Sets the origin of a key whose value comes from elsewhere.
    pub(super) fn set_origin(&mut self, section: SectionName, key: &str, origin: ConfigOrigin) {
        self.origins.insert((section, key.to_owned()), origin);
    }

    /// Adds an error about a key that a check of the whole configuration found.
    pub(super) fn fault(&mut self, section: SectionName, key: &str, value: Option<&str>, fault: &ValueFault) {
        self.failed.insert((section, key.to_owned()));
        let origin = self.origin(section, key);
        self.errors.push(Finding::error(origin, Some(section.as_str()), Some(key), value, fault));
    }

    pub(super) fn warn(&mut self, section: SectionName, key: &str, text: impl Display) {
        let origin = self.origin(section, key);
        self.warnings.push(Finding::warning(origin, Some(section.as_str()), Some(key), text));
    }

    /// Adds one warning about everything that is accepted and has no effect.
    pub(super) fn report_without_effect(&mut self) {
        if self.config.metadata.search_order_given() {
            self.note_without_effect(SectionName::Metadata, Some("search-order"));
            self.first_without_effect.get_or_insert(self.origin(SectionName::Metadata, "search-order"));
        }
        let Some(origin) = self.first_without_effect.take() else { return };
        let name = |(section, keys): (&SectionName, &BTreeSet<String>)| {
            let keys: Vec<_> = keys.iter().map(String::as_str).collect();
            format!("[{section}] {}", keys.join(", ")).trim_end().to_owned()
        };
        let names: Vec<_> = self.without_effect.iter().map(name).collect();
        let text =
            format!("these settings are accepted but have no effect in openstack-ccm: {}", names.join("; "));
        self.warnings.push(Finding::warning(origin, None, None, text));
    }

    /// Sorts errors and warnings in the order of the files.
    pub(super) fn sort(&mut self) {
        let files = &self.files;
        let place =
            |origin: &ConfigOrigin| (files.iter().position(|file| *file == origin.file), origin.position);
        // Findings outside of these files come last.
        let order = |origin: &ConfigOrigin| (place(origin).0.is_none(), place(origin));
        self.errors.sort_by_key(|error| order(&error.origin));
        self.warnings.sort_by_key(|warning| order(&warning.origin));
    }

    fn note_without_effect(&mut self, section: SectionName, key: Option<&str>) {
        self.without_effect.entry(section).or_default().extend(key.map(str::to_owned));
    }

    fn add_syntax_errors(&mut self, file: &str, document: &Document) {
        self.unread |= !document.errors.is_empty();
        for error in &document.errors {
            let known = error.section.as_deref().and_then(SectionName::find);
            let key = error.key.as_deref();
            if let (Some(section), Some(key)) = (known, key) {
                self.failed.insert((section, key.to_ascii_lowercase()));
            }
            let suggestion = known.zip(key).and_then(|(section, key)| {
                suggestion::other_word(section, key).or_else(|| nearest(key, key_names(section)))
            });
            let fix = match suggestion.filter(|name| Some(*name) != key) {
                Some(name) => format!("{}; did you mean `{name}`?", error.problem.fix()),
                None => error.problem.fix().to_owned(),
            };
            let fault = ValueFault::new(error.problem.to_string(), fix);
            let origin = at(file, error.position);
            self.errors.push(Finding::error(origin, error.section.as_deref(), key, None, &fault));
        }
    }

    fn add_header(&mut self, file: &str, section: &Section) {
        let (origin, title) = (at(file, section.position), title(section));
        let warning = |text: String| Finding::warning(origin.clone(), Some(&title), None, text);
        let error = |problem: &str, fix: &str| {
            Finding::error(origin.clone(), Some(&title), None, None, &ValueFault::new(problem, fix))
        };
        match (SectionName::find(&section.name), &section.subsection) {
            (None, _) => {
                let meant = nearest(&section.name, SectionName::ALL.map(SectionName::as_str));
                let hint = meant.map_or(String::new(), |name| format!("; did you mean [{name}]?"));
                self.warnings.push(warning(format!("the section is unknown and is ignored{hint}")));
            }
            (Some(SectionName::LoadBalancerClass), None) => self.errors.push(error(
                "the class has no name",
                "write `[LoadBalancerClass \"name\"]`; Services select the class with the annotation `loadbalancer.openstack.org/class: \
                 name`",
            )),
            (Some(SectionName::LoadBalancerClass), Some(name)) => {
                self.config.classes.entry(name.clone()).or_default();
            }
            (Some(SectionName::LoadBalancerNamespace), None) => self.errors.push(error(
                "the section names no namespace",
                "write `[LoadBalancerNamespace \"name\"]`, or `[LoadBalancerNamespace \"*\"]` for all other namespaces",
            )),
            (Some(SectionName::LoadBalancerNamespace), Some(name)) => {
                self.config.namespaces.entry(name.clone()).or_default();
            }
            (Some(known), None) => {
                if known == SectionName::BlockStorage {
                    self.note_without_effect(known, None);
                    self.first_without_effect.get_or_insert(origin.clone());
                }
                self.headers.entry(known).or_insert(origin);
            }
            (Some(known), Some(name)) => {
                let hint = if known == SectionName::LoadBalancer {
                    format!("; did you mean [LoadBalancerClass \"{name}\"]?")
                } else {
                    String::new()
                };
                self.warnings.push(warning(format!(
                    "this section takes no name and is ignored: remove the name{hint}"
                )));
            }
        }
    }

    fn add_entry(&mut self, file: &str, section: &Section, entry: &Entry) {
        let place = KeyPlace { file, section, entry };
        let Some(name) = SectionName::find(&section.name) else { return };
        let applied = match (name, &section.subsection) {
            (SectionName::LoadBalancerClass, Some(class)) => {
                let class = self.config.classes.entry(class.clone()).or_default();
                apply(class, LoadBalancerClass::KEYS, entry)
            }
            (SectionName::LoadBalancerNamespace, Some(name)) => {
                let namespace = self.config.namespaces.entry(name.clone()).or_default();
                apply(namespace, LoadBalancerNamespace::KEYS, entry)
            }
            // A class without a name has an error already; a named section of another kind has a warning.
            (SectionName::LoadBalancerClass | SectionName::LoadBalancerNamespace, None) | (_, Some(_)) => {
                return;
            }
            (SectionName::Global, None) => apply(&mut self.config.global, Global::KEYS, entry),
            (SectionName::LoadBalancer, None) => {
                apply(&mut self.config.load_balancer, LoadBalancer::KEYS, entry)
            }
            (SectionName::Networking, None) => apply(&mut self.config.networking, Networking::KEYS, entry),
            (SectionName::Route, None) => apply(&mut self.config.route, Route::KEYS, entry),
            (SectionName::Metadata, None) => apply(&mut self.config.metadata, Metadata::KEYS, entry),
            (SectionName::BlockStorage, None) => {
                self.note_without_effect(name, Some(&entry.key));
                return;
            }
        };
        match applied {
            Some(applied) => self.note(name, place, applied),
            None => self.warnings.push(place.warning(suggestion::about_unknown_key(name, &entry.key))),
        }
    }

    fn note(&mut self, name: SectionName, place: KeyPlace<'_>, applied: AppliedKey) {
        let id = (name, applied.key.to_owned());
        self.origins.insert(id.clone(), place.origin());
        if !applied.is_list {
            self.note_repetition(place, applied.key);
        }
        if place.entry.cut_by_comment {
            let text = "`#` and `;` start a comment, so the value ends before it; if the rest belongs to the value, put the value in \
                        double quotes";
            self.warnings.push(place.warning(text));
        }
        if let EntryValue::Text(text) = &place.entry.value
            && text.len() >= 2
            && text.starts_with('\'')
            && text.ends_with('\'')
        {
            let text = "single quotes become part of the value; if that is not intended, remove the quotes or use double quotes";
            self.warnings.push(place.warning(text));
        }
        match applied.result {
            Ok(None) => {
                // A later, valid value replaces an invalid one for the checks of the whole configuration.
                self.failed.remove(&id);
                self.failed.extend((place.entry.value == EntryValue::Broken).then_some(id));
            }
            Ok(Some(text)) => self.warnings.push(place.warning(text)),
            Err(fault) => {
                self.failed.insert(id);
                let value = match &place.entry.value {
                    EntryValue::Text(text) if !applied.secret => Some(text.as_str()),
                    EntryValue::Text(_) | EntryValue::Absent | EntryValue::Broken => None,
                };
                let (origin, section) = (place.origin(), title(place.section));
                self.errors.push(Finding::error(origin, Some(&section), Some(applied.key), value, &fault));
            }
        }
    }

    /// Warns about a key that is set twice in one section of a file. A later file overrides on purpose.
    fn note_repetition(&mut self, place: KeyPlace<'_>, key: &'static str) {
        let id = (place.file.to_owned(), title(place.section), key);
        if let Some(before) = self.written.insert(id, place.entry.position) {
            let text = format!(
                "the key is already set in line {}; the later value is used: remove one of the two",
                before.line
            );
            self.warnings.push(place.warning(text));
        }
    }
}

/// A key in a file.
#[derive(Clone, Copy)]
struct KeyPlace<'a> {
    file: &'a str,
    section: &'a Section,
    entry: &'a Entry,
}

impl KeyPlace<'_> {
    fn origin(&self) -> ConfigOrigin {
        at(self.file, self.entry.position)
    }

    fn warning(&self, text: impl Display) -> Finding {
        Finding::warning(self.origin(), Some(&title(self.section)), Some(&self.entry.key), text)
    }
}

fn at(file: &str, position: Position) -> ConfigOrigin {
    ConfigOrigin { file: file.to_owned(), position: Some(position) }
}

/// The result of an entry with a known key.
struct AppliedKey {
    key: &'static str,
    secret: bool,
    is_list: bool,
    result: super::section::Parsed,
}

fn apply<S>(section: &mut S, keys: &'static [Key<S>], entry: &Entry) -> Option<AppliedKey> {
    let key = keys.iter().find(|key| key.name.eq_ignore_ascii_case(&entry.key))?;
    Some(AppliedKey {
        key: key.name,
        secret: key.field.is_secret(),
        is_list: key.field.is_list(),
        result: key.field.set(section, &entry.value),
    })
}

fn title(section: &Section) -> String {
    match &section.subsection {
        Some(name) => format!("{} \"{name}\"", section.name),
        None => section.name.clone(),
    }
}

//! Reads single values, and collects their faults.

use std::fmt::Display;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;
use uuid::Uuid;

use super::fault::{Fault, Faults};
use super::origin::Origin;
use crate::config::error::shown;
use crate::config::{Config, LoadBalancer, LoadBalancerClass};
use crate::load_balancer::annotations::{Annotation, Aspect, Aspects, Form, RECLAIM_POLICY};
use crate::user_tag::MAX_OCTAVIA_LENGTH;

/// A setting has no effect.
pub(crate) const WITHOUT_EFFECT: &str = "LoadBalancerSettingWithoutEffect";
/// A setting has no effect, and its value is invalid.
const WRONG_WITHOUT_EFFECT: &str = "LoadBalancerSettingWrongWithoutEffect";
/// A value is not understood, and counts as absent.
pub(super) const NOT_UNDERSTOOD: &str = "LoadBalancerSettingNotUnderstood";

/// The sources of one Service's settings, and the faults and notices about them.
///
/// A method that finds an invalid value records it and continues with a substitute, which is never used: nothing is created, and on
/// an existing load balancer the current value counts.
pub(super) struct SettingsReader<'a> {
    pub(super) service: &'a Service,
    pub(super) config: &'a LoadBalancer,
    /// The class that the Service names, if it exists.
    pub(super) class: Option<Class<'a>>,
    pub(super) faults: Faults,
    pub(super) notices: Vec<Notice>,
    /// Aspects with a bool that is neither `true` nor `false`, which counts as absent.
    pub(super) odd: Aspects,
}

#[derive(Clone, Copy)]
pub(super) struct Class<'a> {
    pub(super) name: &'a str,
    pub(super) keys: &'a LoadBalancerClass,
}

/// A value that is not empty, and its origin.
#[derive(Clone)]
pub(super) struct Sourced<'a> {
    pub(super) text: &'a str,
    pub(super) origin: Origin,
    /// What depends on it.
    pub(super) aspects: &'static [Aspect],
}

impl<'a> Sourced<'a> {
    /// Returns a value of an annotation.
    pub(super) fn of(annotation: &Annotation, text: &'a str) -> Self {
        Self { text, origin: Origin::Annotation(annotation.key), aspects: annotation.aspects }
    }

    /// Returns the items of a list that is separated by commas or blanks.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let whole = self.clone();
        let items = self.text.split(|letter: char| letter == ',' || letter.is_whitespace());
        let items = items.filter(|item| !item.is_empty());
        items.map(move |text| Self { text, ..whole.clone() })
    }
}

impl<'a> SettingsReader<'a> {
    pub(super) fn new(service: &'a Service, config: &'a Config) -> Self {
        Self {
            service,
            config: &config.load_balancer,
            class: None,
            faults: Faults::default(),
            notices: Vec::new(),
            odd: Aspects::new(),
        }
    }

    /// Records an invalid value.
    pub(super) fn reject(&mut self, value: &Sourced<'_>, problem: impl Display, fix: impl Display) {
        self.reject_with(value, &[], problem, fix);
    }

    /// Records a value that contradicts another one, whose aspects are then invalid too.
    pub(super) fn reject_with(
        &mut self,
        value: &Sourced<'_>,
        others: &[Aspect],
        problem: impl Display,
        fix: impl Display,
    ) {
        let aspects = value.aspects.iter().chain(others).copied();
        let message = format!("{}: {} {problem}; {fix}", value.origin, shown(value.text));
        self.faults.add(Fault::new(aspects, message));
    }

    /// Reads settings that have an effect only if `used`: otherwise their faults become warnings.
    pub(super) fn used_if<T>(&mut self, used: bool, why_not: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let others = std::mem::take(&mut self.faults);
        let result = read(self);
        let own = std::mem::replace(&mut self.faults, others);
        if used {
            self.faults.absorb(own);
        } else {
            for message in own.messages() {
                self.warn(
                    WRONG_WITHOUT_EFFECT,
                    format!("{message}. This setting has no effect at present: {why_not}"),
                );
            }
        }
        result
    }

    /// Warns the user about something that is not an error.
    pub(super) fn warn(&mut self, reason: &'static str, message: String) {
        self.notices.push(Notice::warning(reason, message));
    }

    /// Warns about those of these annotations that are set and have no effect.
    pub(super) fn warn_without_effect<'n>(
        &mut self,
        annotations: impl IntoIterator<Item = &'n Annotation>,
        why: &str,
    ) {
        let there = annotations.into_iter().filter(|annotation| self.annotation(annotation).is_some());
        let keys: Vec<&str> = there.map(|annotation| annotation.key).collect();
        if !keys.is_empty() {
            self.warn(WITHOUT_EFFECT, format!("{} has no effect: {why}", keys.join(", ")));
        }
    }

    /// Returns whether the annotation exists, even if it is empty.
    pub(super) fn has(&self, annotation: &Annotation) -> bool {
        self.service.annotations.contains_key(annotation.key)
    }

    /// Returns the annotation's value. An empty value counts as absent.
    pub(super) fn annotation(&self, annotation: &Annotation) -> Option<Sourced<'a>> {
        let text = self.service.annotations.get(annotation.key)?;
        Some(Sourced::of(annotation, text)).filter(|value| !value.text.is_empty())
    }

    /// Returns the annotation's value, else that of cloud.conf. An empty annotation overrides cloud.conf.
    pub(super) fn annotation_or_config(
        &self,
        annotation: &Annotation,
        key: &'static str,
        value: Option<&'a str>,
    ) -> Option<Sourced<'a>> {
        if self.has(annotation) {
            self.annotation(annotation)
        } else {
            sourced(value, Origin::Config(key), annotation.aspects)
        }
    }

    /// Returns `spec.loadBalancerIP`.
    pub(super) fn load_balancer_ip(&self) -> Option<Sourced<'a>> {
        let origin = Origin::Field("spec.loadBalancerIP");
        sourced(self.service.load_balancer_ip.as_deref(), origin, &[Aspect::FloatingIp, Aspect::Creation])
    }

    /// Reads a bool: exactly `true` or `false`. Any other text counts as absent, as in OCCM, with a Warning.
    pub(super) fn bool(&mut self, annotation: &Annotation, default: bool) -> bool {
        let Some(value) = self.annotation(annotation) else { return default };
        parse_bool(value.text).unwrap_or_else(|| {
            self.odd.extend(value.aspects);
            let message = format!(
                "annotation {}: {} is neither \"true\" nor \"false\" and is ignored, as in OCCM; an existing load balancer is not \
                 changed; write \"true\" or \"false\"",
                annotation.key,
                shown(value.text)
            );
            self.warn(NOT_UNDERSTOOD, message);
            default
        })
    }

    /// Reads an integer within the range of the annotation.
    pub(super) fn integer(&mut self, annotation: &Annotation) -> Option<i64> {
        let value = self.annotation(annotation)?;
        let Form::Integer { min, max, unit } = annotation.form else { return None };
        let of = if unit.is_empty() { String::new() } else { format!(" of {unit}") };
        let fix = format!("write a number{of} from {min} to {max}, without a unit");
        match value.text.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => return Some(number),
            Ok(_) => self.reject(&value, "is out of range", fix),
            Err(_) => match in_unit(value.text, unit).filter(|number| (min..=max).contains(number)) {
                Some(number) => self.reject(&value, "has a unit", format!("write \"{number}\", in {unit}")),
                None => self.reject(&value, "is not a whole number", fix),
            },
        }
        None
    }

    /// Reads one of the annotation's words.
    pub(super) fn word(&mut self, annotation: &Annotation) -> Option<Sourced<'a>> {
        let value = self.annotation(annotation)?;
        let Form::Word(words) = annotation.form else { return None };
        if words.contains(&value.text) {
            return Some(value);
        }
        // Case is ignored, since PersistentVolumes spell these words differently.
        if annotation.key == RECLAIM_POLICY.key
            && let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(value.text))
        {
            return Some(Sourced { text: word, ..value });
        }
        self.reject_word(&value, words);
        None
    }

    /// Records a value that is not among the known words.
    pub(super) fn reject_word(&mut self, value: &Sourced<'_>, words: &[&str]) {
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        self.reject(value, "is not a valid value", format!("use {}", quoted.join(", ")));
    }

    /// Reads a UUID: Neutron and Octavia refuse any other id, Octavia only after it has created the VIP port.
    pub(super) fn uuid(&mut self, value: Option<Sourced<'_>>) -> Option<String> {
        let value = value?;
        if is_uuid(value.text) {
            return Some(value.text.to_owned());
        }
        self.reject(
            &value,
            "is not a UUID",
            "write the id as OpenStack shows it, such as 6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11; a name is not enough",
        );
        None
    }

    /// Reads a text that Octavia can store.
    pub(super) fn text(&mut self, value: Option<Sourced<'_>>) -> Option<String> {
        let value = value?;
        if value.text.chars().count() <= MAX_OCTAVIA_LENGTH {
            return Some(value.text.to_owned());
        }
        self.reject(&value, "is too long", format!("use at most {MAX_OCTAVIA_LENGTH} characters"));
        None
    }
}

/// Converts a duration with a unit (`5s`, `500ms`) to a number in the required unit.
fn in_unit(text: &str, unit: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: i64 = digits.parse().ok()?;
    match (&text[digits.len()..], unit) {
        ("s", "seconds") | ("ms", "milliseconds") => Some(number),
        ("s", "milliseconds") => number.checked_mul(1000),
        _ => None,
    }
}

/// Returns a value with its origin, unless it is absent or empty.
pub(super) fn sourced<'a>(
    value: Option<&'a str>,
    origin: Origin,
    aspects: &'static [Aspect],
) -> Option<Sourced<'a>> {
    value.filter(|text| !text.is_empty()).map(|text| Sourced { text, origin, aspects })
}

/// Parses exactly `true` or `false`, like OCCM.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    text.parse().ok()
}

/// Returns whether the text is a UUID, with or without dashes.
pub(super) fn is_uuid(text: &str) -> bool {
    matches!(text.len(), 32 | 36) && Uuid::try_parse(text).is_ok()
}

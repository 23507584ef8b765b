//! The properties of an annotation.

use super::aspect::Aspect;

/// One annotation. The texts are single lines of Markdown, for the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The key with its prefix.
    pub key: &'static str,
    /// The parts of the settings that depend on the value. None, if nothing reads it.
    pub aspects: &'static [Aspect],
    /// Form of the value.
    pub form: Form,
    /// What applies without the annotation: a value in code marks, or a key of cloud.conf.
    pub default: &'static str,
    /// The effect of the annotation.
    pub effect: &'static str,
    /// The effect of a change on an existing load balancer.
    pub change: Change,
    /// The meaning of an empty value.
    pub empty: Empty,
    /// The origin of the annotation.
    pub since: AnnotationSource,
}

/// Form of a value. A value of another form is an error that the user sees; a bool of another form counts as absent, with a
/// Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Exactly `true` or `false`.
    Bool,
    /// A decimal integer with an optional sign, without blanks and unit.
    Integer {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
        /// Unit, for messages; empty for counts.
        unit: &'static str,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A UUID; the text names the object, with its article.
    Uuid(&'static str),
    /// Another form, which the text describes.
    Text(&'static str),
    /// Written by this controller, and not for users to set; the text describes the value.
    Output(&'static str),
}

/// The effect of a changed annotation on an existing load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The change takes effect at once, without an interruption.
    Live,
    /// The change takes effect at once, as described.
    How(&'static str),
    /// None: the annotation has an effect only when the load balancer is created.
    Creation,
    /// None, as long as the load balancer has a floating IP.
    FloatingIpCreation,
}

/// The meaning of an empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// The same as no annotation.
    Absent,
    /// As described: it overrides cloud.conf.
    Means(&'static str),
}

/// The origin of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationSource {
    /// The Go openstack-cloud-controller-manager has it with this meaning.
    Occm,
    /// Kubernetes defines it.
    Kubernetes,
    /// This controller has it since this version.
    Version(&'static str),
}

/// The effect of adding or removing an inserted header.
pub(super) const HEADER_CHANGE: &str = "Listeners that do not speak HTTP yet are replaced, with a short interruption; other listeners are updated. The same applies when the last header is removed.";

/// The effect of a change of tags.
pub(super) const TAGS_CHANGE: &str = "New tags are added; a load balancer created by OCCM gets them together with its identity tags (see `identity-tags-per-minute`). A tag that is removed from the annotation stays on existing objects, because nothing shows whether another client set it too; remove it with `openstack loadbalancer unset --tag`.";

/// Returns an annotation with the most common properties: a bool that takes effect at once. The methods override them.
pub(super) const fn annotation(
    key: &'static str,
    since: AnnotationSource,
    aspects: &'static [Aspect],
) -> Annotation {
    let (form, change, empty) = (Form::Bool, Change::Live, Empty::Absent);
    Annotation { key, aspects, form, default: "", effect: "", change, empty, since }
}

impl Annotation {
    /// Returns whether a number is in range.
    pub(crate) fn admits(&self, number: i64) -> bool {
        matches!(self.form, Form::Integer { min, max, .. } if (min..=max).contains(&number))
    }

    /// Returns the key without its prefix, as cloud.conf has it.
    pub(crate) fn short(&self) -> &'static str {
        self.key.rsplit_once('/').map_or(self.key, |(_, key)| key)
    }

    /// Returns what [`Self::default`] has in its code marks: a value, or a key of cloud.conf.
    pub(crate) fn default_in_code(&self) -> &'static str {
        self.default.trim_matches('`')
    }

    pub(super) const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn effect(self, effect: &'static str) -> Self {
        Self { effect, ..self }
    }

    pub(super) const fn change(self, change: Change) -> Self {
        Self { change, ..self }
    }

    pub(super) const fn empty(self, meaning: &'static str) -> Self {
        Self { empty: Empty::Means(meaning), ..self }
    }
}

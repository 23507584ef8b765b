//! What is said about an annotation.

/// One annotation. The texts are Markdown of one line, for the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The whole key.
    pub key: &'static str,
    /// Form of the value.
    pub form: Form,
    /// What applies without the annotation: a value in code marks, or a key of cloud.conf.
    pub default: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// What a change does to a load balancer that exists.
    pub change: Change,
    /// What the empty text means.
    pub empty: Empty,
    /// Where it comes from.
    pub since: AnnotationSource,
}

/// Form of a value. A value of another form is an error that the user sees, or for a bool counts as absent, which the user
/// gets a Warning about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Exactly `true` or `false`.
    Bool,
    /// A decimal whole number with an optional sign, without blanks and unit.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
        /// Unit, for messages; empty for counts.
        unit: &'static str,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A UUID: of what, with its article.
    Uuid(&'static str),
    /// A form of its own, described.
    Text(&'static str),
    /// Written by this program, and not for users to set: what.
    Output(&'static str),
}

/// What a change of an annotation does to a load balancer that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is made at once, without an interruption.
    Live,
    /// It is made at once, in the way that is described.
    How(&'static str),
    /// Nothing: it matters when the load balancer is created.
    Creation,
    /// Nothing, as long as the load balancer has a floating IP.
    FloatingIpCreation,
}

/// What the empty text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// The same as no annotation.
    Absent,
    /// Something of its own, described: it hides what cloud.conf says.
    Means(&'static str),
}

/// Where an annotation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationSource {
    /// The Go openstack-cloud-controller-manager has it with this meaning.
    Occm,
    /// Kubernetes defines it.
    Kubernetes,
    /// This program has it since the given version.
    Version(&'static str),
}

/// What switching an inserted header on or off does.
pub(super) const HEADER_CHANGE: &str = "Listeners that speak no HTTP yet are replaced, with a short interruption; others are changed. Likewise where the last header goes.";

/// What a change of tags does.
pub(super) const TAGS_CHANGE: &str = "New tags are added; a load balancer that OCCM made gets them together with the tags that `identity-tags-per-minute` is about. A tag that is taken out of the annotation stays on what has it, because nothing shows whether somebody else set it too; take it off with `openstack loadbalancer unset --tag`.";

/// A bool that has an effect at once. What an annotation has of its own is added.
pub(super) const fn annotation(key: &'static str, since: AnnotationSource) -> Annotation {
    let (form, change, empty) = (Form::Bool, Change::Live, Empty::Absent);
    Annotation { key, form, default: "", effect: "", change, empty, since }
}

impl Annotation {
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

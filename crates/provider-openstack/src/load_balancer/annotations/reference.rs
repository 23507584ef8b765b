//! The reference page of annotations.

use std::fmt::Write as _;

use super::{ALL, Annotation, AnnotationSource, Change, Empty, Form};
use crate::released::{PROGRAM, marked};

const HEAD: &str = "\
# Annotations of Services

<!-- Generated from the table of annotations. To regenerate it:
     UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test settings reference -->

Annotations override, for one Service, the defaults in `[LoadBalancer]` of [cloud.conf](cloud-conf.md).

- A value of the wrong form, or out of range, is an error: the Service gets an Event that names key, value and what to
  do. All wrong values are named at once. A new load balancer is not created until they are corrected. An existing load
  balancer keeps the setting that the value is about; it still follows the Service in everything else, such as nodes, ports
  and source ranges. A new port copies such a setting from the Service's other ports; if it is about source ranges or
  certificates, the new port waits.
- A boolean is exactly `true` or `false`. Any other text is ignored, as in OCCM, and a Warning says what to
  write; what exists stays as it is. Numbers are decimal and have no unit. Spaces are not removed.
- An empty value means the same as no annotation, unless the table says otherwise.
- An unknown key with the prefix `loadbalancer.openstack.org/` has no effect; a Warning Event suggests the key that may be
  meant.

Keys marked *OCCM* have the same name and meaning as in the Go openstack-cloud-controller-manager, in the version that is
named, or in all of the last ones; for the others, *Since* is the version that added them. Keys in the row *Default* are those of `[LoadBalancer]`.
";

/// Returns the reference page, `docs/reference/annotations.md`. `of_occm` returns since when OCCM has a key, if it has.
pub fn reference_markdown(of_occm: impl Fn(&str) -> Option<String>) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| Annotation | Does |\n| --- | --- |\n");
    for annotation in ALL {
        let _ = writeln!(
            page,
            "| [`{}`](#{}) | {} |",
            annotation.key,
            anchor(annotation.key),
            first_sentence(annotation.effect)
        );
    }
    for annotation in ALL {
        page.push_str(&entry(annotation, of_occm(annotation.key)));
    }
    page
}

/// Returns the anchor that Git forges generate for a heading.
fn anchor(key: &str) -> String {
    key.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter)).collect()
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

fn entry(annotation: &Annotation, of_occm: Option<String>) -> String {
    let mut rows = vec![("Value", value(annotation.form))];
    if !annotation.default.is_empty() {
        rows.push(("Default", annotation.default.to_owned()));
    }
    if !matches!(annotation.form, Form::Output(_)) {
        rows.push(("Change on a live Service", change(annotation.change).to_owned()));
    }
    if let Empty::Means(meaning) = annotation.empty {
        rows.push(("Empty", meaning.to_owned()));
    }
    let ours = since(annotation.since);
    rows.push(("Since", [ours, of_occm].into_iter().flatten().collect::<Vec<_>>().join("; ")));

    let mut text = format!("\n## `{}`\n\n{}\n\n| | |\n| --- | --- |\n", annotation.key, annotation.effect);
    for (name, content) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {name} | {content} |");
    }
    text
}

fn value(form: Form) -> String {
    match form {
        Form::Bool => "`true` or `false`".to_owned(),
        Form::Integer { min, max, unit } => {
            let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
            format!("whole number, {min} to {max}{unit}")
        }
        Form::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Form::Uuid(of) => format!("UUID of {of}"),
        Form::Text(form) => form.to_owned(),
        Form::Output(what) => format!("{what}; written by openstack-ccm: do not set it"),
    }
}

fn change(change: Change) -> &'static str {
    match change {
        Change::Live => "Takes effect at once.",
        Change::How(how) => how,
        Change::Creation => "None: it only matters when the load balancer is created.",
        Change::FloatingIpCreation => "None, as long as the load balancer has a floating IP.",
    }
}

fn since(since: AnnotationSource) -> Option<String> {
    match since {
        AnnotationSource::Occm => None,
        AnnotationSource::Kubernetes => Some("Kubernetes".to_owned()),
        AnnotationSource::Version(version) => Some(marked(version, PROGRAM)),
    }
}

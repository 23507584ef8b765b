//! Tags that the user wants on created objects, in addition to this controller's.

use super::reader::{NOT_UNDERSTOOD, SettingsReader, Sourced};
use crate::config::error::shown;
use crate::load_balancer::annotations::{Annotation, LISTENER_TAGS, LOAD_BALANCER_TAGS, POOL_TAGS, TAGS};
use crate::load_balancer::names::Tags;
use crate::user_tag::{self, MAX_NEUTRON_LENGTH, MAX_OCTAVIA_LENGTH};

/// Tags of the user, by type of object. They are added and never removed, since nothing shows whether another client set them too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserTags {
    /// Tags of all objects.
    pub all: Tags,
    pub load_balancer: Tags,
    pub listener: Tags,
    pub pool: Tags,
}

pub(super) fn user_tags(reader: &mut SettingsReader<'_>) -> UserTags {
    let configured = reader.config.tags.iter().cloned().collect();
    let all = &tags(reader, &TAGS, MAX_NEUTRON_LENGTH) | &configured;
    let mut of = |annotation| &tags(reader, annotation, MAX_OCTAVIA_LENGTH) | &all;
    let (load_balancer, listener, pool) = (of(&LOAD_BALANCER_TAGS), of(&LISTENER_TAGS), of(&POOL_TAGS));
    UserTags { load_balancer, listener, pool, all }
}

fn tags(reader: &mut SettingsReader<'_>, annotation: &Annotation, longest: usize) -> Tags {
    let Some(value) = reader.annotation(annotation) else { return Tags::new() };
    if let Some(list) = value.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let tags: Vec<&str> = list.split(',').map(|tag| tag.trim().trim_matches(['"', '\''])).collect();
        let message = format!(
            "annotation {}: {} is a list in brackets and is ignored; write \"{}\"",
            annotation.key,
            shown(value.text),
            tags.join(",")
        );
        reader.warn(NOT_UNDERSTOOD, message);
        return Tags::new();
    }
    let mut tags = Tags::new();
    for text in value.text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        match user_tag::problem(text, longest) {
            Some((problem, fix)) => {
                reader.reject(&Sourced { text, ..value.clone() }, problem, fix);
            }
            None => {
                tags.insert(text.to_owned());
            }
        }
    }
    tags
}

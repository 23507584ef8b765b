//! The lines of a plan for users: one for each object that would change.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange, is_placeholder};
use serde_json::Value;

use super::fields::{self, Field};
use super::journal::Call;
use super::line::{Line, Mark};

/// Returns the lines of some calls, in the order in which the objects are first changed.
pub fn lines(calls: &[Call]) -> Vec<Line> {
    let mut lines = cloud(&ends(calls.iter().flat_map(Call::changes)));
    lines.extend(super::cluster_lines::lines(calls));
    lines
}

/// An object before the first and after the last change.
#[derive(Debug)]
struct CloudEnds<'a> {
    kind: Kind,
    id: &'a str,
    parent: Option<&'a str>,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
}

/// Returns each object once, without those that would be created and deleted again.
fn ends<'a>(changes: impl Iterator<Item = &'a ObjectChange>) -> Vec<CloudEnds<'a>> {
    let mut places: BTreeMap<(Kind, &str), usize> = BTreeMap::new();
    let mut ends: Vec<CloudEnds<'a>> = Vec::new();
    for change in changes {
        let ObjectChange { kind, id, parent, before, after } = change;
        match places.get(&(*kind, id.as_str())) {
            Some(place) => ends[*place].after = after.as_ref(),
            None => {
                places.insert((*kind, id), ends.len());
                let (before, after) = (before.as_ref(), after.as_ref());
                ends.push(CloudEnds { kind: *kind, id, parent: parent.as_deref(), before, after });
            }
        }
    }
    ends.retain(|one| (one.before.is_some() || one.after.is_some()) && one.before != one.after);
    ends
}

fn cloud(ends: &[CloudEnds<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut summed: Vec<(Kind, Option<&str>)> = Vec::new();
    let mut replaced: Vec<&str> = Vec::new();
    for one in ends {
        if replaced.contains(&one.id) {
            continue;
        }
        if let Some(group) = group(one) {
            if !summed.contains(&group) {
                summed.push(group);
                lines.push(sum(ends, group));
            }
            continue;
        }
        match ends.iter().find(|other| is_replacement(one, other)) {
            Some(other) => {
                replaced.push(other.id);
                let (old, new) = if one.after.is_none() { (one, other) } else { (other, one) };
                lines.push(line(Mark::Replace, old, old.before, new.after));
            }
            None => {
                let mark = match (one.before, one.after) {
                    (None, _) => Mark::Create,
                    (_, None) => Mark::Delete,
                    (Some(_), Some(_)) => Mark::Change,
                };
                lines.push(line(mark, one, one.before, one.after));
            }
        }
    }
    lines.retain(|line| line.mark != Mark::Change || !line.fields.is_empty());
    lines
}

/// Returns whether one of the two objects would replace the other.
fn is_replacement(one: &CloudEnds<'_>, other: &CloudEnds<'_>) -> bool {
    let pair = [(one, other), (other, one)];
    let pair = pair.into_iter().find(|(gone, new)| gone.after.is_none() && new.before.is_none());
    let Some((Some(gone), Some(new))) = pair.map(|(gone, new)| (gone.before, new.after)) else {
        return false;
    };
    if one.kind != other.kind {
        return false;
    }
    match one.kind {
        Kind::LoadBalancer | Kind::Pool | Kind::SecurityGroup => gone["name"] == new["name"],
        Kind::Listener => gone["protocol_port"] == new["protocol_port"],
        Kind::FloatingIp => gone["description"] == new["description"],
        Kind::HealthMonitor | Kind::Member | Kind::SecurityGroupRule | Kind::Port | Kind::Router => false,
    }
}

fn line(mark: Mark, one: &CloudEnds<'_>, before: Option<&Value>, after: Option<&Value>) -> Line {
    let shown = before.or(after).unwrap_or(&Value::Null);
    Line {
        mark,
        kind: one.kind.to_string(),
        id: (!is_placeholder(one.id)).then(|| one.id.to_owned()),
        name: fields::name(one.kind, shown),
        parent: None,
        fields: match (mark, before, after) {
            (Mark::Change | Mark::Replace, Some(before), Some(after)) => {
                fields::changed(one.kind, before, after)
            }
            (Mark::Create, _, Some(after)) => fields::essential(one.kind, after),
            _ => Vec::new(),
        },
        count: 1,
    }
}

/// Returns the group of an object that shares its line with others: members by pool, rules by security group.
fn group<'a>(one: &CloudEnds<'a>) -> Option<(Kind, Option<&'a str>)> {
    let parent = match one.kind {
        Kind::Member => one.parent,
        Kind::SecurityGroupRule => one.before.or(one.after)?["security_group_id"].as_str(),
        _ => return None,
    };
    Some((one.kind, parent))
}

/// Returns the line of a group.
fn sum(ends: &[CloudEnds<'_>], of: (Kind, Option<&str>)) -> Line {
    let kind = of.0;
    let all: Vec<&CloudEnds<'_>> = ends.iter().filter(|one| group(one) == Some(of)).collect();
    let which = |chosen: fn(&CloudEnds<'_>) -> bool| -> Vec<&CloudEnds<'_>> {
        all.iter().copied().filter(|one| chosen(one)).collect()
    };
    let (new, gone) = (which(|one| one.before.is_none()), which(|one| one.after.is_none()));
    let other = which(|one| one.before.is_some() && one.after.is_some());
    let mark = match (new.is_empty(), gone.is_empty(), other.is_empty()) {
        (false, true, true) => Mark::Create,
        (true, false, true) => Mark::Delete,
        _ => Mark::Change,
    };
    let name = |one: &CloudEnds<'_>| fields::name(kind, one.before.or(one.after).unwrap_or(&Value::Null));
    let names = |ends: &[&CloudEnds<'_>]| ends.iter().map(|one| name(one)).collect();
    let mut fields = vec![Field { removed: names(&gone), added: names(&new), ..Field::default() }];
    for one in other {
        let (before, after) = (one.before.unwrap_or(&Value::Null), one.after.unwrap_or(&Value::Null));
        fields.extend(fields::changed(kind, before, after).into_iter().map(|field| field.of(&name(one))));
    }
    fields.retain(|field| !field.is_empty());
    let parent = of.1.filter(|_| kind == Kind::Member).map(str::to_owned);
    Line { mark, kind: format!("{kind}s"), id: None, name: String::new(), parent, fields, count: all.len() }
}

//! One change of a pool's members: at once, or in parts after a refusal.

use std::sync::Arc;

use super::draft::Draft;
use crate::load_balancer::objects::step::{Handle, MemberStep, Step};
use crate::load_balancer::objects::{Member, ObservedMember};

pub(super) struct BatchChange<'a> {
    pub(super) pool: Handle,
    /// The wanted members, sorted by key: those that stay, and new ones.
    pub(super) all: Vec<Arc<Member>>,
    pub(super) stay: Vec<Arc<Member>>,
    pub(super) new: Vec<Arc<Member>>,
    pub(super) gone: Vec<&'a ObservedMember>,
    pub(super) stay_as_they_are: bool,
    /// Whether no member failed.
    pub(super) are_sound: bool,
    /// Whether new members can be added without naming others.
    pub(super) additive: bool,
}

impl BatchChange<'_> {
    pub(super) fn plan(&self, draft: &mut Draft) {
        let changes_stay = !self.stay_as_they_are || !self.are_sound;
        let at_once = match (self.new.as_slice(), self.gone.as_slice()) {
            ([], []) if !changes_stay => return,
            ([_, ..], []) if !changes_stay && self.additive => self.add(self.new.clone()),
            ([], [gone]) if !changes_stay && !gone.id.is_empty() => self.delete(gone),
            _ => self.replace_all(self.all.clone()),
        };
        // Failed members are sent with any other change, at once; sending only them is a repair.
        let repairs = self.stay_as_they_are && self.new.is_empty() && self.gone.is_empty();
        match draft.refusals.of(&at_once) {
            None => draft.change(repairs, at_once),
            Some(_) => self.in_parts(draft, changes_stay),
        }
    }

    /// Deletes what goes by id, and adds what comes in halves, in the order of names, as far as the cloud did not refuse them: so all
    /// pools get the same ones. The last member goes only with one that comes: a pool that serves is never emptied.
    fn in_parts(&self, draft: &mut Draft, changes_stay: bool) {
        let last = usize::from(self.stay.is_empty());
        for gone in self.gone.iter().skip(last).filter(|gone| !gone.id.is_empty()) {
            draft.step(self.delete(gone));
        }
        if changes_stay && !self.stay.is_empty() {
            draft.change(self.stay_as_they_are, self.replace_all(self.stay.clone()));
        }
        let replaces_last = last == 1 && !self.gone.is_empty();
        let send = |part: &[Arc<Member>], there: &[Arc<Member>]| match self.additive && !replaces_last {
            true => self.add(part.to_vec()),
            false => self.replace_all([there, part].concat()),
        };
        let mut in_order = self.all.clone();
        in_order.sort_by(|one, other| (&one.name, one.key()).cmp(&(&other.name, other.key())));
        let is_refused = |part: &[Arc<Member>]| draft.refusals.of(&send(part, &self.stay)).is_some();
        let (mut parts, mut refused) = (Vec::new(), Vec::new());
        self.halve(&in_order, &is_refused, &mut parts, &mut refused);
        let mut there = self.stay.clone();
        for part in parts {
            draft.step(send(&part, &there));
            there.extend(part);
        }
        if !refused.is_empty() {
            draft.step(send(&refused, &there));
        }
    }

    /// Splits the new members among `all` into parts that the cloud did not refuse, and single ones that it did.
    fn halve(
        &self,
        all: &[Arc<Member>],
        is_refused: &impl Fn(&[Arc<Member>]) -> bool,
        parts: &mut Vec<Vec<Arc<Member>>>,
        refused: &mut Vec<Arc<Member>>,
    ) {
        let is_new =
            |member: &&Arc<Member>| self.new.binary_search_by_key(&member.key(), |new| new.key()).is_ok();
        let part: Vec<Arc<Member>> = all.iter().filter(is_new).cloned().collect();
        match part.len() {
            0 => {}
            _ if !is_refused(&part) => parts.push(part),
            1 => refused.extend(part),
            _ => {
                let (first, second) = all.split_at(all.len() / 2);
                self.halve(first, is_refused, parts, refused);
                self.halve(second, is_refused, parts, refused);
            }
        }
    }

    fn add(&self, members: Vec<Arc<Member>>) -> Step {
        Step::Member(MemberStep::Add { pool: self.pool.clone(), members: by_key(members) })
    }

    fn replace_all(&self, members: Vec<Arc<Member>>) -> Step {
        Step::Member(MemberStep::ReplaceAll { pool: self.pool.clone(), members: by_key(members) })
    }

    fn delete(&self, gone: &ObservedMember) -> Step {
        let (id, name) = (gone.id.clone(), gone.member.name.clone());
        let pool_id = self.pool.id().unwrap_or_default().to_owned();
        Step::Member(MemberStep::Delete { pool_id, id, name })
    }
}

fn by_key(mut members: Vec<Arc<Member>>) -> Vec<Arc<Member>> {
    members.sort_by_key(|member| member.key());
    members
}

//! Members, kept by pool: that is how they are looked for, and a cloud has many times more of them than of anything else.

use std::collections::BTreeMap;

use super::load_balancing::Member;

#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    /// Members by id, by pool. No pool without a member is kept.
    by_pool: BTreeMap<String, BTreeMap<String, Member>>,
    /// The pool of each member.
    pools: BTreeMap<String, String>,
}

impl Members {
    pub(crate) fn insert(&mut self, member: Member) {
        let id = member.entity.id.clone();
        self.pools.insert(id.clone(), member.pool_id.clone());
        self.by_pool.entry(member.pool_id.clone()).or_default().insert(id, member);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Member> {
        self.by_pool.get(self.pools.get(id)?)?.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.by_pool.get_mut(self.pools.get(id)?)?.get_mut(id)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(pool_id) = self.pools.get(id).cloned() {
            self.retain_in(&pool_id, |member| member.entity.id != id);
        }
    }

    /// Keeps the members of a pool that fulfil a condition.
    pub(crate) fn retain_in(&mut self, pool_id: &str, keeps: impl Fn(&Member) -> bool) {
        let Some(members) = self.by_pool.get_mut(pool_id) else { return };
        members.retain(|id, member| {
            let keeps = keeps(member);
            if !keeps {
                self.pools.remove(id);
            }
            keeps
        });
        if members.is_empty() {
            self.by_pool.remove(pool_id);
        }
    }

    /// All of them.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Member> {
        self.by_pool.values().flat_map(BTreeMap::values)
    }

    /// Those of a pool, by id.
    pub(crate) fn of(&self, pool_id: &str) -> impl Iterator<Item = &Member> {
        self.by_pool.get(pool_id).into_iter().flat_map(BTreeMap::values)
    }

    /// Those of a pool, to be changed.
    pub(crate) fn of_mut(&mut self, pool_id: &str) -> impl Iterator<Item = &mut Member> {
        self.by_pool.get_mut(pool_id).into_iter().flat_map(BTreeMap::values_mut)
    }

    /// Those of the pools that fulfil a condition, to be changed.
    pub(crate) fn of_pools_mut(
        &mut self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &mut Member> {
        self.by_pool
            .iter_mut()
            .filter(move |(pool_id, _)| is_wanted(pool_id))
            .flat_map(|(_, members)| members.values_mut())
    }
}

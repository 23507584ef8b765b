//! The keys that can be taken, in order: the most urgent first, and equally urgent keys by namespaces in turn.

use std::collections::{BTreeMap, HashMap};

use super::Key;

/// The place of a key: the smallest is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) rank: u32,
    /// Each namespace has one key in each round of a rank.
    round: u64,
    /// The order in which keys were queued.
    pub(super) sequence: u64,
}

pub(super) struct Ready<K> {
    in_order: BTreeMap<Place, K>,
    by_age: BTreeMap<u64, Place>,
    /// The last round of each namespace, by rank. A rank without queued keys begins anew.
    rounds: BTreeMap<u32, HashMap<String, u64>>,
}

impl<K> Default for Ready<K> {
    fn default() -> Self {
        Self { in_order: BTreeMap::new(), by_age: BTreeMap::new(), rounds: BTreeMap::new() }
    }
}

impl<K: Key> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }

    pub(super) fn insert(&mut self, rank: u32, sequence: u64, key: K) -> Place {
        let current = self.first_of(rank).map_or(0, |first| first.round);
        let rounds = self.rounds.entry(rank).or_default();
        let round = rounds.get(key.namespace()).map_or(current, |last| current.max(last + 1));
        rounds.insert(key.namespace().to_owned(), round);
        let place = Place { rank, round, sequence };
        self.by_age.insert(sequence, place);
        self.in_order.insert(place, key);
        place
    }

    pub(super) fn remove(&mut self, place: &Place) -> Option<K> {
        let key = self.in_order.remove(place)?;
        self.by_age.remove(&place.sequence);
        if self.first_of(place.rank).is_none() {
            self.rounds.remove(&place.rank);
        }
        Some(key)
    }

    /// Returns the place of the next key.
    pub(super) fn first(&self) -> Option<Place> {
        self.in_order.first_key_value().map(|(place, _)| *place)
    }

    /// Returns the key that was queued first, with its place.
    pub(super) fn oldest(&self) -> Option<(Place, &K)> {
        let place = *self.by_age.first_key_value()?.1;
        Some((place, self.in_order.get(&place)?))
    }

    fn first_of(&self, rank: u32) -> Option<Place> {
        let from = Place { rank, round: 0, sequence: 0 };
        let (place, _) = self.in_order.range(from..).next()?;
        (place.rank == rank).then_some(*place)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// `a1` is of namespace `a`.
    impl Key for &'static str {
        fn namespace(&self) -> &str {
            &self[..1]
        }
    }

    fn order(ready: &mut Ready<&'static str>) -> String {
        let next = || ready.first().and_then(|place| ready.remove(&place));
        std::iter::from_fn(next).collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case::urgency(&[(5, "a1"), (0, "a2"), (5, "b1"), (1, "b2")], "a2 b2 a1 b1")]
    #[case::turns(&[(0, "a1"), (0, "a2"), (0, "a3"), (0, "b1"), (0, "b2"), (0, "c1")], "a1 b1 c1 a2 b2 a3")]
    #[case::turns_within_a_rank(&[(1, "a1"), (1, "a2"), (0, "b1"), (1, "b2")], "b1 a1 b2 a2")]
    #[case::one_namespace(&[(0, "a1"), (0, "a2"), (0, "a3")], "a1 a2 a3")]
    fn the_most_urgent_goes_first_and_namespaces_take_turns(
        #[case] queued: &[(u32, &'static str)],
        #[case] expected: &str,
    ) {
        let mut ready = Ready::default();
        for (sequence, (rank, key)) in (0..).zip(queued) {
            ready.insert(*rank, sequence, *key);
        }
        assert_eq!(order(&mut ready), expected);
        assert!(ready.rounds.is_empty() && ready.by_age.is_empty());
    }

    #[test]
    fn a_namespace_that_comes_late_waits_for_one_key_of_each_other() {
        let mut ready = Ready::default();
        for (sequence, key) in (0..).zip(["a1", "a2", "a3", "a4", "b1", "b2", "b3"]) {
            ready.insert(0, sequence, key);
        }
        for _ in 0..3 {
            let first = ready.first().unwrap();
            ready.remove(&first);
        }
        ready.insert(0, 7, "c1");
        ready.insert(0, 8, "c2");
        assert_eq!(order(&mut ready), "b2 c1 a3 b3 c2 a4");
    }
}

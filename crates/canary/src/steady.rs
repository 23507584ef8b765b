//! Derives a verdict from looks. Pure: the time is passed in.

use std::time::Duration;

use tokio::time::Instant;

use crate::verdict::{Finding, Verdict};

/// Number of equal looks that make a verdict.
const EQUAL_LOOKS: u8 = 3;

/// How slowly a verdict changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long a node that was unfit has to be found fit before it counts as fit.
    pub fit_again_after: Duration,
    /// How long a verdict counts without being renewed.
    pub lapse_after: Duration,
}

/// The finding held for a node, and a rising one that may replace it.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    patience: Patience,
    held: Option<Held>,
    rising: Option<Rising>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    finding: Finding,
    renewed: Instant,
}

/// Equal looks that differ from the held finding.
#[derive(Clone, Copy, Debug)]
struct Rising {
    finding: Finding,
    looks: u8,
    since: Instant,
}

impl Steady {
    /// Starts without a finding.
    pub(crate) fn new(patience: Patience) -> Self {
        Self { patience, held: None, rising: None }
    }

    /// Adds the finding of a look.
    pub(crate) fn look(&mut self, finding: Finding, now: Instant) {
        self.lapse(now);
        if !finding.is_known() {
            return;
        }
        if let Some(held) = self.held.as_mut().filter(|held| held.finding == finding) {
            held.renewed = now;
            self.rising = None;
            return;
        }
        let rising = match self.rising.filter(|rising| rising.finding == finding) {
            Some(rising) => Rising { looks: rising.looks.saturating_add(1), ..rising },
            None => Rising { finding, looks: 1, since: now },
        };
        let waits = self.waits(finding)
            && now.saturating_duration_since(rising.since) < self.patience.fit_again_after;
        if rising.looks >= EQUAL_LOOKS && !waits {
            self.held = Some(Held { finding, renewed: now });
            self.rising = None;
        } else {
            self.rising = Some(rising);
        }
    }

    /// Whether this finding would make an unfit node fit.
    fn waits(&self, finding: Finding) -> bool {
        let unfit = self.held.is_some_and(|held| held.finding.verdict() == Verdict::Unfit);
        unfit && finding.verdict() == Verdict::Fit
    }

    /// Returns the held finding, if any.
    pub(crate) fn held(&mut self, now: Instant) -> Option<Finding> {
        self.lapse(now);
        self.held.map(|held| held.finding)
    }

    /// Whether the next look should come soon: no finding is held, or another one is rising.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.held.is_none() || self.rising.is_some()
    }

    fn lapse(&mut self, now: Instant) {
        let lapsed = |held: Held| now.saturating_duration_since(held.renewed) >= self.patience.lapse_after;
        if self.held.is_some_and(lapsed) {
            self.held = None;
            self.rising = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Finding::{Contradiction, Honours, Ignores, NeverShortCircuits, OtherCanary, Silence};
    use super::*;

    const PATIENCE: Patience =
        Patience { fit_again_after: Duration::from_secs(60), lapse_after: Duration::from_secs(300) };

    /// Returns the held finding after looks that are 10 s apart.
    fn held_after(looks: &[Finding]) -> Option<Finding> {
        let mut steady = Steady::new(PATIENCE);
        let mut now = Instant::now();
        for look in looks {
            now += Duration::from_secs(10);
            steady.look(*look, now);
        }
        steady.held(now)
    }

    #[rstest]
    #[case::two_are_too_few(&[Honours, Honours], None)]
    #[case::three_equal(&[Honours, Honours, Honours], Some(Honours))]
    #[case::three_unequal(&[Honours, Ignores, Honours], None)]
    #[case::silence_breaks_nothing(&[Honours, Silence, Honours, OtherCanary, Honours], Some(Honours))]
    #[case::silence_is_no_verdict(&[Silence, Silence, Silence, Silence], None)]
    #[case::unfit_after_three(&[Honours, Honours, Honours, Ignores, Ignores, Ignores], Some(Ignores))]
    #[case::one_odd_look_changes_nothing(&[Honours, Honours, Honours, Ignores, Honours, Ignores], Some(Honours))]
    #[case::fit_again_only_later(&[Ignores, Ignores, Ignores, Honours, Honours, Honours, Honours], Some(Ignores))]
    #[case::fit_again(&[Ignores, Ignores, Ignores, Honours, Honours, Honours, Honours, Honours, Honours, Honours], Some(Honours))]
    #[case::patience_begins_anew(&[Ignores, Ignores, Ignores, Honours, Honours, Honours, Honours, Honours, Ignores, Honours, Honours, Honours], Some(Ignores))]
    #[case::another_reason_needs_no_patience(&[Honours, Honours, Honours, NeverShortCircuits, NeverShortCircuits, NeverShortCircuits], Some(NeverShortCircuits))]
    #[case::contradiction_ends_a_verdict(&[Honours, Honours, Honours, Contradiction, Contradiction, Contradiction], Some(Contradiction))]
    fn equal_looks_make_a_verdict(#[case] looks: &[Finding], #[case] expected: Option<Finding>) {
        assert_eq!(held_after(looks), expected);
    }

    #[test]
    fn a_verdict_that_is_not_renewed_ends() {
        let mut steady = Steady::new(PATIENCE);
        let start = Instant::now();
        (0..3).for_each(|_| steady.look(Honours, start));
        let nearly = start + Duration::from_secs(299);
        steady.look(Silence, nearly);
        assert_eq!(steady.held(nearly), Some(Honours));
        assert_eq!(steady.held(start + Duration::from_secs(300)), None);
        assert!(steady.is_unsettled());
    }
}

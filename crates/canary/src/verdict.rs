//! What the dials of one look mean. Pure.
//!
//! | ClusterIP | control | subject | the node |
//! | --- | --- | --- | --- |
//! | our token | our token | no answer with our token | honours the mode |
//! | our token | our token | our token | ignores it |
//! | our token | no | no | never short-circuits: fit as well |
//! | no | | no | nothing is known |
//! | any | no | our token | contradiction |
//!
//! An answer with the token of another canary, as during a rollout, makes a look worthless: it may come by a short circuit
//! or not.

use serde::{Deserialize, Serialize};

/// The result of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Our token.
    Ours,
    /// The token of another canary.
    OtherCanary,
    /// No answer in time, a refusal, or no canary's answer.
    NotOurs,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The service proxy short-circuits addresses, and leaves those with `ipMode: Proxy` alone.
    Honours,
    /// The service proxy short-circuits no address of a load balancer.
    NeverShortCircuits,
    /// The service proxy short-circuits addresses with `ipMode: Proxy` too.
    Ignores,
    /// The subject answered and the control did not: something else than a service proxy is at work.
    Contradiction,
    /// Not even the ClusterIP answered: the pod network or a policy is in the way, or no service proxy works here.
    Silence,
    /// Pods of another canary answered.
    OtherCanary,
}

/// Whether the service proxy of a node honours the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It honours the mode, or short-circuits nothing.
    Fit,
    /// It ignores the mode.
    Unfit,
    /// Nothing is known.
    Unknown,
}

impl Verdict {
    /// Stable value for labels and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Unfit => "unfit",
            Self::Unknown => "unknown",
        }
    }
}

impl Finding {
    /// Returns the verdict on the node.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Honours | Self::NeverShortCircuits => Verdict::Fit,
            Self::Ignores => Verdict::Unfit,
            Self::Contradiction | Self::Silence | Self::OtherCanary => Verdict::Unknown,
        }
    }

    /// Whether the finding may end a standing verdict. A look that shows nothing may not.
    pub fn is_known(self) -> bool {
        !matches!(self, Self::Silence | Self::OtherCanary)
    }

    /// Returns a text for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Honours => "its service proxy does not short-circuit addresses with ipMode Proxy",
            Self::NeverShortCircuits => "its service proxy short-circuits no address of a load balancer",
            Self::Ignores => "its service proxy short-circuits addresses with ipMode Proxy",
            Self::Contradiction => {
                "the address with ipMode Proxy was answered and the address with ipMode VIP was not: something other than a service proxy \
                 uses the canary's addresses"
            }
            Self::Silence => "the canary's own ClusterIP does not answer on this node",
            Self::OtherCanary => "pods of another rollout of the canary answer",
        }
    }
}

/// Judges one look by the table of this module.
pub fn judge(cluster_ip: Answer, control: Answer, subject: Answer) -> Finding {
    use Answer::{NotOurs, OtherCanary, Ours};
    match (cluster_ip, control, subject) {
        (OtherCanary, _, _) | (_, OtherCanary, _) | (_, _, OtherCanary) => Finding::OtherCanary,
        (_, NotOurs, Ours) => Finding::Contradiction,
        (NotOurs, _, _) => Finding::Silence,
        (Ours, Ours, Ours) => Finding::Ignores,
        (Ours, Ours, NotOurs) => Finding::Honours,
        (Ours, NotOurs, NotOurs) => Finding::NeverShortCircuits,
    }
}

/// Returns the worst finding of all address families: the mode must be honoured in each.
pub fn over_families(findings: &[Finding]) -> Finding {
    use Finding::{Contradiction, Honours, Ignores, NeverShortCircuits, OtherCanary, Silence};
    let worst_first = [Ignores, Contradiction, OtherCanary, Silence, Honours, NeverShortCircuits];
    worst_first.into_iter().find(|finding| findings.contains(finding)).unwrap_or(Silence)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Answer::{NotOurs, OtherCanary, Ours};
    use super::*;

    #[rstest]
    #[case::honours(Ours, Ours, NotOurs, Finding::Honours, Verdict::Fit)]
    #[case::ignores(Ours, Ours, Ours, Finding::Ignores, Verdict::Unfit)]
    #[case::never(Ours, NotOurs, NotOurs, Finding::NeverShortCircuits, Verdict::Fit)]
    #[case::silence(NotOurs, NotOurs, NotOurs, Finding::Silence, Verdict::Unknown)]
    #[case::only_control(NotOurs, Ours, NotOurs, Finding::Silence, Verdict::Unknown)]
    #[case::no_cluster_ip_proves_nothing(NotOurs, Ours, Ours, Finding::Silence, Verdict::Unknown)]
    #[case::contradiction(Ours, NotOurs, Ours, Finding::Contradiction, Verdict::Unknown)]
    #[case::contradiction_in_silence(NotOurs, NotOurs, Ours, Finding::Contradiction, Verdict::Unknown)]
    #[case::rollout_at_the_cluster_ip(OtherCanary, Ours, NotOurs, Finding::OtherCanary, Verdict::Unknown)]
    #[case::rollout_at_the_control(Ours, OtherCanary, NotOurs, Finding::OtherCanary, Verdict::Unknown)]
    #[case::rollout_at_the_subject(Ours, Ours, OtherCanary, Finding::OtherCanary, Verdict::Unknown)]
    fn dials_are_judged_by_the_table(
        #[case] cluster_ip: Answer,
        #[case] control: Answer,
        #[case] subject: Answer,
        #[case] finding: Finding,
        #[case] verdict: Verdict,
    ) {
        assert_eq!(judge(cluster_ip, control, subject), finding);
        assert_eq!(finding.verdict(), verdict);
    }

    /// An outage that looks like a fit node would lead pods into the short circuit: without the control's answer only that
    /// of the ClusterIP may make a node fit.
    #[test]
    fn a_node_is_fit_only_where_the_way_is_proven() {
        let all = [Ours, OtherCanary, NotOurs];
        for (cluster_ip, control, subject) in
            all.into_iter().flat_map(|a| all.into_iter().flat_map(move |b| all.map(|c| (a, b, c))))
        {
            let fit = judge(cluster_ip, control, subject).verdict() == Verdict::Fit;
            assert!(
                !fit || (cluster_ip == Ours && subject == NotOurs),
                "{cluster_ip:?} {control:?} {subject:?}"
            );
        }
    }

    #[rstest]
    #[case::both_fit(&[Finding::Honours, Finding::NeverShortCircuits], Finding::Honours)]
    #[case::one_ignores(&[Finding::Honours, Finding::Ignores], Finding::Ignores)]
    #[case::one_silent(&[Finding::Honours, Finding::Silence], Finding::Silence)]
    #[case::silent_and_ignores(&[Finding::Silence, Finding::Ignores], Finding::Ignores)]
    #[case::none(&[], Finding::Silence)]
    fn a_node_is_fit_in_every_family(#[case] findings: &[Finding], #[case] expected: Finding) {
        assert_eq!(over_families(findings), expected);
    }
}

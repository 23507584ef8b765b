//! Which parts of a decision are news to the user. Pure.

use openstack_ccm_core::notice::Notice;

use crate::advertisement::{Advertisement, Mode};

/// Mode and reason of a publication, as metric labels.
pub type Labels = (&'static str, &'static str);

/// The reason of a publication that another program wrote, and the mode of one that this program never writes.
const OTHER_WRITER: &str = "other_writer";
const OTHER_MODE: &str = "other";

/// What was reported last about the publication of one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    published: Option<Labels>,
    shut_out: Option<String>,
    bypassed: Option<String>,
    /// Whether to repeat warnings that still hold.
    again: bool,
}

/// The changes to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The mode and reason before and now, where they differ.
    pub changed: Option<(Option<Labels>, Labels)>,
    /// Events for the Service, in order.
    pub notices: Vec<Notice>,
}

impl Announced {
    /// Returns mode and reason of the last decision, as metric labels; `None` before the first.
    pub fn published(&self) -> Option<Labels> {
        self.published
    }

    /// Records that another program's status stays, published in this mode. Returns mode and reason before and now, where they differ.
    pub fn left_to_others(&mut self, shown: Option<Mode>) -> Option<(Option<Labels>, Labels)> {
        let now = (shown.map_or(OTHER_MODE, Mode::as_str), OTHER_WRITER);
        let before = self.published.replace(now);
        (before != Some(now)).then_some((before, now))
    }

    /// Whether the status was left to another program.
    pub fn is_left_to_others(&self) -> bool {
        self.published.is_some_and(|(_, reason)| reason == OTHER_WRITER)
    }

    /// Repeats the warnings that hold at the next decision: their Events may have expired.
    pub fn warn_again(&mut self) {
        self.again = true;
    }

    /// Records a decision, and returns its news. `found` is the mode that the status had before, whichever client published
    /// it.
    pub fn take_in(&mut self, decided: &Advertisement, found: Option<Mode>) -> News {
        let now = (decided.mode.as_str(), decided.reason.as_str());
        let again = std::mem::take(&mut self.again);
        let shut_out = std::mem::replace(&mut self.shut_out, decided.shut_out.clone()).filter(|_| !again);
        let bypassed = std::mem::replace(&mut self.bypassed, decided.bypassed.clone()).filter(|_| !again);
        let before = self.published.replace(now);
        let mut notices = Vec::new();
        if let Some(message) = other_than(shut_out.as_ref(), decided.shut_out.as_ref()) {
            notices.push(Notice::warning("LoadBalancerSourceRangesLackCluster", message));
        }
        if let Some(message) = other_than(bypassed.as_ref(), decided.bypassed.as_ref()) {
            notices.push(Notice::warning("LoadBalancerBypassRequested", message));
        }
        let changed = (before != Some(now)).then_some((before, now));
        // The first publication is no change for clients.
        let mode_before = before.map(|(mode, _)| mode).or(found.map(Mode::as_str));
        if changed.is_some() && mode_before.is_some_and(|mode| mode != now.0) {
            let message =
                format!("The load balancer is now published {}: {}", described(decided.mode), decided.reason);
            notices.push(Notice::normal("LoadBalancerIPModeChanged", message));
        }
        if let Some(warning) = decided.warning.as_ref().filter(|_| again || changed.is_some()) {
            notices.push(Notice::warning("LoadBalancerIPModeNotHonoured", warning));
        }
        News { changed, notices }
    }
}

/// Returns the present text, unless it was reported already.
fn other_than<'a>(before: Option<&String>, now: Option<&'a String>) -> Option<&'a String> {
    now.filter(|now| before != Some(*now))
}

fn described(mode: Mode) -> &'static str {
    match mode {
        Mode::Proxy => "by address with ipMode Proxy",
        Mode::Vip => "by address",
        Mode::Hostname => "by hostname",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advertisement::Reason;

    fn decided(mode: Mode, shut_out: Option<&str>) -> Advertisement {
        Advertisement {
            entries: Vec::new(),
            mode,
            reason: Reason::DirectPath,
            warning: None,
            shut_out: shut_out.map(str::to_owned),
            bypassed: None,
        }
    }

    fn reasons(news: &News) -> Vec<&'static str> {
        news.notices.iter().map(|notice| notice.reason).collect()
    }

    #[test]
    fn a_changed_mode_is_announced_once_and_a_first_publication_is_none() {
        let mut announced = Announced::default();
        let first = announced.take_in(&decided(Mode::Vip, None), None);
        assert_eq!((first.changed, reasons(&first)), (Some((None, ("vip", "direct_path"))), vec![]));
        let changed = announced.take_in(&decided(Mode::Hostname, None), Some(Mode::Vip));
        assert_eq!(reasons(&changed), ["LoadBalancerIPModeChanged"]);
        assert_eq!(announced.take_in(&decided(Mode::Hostname, None), Some(Mode::Hostname)), News::default());
    }

    #[test]
    fn a_status_that_another_controller_left_in_another_mode_has_changed() {
        let news = Announced::default().take_in(&decided(Mode::Proxy, None), Some(Mode::Vip));
        assert_eq!(reasons(&news), ["LoadBalancerIPModeChanged"]);
    }

    #[test]
    fn a_status_that_is_left_to_others_counts_as_it_shows() {
        let mut announced = Announced::default();
        announced.take_in(&decided(Mode::Proxy, None), None);
        let ours = ("proxy", "direct_path");
        assert_eq!(announced.left_to_others(Some(Mode::Vip)), Some((Some(ours), ("vip", "other_writer"))));
        assert_eq!(announced.left_to_others(Some(Mode::Vip)), None);
        assert_eq!(announced.left_to_others(None).map(|(_, now)| now), Some(("other", "other_writer")));
        assert!(announced.is_left_to_others());
        let back = announced.take_in(&decided(Mode::Proxy, None), Some(Mode::Vip));
        assert_eq!(back.changed.map(|(_, now)| now), Some(ours));
    }

    #[test]
    fn a_warning_that_holds_is_repeated_once_when_it_is_asked_for() {
        let mut announced = Announced::default();
        let decided = Advertisement { warning: Some("w".to_owned()), ..decided(Mode::Vip, Some("a")) };
        let mut announce = |again| {
            if again {
                announced.warn_again();
            }
            reasons(&announced.take_in(&decided, None))
        };
        let both = vec!["LoadBalancerSourceRangesLackCluster", "LoadBalancerIPModeNotHonoured"];
        assert_eq!(
            [announce(false), announce(false), announce(true), announce(false)],
            [both.clone(), vec![], both, vec![]]
        );
    }

    #[test]
    fn a_warning_is_repeated_when_its_text_changes_or_after_it_was_over() {
        let mut announced = Announced::default();
        let mut announce = |text| reasons(&announced.take_in(&decided(Mode::Vip, text), None)).len();
        assert_eq!(
            [
                announce(Some("a")),
                announce(Some("a")),
                announce(Some("b")),
                announce(None),
                announce(Some("b"))
            ],
            [1, 0, 1, 0, 1]
        );
    }
}

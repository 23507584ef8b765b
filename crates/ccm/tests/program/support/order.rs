//! The order of calls: which of them have one, and whether what was done follows it.

use std::collections::BTreeMap;

use super::canonical::{self, Names};
use super::line::Asked;

/// The calls about each subject, in order.
pub(crate) type BySubject = BTreeMap<String, Vec<String>>;

/// A call that changes something, and the Service for which it is made.
pub(crate) type Change = (Asked, Option<String>);

/// The calls about each subject, in order. Where there are several Services, what is done for each goes for itself: what one
/// does to the load balancer of another comes at any moment. So does what is reported of the Service, since the reconciliation may have to wait
/// in between for another one to end, and reports then what it knows.
pub(crate) fn by_subject(names: &Names, calls: &[Change], several_services: bool) -> BySubject {
    let mut subjects = BySubject::new();
    for (call, reconciled) in calls.iter().filter(|(call, _)| !canonical::is_note(call)) {
        let subject = names.subject(call);
        let subject = match reconciled {
            Some(service) if several_services && call.path.starts_with("/api/") => {
                format!("{subject} in Kubernetes for {service}")
            }
            Some(service) if several_services => format!("{subject} for {service}"),
            _ => subject,
        };
        subjects.entry(subject).or_default().push(names.line(call));
    }
    subjects
}

/// How many of the planned calls are still to be done; nothing where something was done that was not next.
pub(crate) fn left(planned: &BySubject, done: &BySubject) -> Option<usize> {
    let mut left = 0;
    for (subject, done) in done {
        left += rest(planned.get(subject)?, done)?;
    }
    let untouched = planned.iter().filter(|(subject, _)| !done.contains_key(*subject));
    Some(left + untouched.map(|(_, calls)| calls.len()).sum::<usize>())
}

/// The same for one subject. Lists of children have no order, and what goes one after the other goes in theirs: a run of
/// deletions has to be over before what follows it begins.
fn rest(planned: &[String], done: &[String]) -> Option<usize> {
    let is_deletion = |call: &String| call.starts_with("DELETE ");
    let mut runs = planned.chunk_by(|one, next| is_deletion(one) && is_deletion(next));
    let mut run: Vec<&String> = Vec::new();
    for call in done {
        if run.is_empty() {
            run.extend(runs.next()?);
        }
        let place = run.iter().position(|planned| *planned == call)?;
        run.swap_remove(place);
    }
    Some(run.len() + runs.map(<[String]>::len).sum::<usize>())
}

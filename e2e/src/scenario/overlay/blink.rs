//! What a write of the owner costs where no policy is in force: the mode is gone until the overlay has written it again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::owned::{Dials, NAMES, Owned};
use crate::artifacts::Framework;
use crate::stage::Stage;

/// Restarts that are measured: fewer writes than the overlay corrects within an hour.
const RESTARTS: usize = 3;

/// The owner of a version is restarted while a pod connects all the time.
pub(super) fn measured(stage: &mut Stage, owned: &mut Owned, framework: Framework) -> Result<String> {
    let since = Instant::now();
    let Dials { answered, failed, broken } = owned.dialled_during_restarts(stage, framework, RESTARTS)?;
    let mut blinks = Vec::new();
    for name in NAMES {
        blinks.extend(owned.history.blinks(name, since)?);
    }
    let rewrites = framework != Framework::V0_28;
    ensure!(rewrites != blinks.is_empty(), "an owner of {} made {} blinks", framework.text(), blinks.len());
    let dials = answered + failed;
    Ok(format!("{RESTARTS} restarts: {}; {broken} of {dials} dials of a pod cut short", lengths(blinks)))
}

fn lengths(mut blinks: Vec<Duration>) -> String {
    blinks.sort_unstable();
    match blinks.as_slice() {
        [] => "nothing was rewritten".to_owned(),
        [first, .., last] => format!(
            "{} times VIP, for {} to {} ms, {} in the middle",
            blinks.len(),
            first.as_millis(),
            last.as_millis(),
            blinks[blinks.len() / 2].as_millis()
        ),
        [only] => format!("once VIP, for {} ms", only.as_millis()),
    }
}

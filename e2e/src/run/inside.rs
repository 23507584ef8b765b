//! What a world does: it starts its cloud, then runs one group after another.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::artifacts::Artifacts;
use crate::artifacts::release::Release;
use crate::machine::cache::Cache;
use crate::machine::progress::{break_silence, set_present};
use crate::machine::say;
use crate::machine::watch;
use crate::machine::world;
use crate::programs::controller;
use crate::run::lane::present_file;
use crate::run::queue::Queue;
use crate::stage::Stage;

/// Runs groups of a run's queue until there are none. A world that cannot go on says why.
pub(crate) fn run(run: &Path, folder: &Path, release: Release) -> Result<()> {
    world::enter(folder);
    work(run, folder, release).inspect_err(|error| world::give_up(&format!("{error:#}")))
}

fn work(run: &Path, folder: &Path, release: Release) -> Result<()> {
    let began = Instant::now();
    let queue = Queue::open(run)?;
    watch::begin();
    break_silence();
    set_present(Some(&format!("starting a cloud of {}", release.name())));
    let mut stage =
        Stage::build(folder, Artifacts::in_world(Cache::of_user()?), controller::program()?, release)?;
    say(&format!("     a cloud of {} answers after {} s", release.name(), began.elapsed().as_secs()));
    loop {
        std::fs::write(present_file(folder), "-")?;
        set_present(None);
        let Some(group) = queue.take(release) else { break };
        std::fs::write(present_file(folder), group.name)?;
        set_present(Some(group.name));
        let began = Instant::now();
        let findings = queue.clone();
        let begun = stage.begin(move |finding| findings.record(group, finding));
        let outcome = begun.and_then(|()| (group.run)(&mut stage));
        if let Err(error) = outcome {
            stage
                .check("group", group.name, |_| -> Result<String> { bail!("it could not go on: {error:#}") });
        }
        queue.finish(group)?;
        say(&format!("     group {} took {} s", group.name, began.elapsed().as_secs()));
    }
    watch::end();
    stage.end_cluster()
}

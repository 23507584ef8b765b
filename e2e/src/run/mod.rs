//! A run: builds what is missing, starts worlds side by side, and collects what they saw.

pub(crate) mod docs;
pub(crate) mod inside;
pub(crate) mod lane;
mod list;
mod number;
mod outcome;
mod parts;
mod plan;
mod preface;
pub(crate) mod queue;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::artifacts::release::Release;
use crate::machine;
use crate::machine::cache;
use crate::machine::fetch::NotFetched;
use crate::machine::packages;
use crate::machine::say;
use crate::programs::controller;
use crate::report::Report;
use crate::run::outcome::Outcome;
use crate::run::plan::Plan;
use crate::scenario::{GROUPS, Group};

/// The file that marks the folder of a run.
const MARK: &str = ".end-to-end-run";
/// The folder in the folder of a run for groups that are begun a second time, and how long these may take together.
const AGAIN: &str = "again";
const TIME_FOR_SECOND_ATTEMPTS: Duration = Duration::from_secs(600);

/// What the user asks for.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this group of scenarios; may be repeated. `--list` says which there are.
    #[arg(long)]
    only: Vec<String>,
    /// List the groups, whether they run without being named, their recorded cases, and what is built for them.
    #[arg(long)]
    list: bool,
    /// Where machines that cannot run the scenarios, or do not get what some of them need, are fine: say why, and succeed.
    #[arg(long)]
    if_possible: bool,
    /// Where logs and the report go; runs in different folders do not disturb each other.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How many worlds work side by side at most.
    #[arg(long, default_value_t = number::MOST)]
    worlds: usize,
    /// Seconds after which nothing more is built and no group is started; what is left out is named. Without it everything is run.
    #[arg(long)]
    budget: Option<u64>,
    /// Seconds after which a group that has not come to its end has failed.
    #[arg(long, default_value_t = 1500)]
    group_limit: u64,
    /// Write what was seen into the sources: the table of docs/explanation/end-to-end.md and the answers of the real APIs.
    #[arg(long)]
    record: bool,
}

/// Runs what the options say. Returns whether all went well.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.list {
        say(&list::list()?);
        return Ok(true);
    }
    let began = Instant::now();
    let groups = chosen(&options.only)?;
    if let Some(obstacle) = machine::obstacle(Release::NEWEST.python_minor()) {
        return Ok(all_left_out(&obstacle, options));
    }
    match has_packages(&groups) {
        Ok(None) => {}
        Ok(Some(reason)) => return Ok(all_left_out(reason, options)),
        Err(error) if error.is::<NotFetched>() => return Ok(all_left_out(&format!("{error:#}"), options)),
        Err(error) => return Err(error),
    }
    let folder = std::path::absolute(options.folder.clone().map_or_else(default_folder, Ok)?)?;
    let lock = std::fs::File::create(cache::beside(&folder, "lock"))?;
    lock.try_lock().context("another run is under way in this folder")?;
    prepare(&folder)?;
    let group_limit = Duration::from_secs(options.group_limit);
    let budget = options.budget.map(Duration::from_secs);
    let first = Plan { groups, began, budget, most: options.worlds, group_limit, end: None };
    let first = first.carry_out(&folder)?;
    let second = second_attempts(&first, &folder, group_limit)?;
    let outcomes = outcome::after_both(first, second);
    if options.record {
        docs::record_groups(&outcomes.iter().filter_map(|(outcome, _)| outcome.good()).collect::<Vec<_>>())?;
    }
    let report = outcome::report(outcomes, options.if_possible);
    if options.record && report.passed() {
        for folder in [folder.clone(), folder.join(AGAIN)].iter().filter(|folder| folder.exists()) {
            docs::record(&report, folder)?;
        }
    }
    conclude(&report, &folder, began)?;
    Ok(report.passed() || (options.if_possible && report.is_empty()))
}

/// Says why no scenario is run. Returns whether that is fine.
fn all_left_out(reason: &str, options: &Options) -> bool {
    say(&format!("left out: the end-to-end scenarios on real components, because {reason}"));
    options.if_possible
}

/// Begins each group that failed a second time, alone.
fn second_attempts(first: &[Outcome], folder: &Path, group_limit: Duration) -> Result<Vec<Outcome>> {
    let groups: Vec<_> =
        first.iter().filter(|outcome| outcome.is_red()).map(|outcome| outcome.group).collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let names = groups.iter().map(|group| group.name).collect::<Vec<_>>().join(", ");
    let (began, time) = (Instant::now(), TIME_FOR_SECOND_ATTEMPTS);
    say(&format!("\na second time, alone and within {} s for all: {names}", time.as_secs()));
    let folder = folder.join(AGAIN);
    std::fs::create_dir_all(&folder)?;
    let plan = Plan { groups, began, budget: Some(time), most: 1, group_limit, end: Some(began + time) };
    plan.carry_out(&folder)
}

/// Why the Debian packages are not there; nothing if they are. They are installed now if the user agrees.
fn has_packages(groups: &[&Group]) -> Result<Option<&'static str>> {
    let mut missing = packages::missing(&packages::ALL);
    if groups.iter().any(|group| group.with_ovn) {
        missing.extend(packages::missing(&packages::OVN));
    }
    if groups.iter().any(|group| group.with_kubelet) {
        missing.extend(packages::missing(&packages::KUBELET));
    }
    if missing.is_empty() || packages::may_install(&missing)? {
        return packages::install(&packages::ALL).map(|()| None);
    }
    Ok(Some("nothing may be installed; E2E_INSTALL=1 allows it"))
}

fn chosen(only: &[String]) -> Result<Vec<&'static Group>> {
    let known: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
    for name in only {
        ensure!(known.contains(&name.as_str()), "there is no group {name}; there are {}", known.join(", "));
    }
    let is_named = |group: &&Group| only.iter().any(|name| name == group.name);
    Ok(GROUPS
        .iter()
        .filter(|group| if only.is_empty() { !group.on_request } else { is_named(group) })
        .collect())
}

fn prepare(folder: &Path) -> Result<()> {
    if folder.exists() {
        // What the user points to by mistake is not removed.
        ensure!(folder.join(MARK).exists(), "{} is there and not of an earlier run", folder.display());
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(folder.join(MARK), "")?)
}

/// The folder of a run unless another is chosen, beside the program.
fn default_folder() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program is not in a target folder")?;
    Ok(target.join("e2e"))
}

/// Copies of this program and of the controller: a build meanwhile must not change what runs. Returns the former.
fn own_copies(folder: &Path) -> Result<PathBuf> {
    let programs = folder.join("bin");
    std::fs::create_dir_all(&programs)?;
    let this = std::env::current_exe()?;
    for program in [&this, &controller::program()?] {
        std::fs::copy(program, programs.join(program.file_name().context("a program without a name")?))?;
    }
    Ok(programs.join(this.file_name().context("a program without a name")?))
}

fn conclude(report: &Report, folder: &Path, began: Instant) -> Result<()> {
    say(&format!("\n{}\n", report.table(Some(72))));
    let took = began.elapsed();
    let path = folder.join("report.md");
    report.write(&path, took)?;
    report.begun_twice().iter().for_each(|line| say(line));
    for failure in report.failures() {
        say(&failure.line());
    }
    say(&format!("logs: {}; report: {}; {} s", folder.display(), path.display(), took.as_secs()));
    say(&report.summary());
    Ok(())
}

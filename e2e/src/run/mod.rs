//! A run: builds what is missing, starts worlds side by side, and collects what they saw.

pub(crate) mod docs;
pub(crate) mod inside;
pub(crate) mod lane;
mod list;
mod parts;
pub(crate) mod queue;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::artifacts::Artifacts;
use crate::artifacts::last_release;
use crate::artifacts::part::Part;
use crate::artifacts::release::Release;
use crate::machine;
use crate::machine::cache::{self, Cache};
use crate::machine::containers;
use crate::machine::packages;
use crate::machine::process::OutOfTime;
use crate::machine::say;
use crate::programs::controller;
use crate::report::{Finding, Report};
use crate::run::lane::Lane;
use crate::run::parts::Parts;
use crate::run::queue::Queue;
use crate::scenario::{GROUPS, Group};

/// The file that marks the folder of a run.
const MARK: &str = ".end-to-end-run";

/// What the user asks for.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this group of scenarios; may be repeated. `--list` says which there are.
    #[arg(long)]
    only: Vec<String>,
    /// List the groups, whether they run without being named, their recorded cases, and what is built for them.
    #[arg(long)]
    list: bool,
    /// Where machines that cannot run the scenarios, or none of them within the budget, are fine: say why, and succeed.
    #[arg(long)]
    if_possible: bool,
    /// Where logs and the report go; runs in different folders do not disturb each other.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How many worlds work side by side.
    #[arg(long, default_value_t = 4)]
    worlds: usize,
    /// Seconds after which nothing more is built and no group is started; what is left out is named. Without it everything is run.
    #[arg(long)]
    budget: Option<u64>,
    /// Seconds after which a group that has not come to its end has failed.
    #[arg(long, default_value_t = 1500)]
    group_limit: u64,
    /// Run groups that failed once more: what fails again has failed. For machines that many share; says which ones it needed.
    #[arg(long)]
    again: bool,
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
        say(&format!("left out: the end-to-end scenarios on real components, because {obstacle}"));
        return Ok(options.if_possible);
    }
    if !has_packages(&groups)? {
        return Ok(options.if_possible);
    }
    let folder = std::path::absolute(options.folder.clone().map_or_else(default_folder, Ok)?)?;
    let lock = std::fs::File::create(cache::beside(&folder, "lock"))?;
    lock.try_lock().context("another run is under way in this folder")?;
    prepare(&folder)?;
    let deadline = options.budget.map(|seconds| began + Duration::from_secs(seconds));
    let plan = Plan { groups, began, deadline };
    let (report, results) = plan.attempt(&folder, options)?;
    if options.record && report.passed() {
        docs::record(&report, &folder)?;
    }
    if options.record {
        let passed = results.iter().filter(|result| result.is_good());
        docs::record_groups(&passed.map(|result| (result.group, &*result.findings)).collect::<Vec<_>>())?;
    }
    if succeeds(&report, options.if_possible) || !options.again {
        return Ok(succeeds(&report, options.if_possible));
    }
    again(&results, &folder, options)
}

/// Whether the Debian packages are there, installed now if the user agrees.
fn has_packages(groups: &[&Group]) -> Result<bool> {
    let mut missing = packages::missing(&packages::ALL);
    if groups.iter().any(|group| group.with_ovn) {
        missing.extend(packages::missing(&packages::OVN));
    }
    if groups.iter().any(|group| group.with_kubelet) {
        missing.extend(packages::missing(&packages::KUBELET));
    }
    if missing.is_empty() || packages::may_install(&missing)? {
        return packages::install(&packages::ALL).map(|()| true);
    }
    say(
        "left out: the end-to-end scenarios on real components, because nothing may be installed; E2E_INSTALL=1 allows it",
    );
    Ok(false)
}

/// Whether a run is a success. Where a new machine has not built the components when the budget is over, no case has run:
/// that is said, and is no failure of what is tested.
fn succeeds(report: &Report, if_possible: bool) -> bool {
    report.passed() || (if_possible && report.is_empty())
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

/// What became of a group.
struct GroupResult {
    group: &'static Group,
    taken: bool,
    done: bool,
    findings: Vec<Finding>,
}

impl GroupResult {
    fn of(group: &'static Group, queue: &Queue) -> Result<Self> {
        let (taken, done) = (queue.was_taken(group), queue.is_done(group));
        Ok(Self { group, taken, done, findings: queue.findings(group)? })
    }

    /// Whether it came to its end, and all its cases went well.
    fn is_good(&self) -> bool {
        self.done && self.findings.iter().all(|finding| finding.passed)
    }
}

/// Runs the groups that failed once more, in a folder of their own. Returns whether all of them went well now.
fn again(results: &[GroupResult], folder: &Path, options: &Options) -> Result<bool> {
    let failed = results.iter().filter(|result| result.taken && !result.is_good());
    let groups: Vec<_> = failed.map(|result| result.group).collect();
    if groups.is_empty() {
        return Ok(false);
    }
    let names = groups.iter().map(|group| group.name).collect::<Vec<_>>().join(", ");
    say(&format!("\nonce more, because they failed: {names}"));
    let folder = folder.join("again");
    std::fs::create_dir_all(&folder)?;
    let plan = Plan { groups, began: Instant::now(), deadline: None };
    let (report, _) = plan.attempt(&folder, options)?;
    if report.passed() {
        say(&format!("failed at first and not when run once more: {names}"));
    }
    Ok(report.passed())
}

/// The groups of a run, and until when they may begin.
struct Plan {
    groups: Vec<&'static Group>,
    began: Instant,
    deadline: Option<Instant>,
}

impl Plan {
    /// Runs everything in a folder, and says what was seen.
    fn attempt(&self, folder: &Path, options: &Options) -> Result<(Report, Vec<GroupResult>)> {
        let queue = Queue::open(folder)?;
        let lane = Lane {
            program: own_copies(folder)?,
            run: folder.to_owned(),
            queue: queue.clone(),
            group_limit: Duration::from_secs(options.group_limit),
            with_newest: self.groups.iter().any(|group| group.release == Release::NEWEST),
        };
        let artifacts = Artifacts::new(Cache::of_user()?).until(self.deadline);
        let broken = self.carry_out(&lane, options.worlds, &artifacts);
        let results: Vec<_> =
            self.groups.iter().map(|group| GroupResult::of(group, &queue)).collect::<Result<_>>()?;
        let mut report = Report::default();
        for result in &results {
            result.findings.iter().for_each(|finding| report.add(finding.clone()));
            if result.taken && !result.done {
                report.add(Finding::failure("group", result.group.name, "it did not come to its end"));
            }
        }
        if let Err(error) = broken {
            report.add(Finding::failure("run", "worlds", &format!("{error:#}")));
        }
        let left_out: Vec<_> =
            results.iter().filter(|result| !result.taken).map(|result| result.group.name).collect();
        conclude(&report, &left_out, folder, self.began)?;
        Ok((report, results))
    }

    /// Builds and runs. What worlds found is in the queue afterwards.
    fn carry_out(&self, lane: &Lane, worlds: usize, artifacts: &Artifacts) -> Result<()> {
        let parts = Parts::of(&self.groups, artifacts)?;
        // Nothing runs without these, and all worlds need them.
        let mut common = vec![Part::Etcd];
        if lane.with_newest {
            common.splice(..0, [Part::OpenStack(Release::NEWEST), Part::Drivers(Release::NEWEST)]);
        }
        if !made_in_time(&parts, common)? {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let lanes: Vec<_> = (1..=worlds.clamp(1, self.groups.len()))
                .map(|number| scope.spawn(move || lane.work(number)))
                .collect();
            let built = self.build(lane, &parts);
            // The worlds must hear that there is no more, also after a failure.
            let closed = lane.queue.close();
            self.close_in_time(lane, &lanes);
            for lane in lanes {
                lane.join().map_err(|_| anyhow::anyhow!("a lane panicked"))??;
            }
            built.and(closed)
        })
    }

    /// Offers each group as soon as its programs are there, as long as there is time.
    fn build(&self, lane: &Lane, parts: &Parts<'_>) -> Result<()> {
        for group in &self.groups {
            if let Err(error) = possible(group) {
                say(&format!("left out: the group {}, because {error:#}", group.name));
                continue;
            }
            if self.is_late(parts.longest(group)?) {
                continue;
            }
            if made_in_time(parts, group.parts())? {
                lane.queue.offer(group)?;
            }
        }
        Ok(())
    }

    /// Whether work of this length would not be done in time.
    fn is_late(&self, work: Duration) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() + work > deadline)
    }

    /// Takes back what nobody has begun when the time is over.
    fn close_in_time<T>(&self, lane: &Lane, lanes: &[std::thread::ScopedJoinHandle<'_, T>]) {
        while self.deadline.is_some() && lanes.iter().any(|lane| !lane.is_finished()) {
            if self.is_late(Duration::ZERO) {
                // What cannot be taken back is run: late is better than lost.
                lane.queue.withdraw().ok();
                return;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Fails, with what is missing, where a group cannot run on this machine; installs its packages.
fn possible(group: &Group) -> Result<()> {
    if let Some(obstacle) = group.release.obstacle() {
        bail!(obstacle);
    }
    if group.with_ovn {
        packages::install(&packages::OVN)?;
    }
    if group.with_kubelet {
        packages::install(&packages::KUBELET)?;
        containers::possible()?;
    }
    if group.with_last_release { last_release::is_in_clone() } else { Ok(()) }
}

/// Builds parts. Returns whether the time of the budget sufficed.
fn made_in_time(parts: &Parts<'_>, wanted: Vec<Part>) -> Result<bool> {
    match wanted.into_iter().try_for_each(|part| parts.make(part)) {
        Ok(()) => Ok(true),
        Err(error) if error.is::<OutOfTime>() => {
            say(&format!("     given up, because the time of the budget was over: {error:#}"));
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn conclude(report: &Report, left_out: &[&str], folder: &Path, began: Instant) -> Result<()> {
    say(&format!("\n{}\n", report.table(Some(72))));
    if !left_out.is_empty() {
        say(&format!(
            "left out: the groups {}, because the time of the budget was over or this machine lacks something",
            left_out.join(", ")
        ));
    }
    let took = began.elapsed();
    let path = folder.join("report.md");
    report.write(&path, took)?;
    for failure in report.failures() {
        say(&failure.line());
    }
    say(&format!(
        "{} in {} s; logs: {}; report: {}",
        report.summary(),
        took.as_secs(),
        folder.display(),
        path.display()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_case_succeeds_only_where_that_is_fine() {
        let mut report = Report::default();
        assert!(succeeds(&report, true));
        assert!(!succeeds(&report, false));
        report.add(Finding::failure("run", "worlds", "no cloud answers"));
        assert!(!succeeds(&report, true));
    }
}

//! Processes that nobody expects to end: each is looked at a few times a second, and what was arranged for its end is done at once.
//! They are looked at without being reaped, so that whoever started one still learns how it ended.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};

const INTERVAL: Duration = Duration::from_millis(200);
/// Lines of a log that tell how a process ended.
const LINES: usize = 400;

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

struct Watched {
    process: Pid,
    name: String,
    log: PathBuf,
    ended: Box<dyn FnOnce(Ending) + Send>,
}

/// How a process ended that nobody ended.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    name: String,
    /// Absent after a signal.
    pub exit: Option<i32>,
    signal: Option<i32>,
    /// The end of its log.
    pub lines: String,
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match (self.exit, self.signal) {
            (Some(exit), _) => format!("exit status {exit}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "nobody knows how".to_owned(),
        };
        let lines: Vec<&str> = self.lines.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        write!(formatter, "{} ended by itself ({how}): {last}", self.name)
    }
}

/// A process is watched for as long as this is there.
pub(crate) struct Watch(Pid);

impl Watch {
    /// Watches a child of this process, with the log that it writes.
    pub(super) fn on(
        process: Pid,
        name: &str,
        log: PathBuf,
        ended: impl FnOnce(Ending) + Send + 'static,
    ) -> Self {
        watched().push(Watched { process, name: name.to_owned(), log, ended: Box::new(ended) });
        Self(process)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        watched().retain(|watched| watched.process != self.0);
    }
}

fn watched() -> std::sync::MutexGuard<'static, Vec<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at all of them from now on.
pub(crate) fn begin() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(INTERVAL);
            look();
        }
    });
}

/// Whatever ends from now on is expected to.
pub(crate) fn end() {
    watched().clear();
}

fn look() {
    // What is done about an end may watch something else.
    let ended: Vec<(Watched, Ending)> = {
        let mut all = watched();
        let endings: Vec<(Pid, Ending)> =
            all.iter().filter_map(|one| Some((one.process, ending(one)?))).collect();
        let of = |one: &Watched| endings.iter().position(|(process, _)| *process == one.process);
        let (over, rest) = std::mem::take(&mut *all).into_iter().partition(|one: &Watched| of(one).is_some());
        *all = rest;
        let over: Vec<Watched> = over;
        over.into_iter().zip(endings.into_iter().map(|(_, ending)| ending)).collect()
    };
    for (watched, ending) in ended {
        (watched.ended)(ending);
    }
}

/// How a process ended; nothing while it runs.
fn ending(watched: &Watched) -> Option<Ending> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(watched.process), options).ok()??;
    let (exit, signal) = (WaitIdStatus::exit_status(&status), WaitIdStatus::terminating_signal(&status));
    let lines = last_lines(&watched.log, LINES);
    Some(Ending { name: watched.name.clone(), exit, signal, lines })
}

/// The last lines of a text file; empty if there is none.
pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
impl Ending {
    pub(crate) fn sample(exit: Option<i32>, lines: &str) -> Self {
        let signal = if exit.is_none() { Some(6) } else { None };
        Self { name: "openstack-ccm".to_owned(), exit, signal, lines: lines.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;

    use super::*;
    use crate::machine::process::Daemon;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("openstack-ccm-e2e-watch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_process_that_ends_by_itself_is_named_with_its_last_lines() {
        let folder = folder("named");
        let (told, endings) = mpsc::channel();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no more memory; exit 3"]);
        let daemon = Daemon::start("rabbitmq", &folder, &mut command).unwrap();
        let daemon = daemon.watched(move |ending| told.send(ending).unwrap());
        let ending = loop {
            look();
            if let Ok(ending) = endings.try_recv() {
                break ending;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(ending.to_string(), "rabbitmq ended by itself (exit status 3): no more memory");
        drop(daemon);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nobody_is_told_of_a_process_that_is_stopped() {
        let folder = folder("stopped");
        let (told, endings) = mpsc::channel();
        let daemon = Daemon::start("etcd", &folder, Command::new("sleep").arg("600")).unwrap();
        daemon.watched(move |ending| told.send(ending).unwrap()).stop().unwrap();
        look();
        assert!(endings.try_recv().is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

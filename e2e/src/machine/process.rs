//! Processes of a world: daemons with a log, and short commands.

use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::watch::{Ending, Watch, last_lines};
use super::world;

/// Time that a daemon has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(20);

/// A daemon has ended, so there is nothing to wait for.
#[derive(Debug)]
pub(crate) struct Ended(String);

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Ended {}

/// A running program. It is killed when it goes out of scope.
pub(crate) struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
    /// Where nobody expects it to end.
    watch: Option<Watch>,
}

impl Daemon {
    /// Starts the command; its output is appended to `logs`/`name`.log.
    pub(crate) fn start(name: &str, logs: &Path, command: &mut Command) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let file = append(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("{name} cannot be started: {command:?}"))?;
        Ok(Self { name: name.to_owned(), child, log, watch: None })
    }

    /// The same, and the world ends at once when it ends by itself: nothing that is seen without it says anything.
    pub(crate) fn needed(self) -> Self {
        self.watched(|ending| world::give_up(&ending.to_string()))
    }

    /// The same, and something is done when it ends by itself.
    pub(crate) fn watched(mut self, ended: impl FnOnce(Ending) + Send + 'static) -> Self {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        self.watch = process.map(|process| Watch::on(process, &self.name, self.log.clone(), ended));
        self
    }

    /// Fails, with the end of its log, when the process has ended. Of one that is watched others hear.
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.watch.is_some() {
            return Ok(());
        }
        if let Some(status) = self.child.try_wait()? {
            return Err(Ended(format!("{} ended ({status}): {}", self.name, last_lines(&self.log, 5))).into());
        }
        Ok(())
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and does not wait.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Keeps it from doing anything.
    pub(crate) fn hold(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`Daemon::hold`].
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Asks it to end, and kills it if it does not.
    pub(crate) fn stop(self) -> Result<()> {
        self.stop_within(GRACE)
    }

    /// [`Daemon::stop`] with another time between SIGTERM and SIGKILL.
    pub(crate) fn stop_within(mut self, grace: Duration) -> Result<()> {
        self.watch = None;
        self.terminate();
        let deadline = Instant::now() + grace;
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.watch = None;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.watch = None;
        // Nothing can be done about a process that is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Has a daemon of this id read its configuration again, as nginx does it.
pub(crate) fn reload(process: u32) {
    send(process, Signal::HUP);
}

fn send(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        kill_process(pid, signal).ok();
    }
}

fn append(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Runs a command to its end and returns its output.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{command:?} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}{}", output.status, String::from_utf8_lossy(&output.stderr), text);
    }
    Ok(text)
}

/// Runs a command line of words without blanks.
pub(crate) fn run_line(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command line")?;
    run(Command::new(program).args(words))
}

/// A command that ends with this run, however that ends. One that is compiled beside worlds gets the time that they leave.
pub(crate) fn builder(program: impl AsRef<std::ffi::OsStr>, beside_worlds: bool) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if beside_worlds {
        command.args(["chrt", "--idle", "0"]);
    }
    command.arg(program);
    command
}

/// The time for a command was over, and it was killed.
#[derive(Debug)]
pub(crate) struct OutOfTime;

impl std::fmt::Display for OutOfTime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the time was over")
    }
}

impl std::error::Error for OutOfTime {}

/// Runs a command to its end with its output in a file.
pub(crate) fn run_logged(log: &Path, command: &mut Command) -> Result<()> {
    run_logged_until(None, log, command)
}

/// [`run_logged`] that kills the command, and what it has started, at a deadline.
///
/// # Errors
/// [`OutOfTime`] then.
pub(crate) fn run_logged_until(deadline: Option<Instant>, log: &Path, command: &mut Command) -> Result<()> {
    let file = append(log)?;
    if deadline.is_some() {
        command.process_group(0);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("{command:?} cannot be started"))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                kill_process_group(group, Signal::KILL)?;
            }
            child.wait()?;
            return Err(OutOfTime.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if !status.success() {
        bail!("{command:?} failed ({status}), see {}: {}", log.display(), last_lines(log, 8));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_started_ends_with_its_time() {
        let log = std::env::temp_dir().join(format!("openstack-ccm-e2e-process-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]);
        let ended = run_logged_until(Some(Instant::now() + Duration::from_secs(1)), &log, &mut command);
        assert!(ended.unwrap_err().is::<OutOfTime>());
        let started: u32 = last_lines(&log, 1).parse().unwrap();
        std::fs::remove_file(&log).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        let is_over = |state: &str| state.is_empty() || state.contains(") Z ");
        // A signal takes a moment on a busy machine.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_over(&state()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(is_over(&state()), "{}", state());
    }
}

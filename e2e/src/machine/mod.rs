//! Whether this machine can run the worlds.

pub(crate) mod answer;
pub(crate) mod cache;
pub(crate) mod cgroup;
pub(crate) mod containers;
pub(crate) mod fetch;
pub(crate) mod packages;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod world;

use std::io::Write as _;
use std::process::Command;

use crate::machine::process::{run, run_line};

/// Prints a line at once.
pub(crate) fn say(line: &str) {
    // A closed pipe is no reason to stop a run.
    writeln!(std::io::stdout(), "{line}").ok();
}

/// Why this machine cannot run the worlds; nothing if it can.
pub(crate) fn obstacle(python_minor: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("this is not Linux".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("they need root".into());
    }
    for program in ["unshare", "setpriv", "chrt", "bash"] {
        if !answers(program) {
            return Some(format!("there is no {program}"));
        }
    }
    if run_line("unshare --net --mount --pid --fork true").is_err() {
        return Some("this machine does not allow new namespaces".into());
    }
    match run(Command::new("go").arg("version")) {
        Err(_) => return Some("there is no Go".into()),
        Ok(version) if !fetches_its_successors(&version) => {
            return Some(format!("Go is too old: {}; 1.{GO_MINOR} is needed", version.trim()));
        }
        Ok(_) => {}
    }
    if python(python_minor).is_none() {
        return Some(format!("there is no Python {python_minor}"));
    }
    let missing = packages::missing(&packages::ALL);
    if !missing.is_empty() && !answers("apt-get") {
        return Some(format!("there is no apt-get to install {}", missing.join(", ")));
    }
    None
}

/// From this minor on Go fetches the release that a module asks for.
const GO_MINOR: u32 = 21;

/// Whether a Go that calls itself such can build the pinned modules.
fn fetches_its_successors(version: &str) -> bool {
    let minor = version.split_whitespace().find_map(|word| word.strip_prefix("go1.")).unwrap_or_default();
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|minor: u32| minor >= GO_MINOR)
}

/// A Python of a minor version, such as `3.11`. Debian's own is compiled with profiles and a third faster than what `pyenv`
/// builds, which often comes first in the path; most of a run's time is Python's.
pub(crate) fn python(minor: &str) -> Option<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let own = run(
        Command::new("bash").args(["-c", &format!("ls -d {home}/.pyenv/versions/{minor}.*/bin/python3")])
    );
    let of_pyenv = own.unwrap_or_default();
    let candidates = ["/usr/bin/python3".to_owned(), "python3".to_owned(), format!("python{minor}")];
    let fits = |program: &String| {
        let version = run(Command::new(program).arg("--version"));
        version.is_ok_and(|version| version.starts_with(&format!("Python {minor}.")))
    };
    candidates.into_iter().chain(of_pyenv.lines().map(str::to_owned)).find(fits)
}

fn answers(program: &str) -> bool {
    run(Command::new(program).arg("--version")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_go_is_not_taken_for_a_new_one() {
        assert!(fetches_its_successors("go version go1.26.8 linux/amd64\n"));
        assert!(!fetches_its_successors("go version go1.19.8 linux/amd64"));
        assert!(!fetches_its_successors("what"));
    }
}

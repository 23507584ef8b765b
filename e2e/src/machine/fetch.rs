//! What is fetched from a registry: tried again after a pause, because networks fail for moments, and told apart from what cannot be
//! built.

use std::time::Duration;

use anyhow::{Result, bail};

use super::say;

/// How often something is fetched before it is given up.
const TRIES: u32 = 3;
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// What registries and their clients say when the way to them is the trouble, in lower case.
const SIGNS_OF_THE_NETWORK: [&str; 23] = [
    "connection refused",
    "connection reset",
    "connection aborted",
    "connection timed out",
    "connectionerror",
    "timed out",
    "timeout",
    "no such host",
    "temporary failure",
    "could not resolve",
    "name or service not known",
    "network is unreachable",
    "no route to host",
    "unexpected eof",
    "could not connect",
    "failed to fetch",
    "remote end closed",
    "econn",
    "etimedout",
    "enotfound",
    "eai_again",
    "bad gateway",
    "service unavailable",
];
/// What is no fault of the network, whatever else is said: somebody changed what is pinned.
const SIGNS_OF_ANOTHER_CONTENT: [&str; 5] =
    ["checksum mismatch", "security error", "missing go.sum entry", "do not match the hashes", "eintegrity"];

/// It could not be fetched, though it was tried again. The text is what the last try said.
#[derive(Clone, Debug)]
pub(crate) struct NotFetched(String);

impl std::fmt::Display for NotFetched {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotFetched {}

/// Fetches, a few times if the network fails.
///
/// # Errors
/// [`NotFetched`] if that was the reason each time; else the error of the fetching.
pub(crate) fn fetch(what: &str, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    retry(what, PAUSE, &mut attempt)
}

fn retry(what: &str, pause: Duration, attempt: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let mut said = String::new();
    for number in 1..=TRIES {
        let Err(error) = attempt() else { return Ok(()) };
        said = format!("{error:#}");
        if !is_of_the_network(&said) {
            return Err(error);
        }
        if number < TRIES {
            say(&format!("     {what} could not be fetched, once more in {} s", pause.as_secs()));
            std::thread::sleep(pause);
        }
    }
    bail!(NotFetched(format!("{what} could not be fetched: {}", reason(&said))))
}

/// Whether a client of a registry failed because it did not reach the registry.
fn is_of_the_network(said: &str) -> bool {
    let said = said.to_lowercase();
    let has = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
    has(&SIGNS_OF_THE_NETWORK) && !has(&SIGNS_OF_ANOTHER_CONTENT)
}

/// The line that says why, without what goes before it.
fn reason(said: &str) -> &str {
    said.lines().rfind(|line| is_of_the_network(line)).unwrap_or(said).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "\"go\" \"list\" failed (exit status: 1), see x.log: go: downloading k8s.io/api v0.36.3\nk8s.io/api: Get \"http://127.0.0.1:1/k8s.io/api\": dial tcp 127.0.0.1:1: connect: connection refused";

    #[test]
    fn what_the_network_does_is_told_from_what_is_wrong_with_a_pin() {
        for said in [
            REFUSED,
            "go: k8s.io/api@v0.36.3: Get \"https://proxy.golang.org/k8s.io/api\": net/http: TLS handshake timeout",
            "E: Failed to fetch http://deb.debian.org/debian/pool/main/h/haproxy.deb  Temporary failure resolving 'deb.debian.org'",
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\nfailed: [Errno 111] Connection refused\nERROR: No matching distribution found for octavia==19.0.0",
            "npm error code ENOTFOUND",
        ] {
            assert!(is_of_the_network(said), "{said}");
        }
        for said in [
            "verifying k8s.io/api@v0.36.3: checksum mismatch\nSECURITY ERROR: connection reset",
            "ERROR: No matching distribution found for octavia==99.0.0",
            "pkg/x.go:3:1: undefined: y",
            "E: Unable to locate package haproxi",
        ] {
            assert!(!is_of_the_network(said), "{said}");
        }
    }

    #[test]
    fn what_fails_for_moments_is_fetched_in_the_end() {
        let mut tries = 0;
        let mut third_time = || {
            tries += 1;
            if tries < 3 { bail!("connection refused") } else { Ok(()) }
        };
        retry("a module", Duration::ZERO, &mut third_time).unwrap();
        assert_eq!(tries, 3);
    }

    #[test]
    fn what_cannot_be_fetched_says_why_in_one_line() {
        let error = retry("kube-proxy", Duration::ZERO, &mut || bail!(REFUSED)).unwrap_err();
        let text = error.downcast_ref::<NotFetched>().unwrap().to_string();
        assert!(text.starts_with("kube-proxy could not be fetched: k8s.io/api: Get"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn a_wrong_sum_is_told_at_once() {
        let mut tries = 0;
        let mut wrong = || {
            tries += 1;
            bail!("checksum mismatch, connection reset")
        };
        assert!(!retry("a module", Duration::ZERO, &mut wrong).unwrap_err().is::<NotFetched>());
        assert_eq!(tries, 1);
    }
}

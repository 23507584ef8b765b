//! A steady stream of new connections, and a backend that takes them with and without the PROXY header.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::machine::process::Daemon;
use crate::machine::world::in_namespace;
use crate::network::ask::{Outcome, ask};

/// Connections that are open at the same time.
const LANES: usize = 4;
/// Time between two connections of a lane: some hundred in a second meet each reload and leave the processors to Octavia.
const PAUSE: Duration = Duration::from_millis(10);
/// The port of the backend that takes both.
pub(crate) const TOLERANT_PORT: u16 = 82;
/// How PROXY protocol version 2 begins.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// What became of the connections of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub answered: u64,
    /// Refused, closed or timed out.
    pub failed: u64,
}

/// A stream that runs in a namespace until it is asked to end.
pub(crate) struct Stream {
    daemon: Daemon,
    tally: std::path::PathBuf,
    stop: std::path::PathBuf,
}

impl Stream {
    pub(crate) fn start(namespace: &str, host: &str, folder: &Path) -> Result<Self> {
        let (tally, stop) = (folder.join("stream.json"), folder.join("stream.stop"));
        for file in [&tally, &stop] {
            if file.exists() {
                std::fs::remove_file(file)?;
            }
        }
        let mut command = in_namespace(namespace, std::env::current_exe()?);
        command.args(["stream", host]).arg(&tally).arg(&stop);
        let daemon = Daemon::start("stream", folder, &mut command)?;
        Ok(Self { daemon, tally, stop })
    }

    /// Ends it and returns what became of its connections.
    pub(crate) fn end(mut self) -> Result<Tally> {
        self.daemon.check()?;
        std::fs::write(&self.stop, "")?;
        let text = crate::machine::wait::soon("the stream has counted", || {
            Ok(std::fs::read_to_string(&self.tally)?)
        })?;
        let value: Value = serde_json::from_str(&text).context("the count of the stream")?;
        let number = |key: &str| value[key].as_u64().unwrap_or_default();
        Ok(Tally { answered: number("answered"), failed: number("failed") })
    }
}

/// The other end of [`Stream`]: asks until the stop file appears, then writes the tally.
pub(crate) fn run(host: &str, tally: &Path, stop: &Path) -> Result<()> {
    let (ended, answered, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let outcome = ask(host, 80, "/");
                    let good = matches!(outcome, Outcome::Answered { status: 200, .. });
                    if !good {
                        crate::machine::say(&format!("{outcome}"));
                    }
                    (if good { &answered } else { &failed }).fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(PAUSE);
                }
            });
        }
        while !stop.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        ended.store(true, Ordering::Relaxed);
    });
    let text = json!({"answered": answered.into_inner(), "failed": failed.into_inner()}).to_string();
    let fresh = tally.with_extension("fresh");
    std::fs::write(&fresh, text)?;
    Ok(std::fs::rename(fresh, tally)?)
}

/// Serves HTTP on a port and takes connections with and without the PROXY header. Does not return.
pub(crate) fn tolerant_backend(port: u16) -> Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port)).with_context(|| format!("port {port}"))?;
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        // A client that goes away in the middle is its own affair.
        std::thread::spawn(move || serve(&stream).ok());
    }
    Ok(())
}

fn serve(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let began = Instant::now();
    let mut reader = BufReader::new(stream);
    let mut seen = "none".to_owned();
    let mut line = Vec::new();
    while began.elapsed() < Duration::from_secs(5) {
        if reader.fill_buf()?.starts_with(&SIGNATURE[..1]) && line.is_empty() && seen == "none" {
            let mut head = [0; 16];
            reader.read_exact(&mut head)?;
            let mut rest = vec![0; usize::from(u16::from_be_bytes([head[14], head[15]]))];
            reader.read_exact(&mut rest)?;
            seen = "v2".into();
        }
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.starts_with(b"PROXY ") {
            seen = "v1".into();
        } else if line == b"\r\n" {
            break;
        }
    }
    let body = format!("pod=tolerant client=none header={seen}\n");
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    (&*stream).write_all(answer.as_bytes())?;
    Ok(())
}

/// Starts the tolerant backend in a pod.
pub(crate) fn start_tolerant_backend(namespace: &str, folder: &Path) -> Result<Daemon> {
    let mut command: Command = in_namespace(namespace, std::env::current_exe()?);
    command.args(["tolerant-backend", &TOLERANT_PORT.to_string()]);
    Daemon::start(&format!("tolerant-{namespace}"), folder, &mut command)
}

//! One running `openstack-ccm`.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::stage::{Stage, free_port};

// Far more than it takes: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// The process; it is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    port: u16,
    certificate: PathBuf,
}

impl Process {
    /// Starts the controllers.
    pub(crate) fn start(stage: &Stage, name: &str, arguments: &[&str]) -> Self {
        Self::start_with(stage, name, arguments, &[])
    }

    /// The same with variables of the environment.
    pub(crate) fn start_with(
        stage: &Stage,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let port = free_port();
        let file = |name: &str| stage.file(name).display().to_string();
        let mut all = vec![
            format!("--cloud-config={}", file("cloud.conf")),
            format!("--kubeconfig={}", file("kubeconfig")),
            "--cluster-name=c1".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", file("tls.crt")),
            format!("--tls-private-key-file={}", file("tls.key")),
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics".to_owned(),
            "--leader-elect-lease-duration=3s".to_owned(),
            "--leader-elect-renew-deadline=2s".to_owned(),
            "--leader-elect-retry-period=200ms".to_owned(),
        ];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let log = stage.file(&format!("{name}.log"));
        let child = command(stage, &log).args(all).envs(variables.iter().copied()).spawn().unwrap();
        Self { child, log, port, certificate: stage.file("tls.crt") }
    }

    /// Starts with these arguments only.
    pub(crate) fn command(stage: &Stage, name: &str, arguments: &[&str]) -> Self {
        let log = stage.file(&format!("{name}.log"));
        let child = command(stage, &log).args(arguments).spawn().unwrap();
        Self { child, log, port: 0, certificate: stage.file("tls.crt") }
    }

    /// Runs to the end with these arguments only.
    pub(crate) fn run(stage: &Stage, arguments: &[&str]) -> (ExitStatus, String) {
        Self::run_with(stage, &[], arguments)
    }

    /// The same with variables of the environment.
    pub(crate) fn run_with(
        stage: &Stage,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> (ExitStatus, String) {
        let log = stage.file("run.log");
        let status = command(stage, &log).args(arguments).envs(variables.iter().copied()).status().unwrap();
        (status, std::fs::read_to_string(&log).unwrap())
    }

    /// All that it has written to standard output and standard error.
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The most memory that it had so far, in KiB, without pages of its own file, which the kernel drops when memory is short.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |name: &str| -> u64 {
            let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            value.trim().trim_end_matches(" kB").parse().unwrap()
        };
        of("VmHWM:") - of("RssFile:")
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends SIGINT, as Ctrl-C does.
    #[cfg(feature = "demo")]
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Stops it where it is, as SIGSTOP, a debugger or a machine that swaps do.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} \"$0\"");
        let status = Command::new("sh").args(["-c", &kill, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Asks it to end, which it does with success.
    pub(crate) async fn stops(&mut self) {
        self.terminate();
        assert_eq!(self.end().await.code(), Some(0), "{}", self.output());
    }

    pub(crate) async fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.output());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it has written a text.
    pub(crate) async fn until_says(&self, text: &str) {
        self.until(&format!("it says {text:?}"), || self.output().contains(text)).await;
    }

    /// Waits until it has done something.
    pub(crate) async fn until(&self, what: &str, is_done: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed() < PATIENCE, "did not happen: {what}\n{}", self.output());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_ready(&self) {
        let start = Instant::now();
        loop {
            let answer = self.get("/readyz").await;
            if matches!(&answer, Ok((200, _))) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "it is not ready: {answer:?}\n{}", self.output());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an endpoint answers at all.
    pub(crate) async fn until_answers(&self, path: &str) -> (u16, String) {
        let start = Instant::now();
        loop {
            match self.get(path).await {
                Ok(answer) => return answer,
                Err(error) => assert!(start.elapsed() < PATIENCE, "no answer: {error}\n{}", self.output()),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks one of the endpoints: status and body.
    pub(crate) async fn get(&self, path: &str) -> io::Result<(u16, String)> {
        let (status, _, body) = self.exchange(path, None).await?;
        Ok((status, body))
    }

    /// Asks for the metrics in a format.
    pub(crate) async fn scrape(&self, accept: Option<&str>) -> Scraped {
        let (status, head, body) = self.exchange("/metrics", accept).await.unwrap();
        assert_eq!(status, 200, "{body}");
        let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap();
        Scraped { content_type: content_type.to_owned(), body }
    }

    async fn exchange(&self, path: &str, accept: Option<&str>) -> io::Result<(u16, String, String)> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.certificate).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let accept = accept.map(|accept| format!("accept: {accept}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{accept}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer).await {
            // The server closes without saying so in TLS.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, head.to_owned(), body.to_owned()))
    }
}

/// A page of metrics.
pub(crate) struct Scraped {
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(stage: &Stage, log: &PathBuf) -> Command {
    let output = File::create(log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_openstack-ccm"));
    // Nothing of the machine's own clouds and clusters.
    command.env_clear().env("HOME", stage.directory()).current_dir(stage.directory());
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    command
}

//! Pebble, the ACME server of Let's Encrypt for tests, on the internet of a world: it looks for challenges where clients outside
//! find the load balancers, with its own delays and its own habit of refusing some requests once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;
use crate::network::ask::page_by_tls;
use crate::network::{OUTSIDE, OUTSIDE_ADDRESS};

pub(crate) const NAME: &str = "acme.e2e.test";
const PORT: u16 = 14000;
/// Where it publishes its roots.
const MANAGEMENT: (&str, u16) = ("127.0.0.1", 15000);

/// A running Pebble.
pub(crate) struct Pebble {
    daemon: Daemon,
    folder: PathBuf,
}

impl Pebble {
    /// Starts it with a new authority, and waits until it answers. Its name must resolve to the address of the client outside.
    pub(crate) fn start(program: &Path, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let names = [NAME, OUTSIDE_ADDRESS, MANAGEMENT.0].map(str::to_owned);
        let own = rcgen::generate_simple_self_signed(names)?;
        let (certificate, key, config) =
            (folder.join("pebble.crt"), folder.join("pebble.key"), folder.join("pebble.json"));
        std::fs::write(&certificate, own.cert.pem())?;
        std::fs::write(&key, own.signing_key.serialize_pem())?;
        let settings = json!({"pebble": {
            "listenAddress": format!("{OUTSIDE_ADDRESS}:{PORT}"),
            "managementListenAddress": format!("{}:{}", MANAGEMENT.0, MANAGEMENT.1),
            "certificate": certificate, "privateKey": key,
            // Where Let's Encrypt looks.
            "httpPort": 80, "tlsPort": 443,
        }});
        std::fs::write(&config, settings.to_string())?;
        let mut command = crate::machine::world::in_namespace(OUTSIDE, program);
        let daemon = Daemon::start("pebble", folder, command.arg("-config").arg(&config))?;
        let mut pebble = Self { daemon, folder: folder.to_owned() };
        until("Pebble answers", Duration::from_secs(30), || {
            pebble.daemon.check()?;
            page_by_tls(OUTSIDE, NAME, PORT, "/dir", &certificate).map(drop)
        })?;
        let root = page_by_tls(OUTSIDE, MANAGEMENT.0, MANAGEMENT.1, "/roots/0", &certificate)?;
        std::fs::write(pebble.root(), root)?;
        Ok(pebble)
    }

    /// The URL of its directory, as clients are given it.
    pub(crate) fn directory() -> String {
        format!("https://{NAME}:{PORT}/dir")
    }

    /// The certificate by which clients know the server itself.
    pub(crate) fn certificate(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("pebble.crt"))?)
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root.crt")
    }

    /// A chain is one that leads to Pebble's root and is for this name. Returns who issued it.
    pub(crate) fn has_signed(&self, chain: &[u8], name: &str) -> Result<String> {
        let file = self.folder.join(format!("{name}.crt"));
        std::fs::write(&file, chain)?;
        let mut verify = Command::new("openssl");
        verify.args(["verify", "-verify_hostname", name, "-CAfile"]).arg(self.root());
        run(verify.arg("-untrusted").arg(&file).arg(&file)).context("the chain does not lead to Pebble")?;
        let mut show = Command::new("openssl");
        show.args(["x509", "-noout", "-issuer", "-ext", "subjectAltName", "-in"]);
        let text = run(show.arg(&file))?;
        ensure!(text.contains(&format!("DNS:{name}")), "{text}");
        let issuer = text.lines().find_map(|line| line.strip_prefix("issuer=")).context("no issuer")?;
        Ok(issuer.trim().to_owned())
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Result<()> {
        self.daemon.stop()
    }
}

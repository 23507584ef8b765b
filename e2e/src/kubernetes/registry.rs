//! A registry from which nodes pull: the files of images, served by nginx as registries serve them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;
use crate::network::API_SERVER;

/// What keeps the namespaces of a pod.
pub(crate) const PAUSE: &str = "registry.example.org/pause:1";
/// Names of registries that lead to this one: that of the guides, and the one of names without a registry.
const HOSTS: [&str; 2] = ["registry.example.org", "docker.io"];
const PORT: u16 = 5555;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// It waits until it is told to end.
const PAUSE_SOURCE: &str = "#include <signal.h>\n#include <unistd.h>\nstatic void end(int s) { (void)s; _exit(0); }\n\
     int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }\n";
/// Copies nginx of the host, with what it links to, below a root.
const NGINX_ROOT: &str = r#"
mkdir -p "$1"/{usr/sbin,etc/nginx,usr/share,var/log/nginx,var/lib/nginx,tmp,run}
cp /usr/sbin/nginx "$1/usr/sbin/"
for file in $(ldd /usr/sbin/nginx | grep -o '/[^ ]*'); do mkdir -p "$1$(dirname "$file")"; cp -L "$file" "$1$file"; done
printf 'root:x:0:0::/:/none\n' > "$1/etc/passwd"; printf 'root:x:0:\n' > "$1/etc/group"
printf 'hosts: files\n' > "$1/etc/nsswitch.conf"
mkdir -p "$1/usr/share/html"
printf '<html><head><title>Welcome to nginx!</title></head></html>\n' > "$1/usr/share/html/index.html"
cat > "$1/etc/nginx/nginx.conf" <<'END'
user root;
daemon off;
error_log stderr info;
pid /run/nginx.pid;
events {}
http { access_log /dev/stdout; server { listen 80; root /usr/share/html; } }
END
"#;

/// The registry. It ends with this value.
pub(crate) struct Registry {
    folder: PathBuf,
    _server: Daemon,
}

impl Registry {
    /// Starts it with what pods need beside the program under test: `pause` and `nginx`.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        for name in ["blobs", "tags"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(folder))?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(&file);
        let mut server = Daemon::start("registry", folder, &mut command)?;
        until("the registry listens", Duration::from_secs(20), || {
            server.check()?;
            let url = format!("http://{API_SERVER}:{PORT}/v2/");
            ensure!(reqwest::blocking::get(url)?.status().is_success(), "no success");
            Ok(())
        })?;
        let registry = Self { folder: folder.to_owned(), _server: server };
        registry.push_pause()?;
        registry.push_nginx()?;
        Ok(registry)
    }

    /// Writes where containerd finds registries.
    pub(crate) fn write_hosts(&self, folder: &Path) -> Result<()> {
        for host in HOSTS {
            let own = folder.join(host);
            std::fs::create_dir_all(&own)?;
            let url = format!("http://{API_SERVER}:{PORT}");
            let text =
                format!("server = \"{url}\"\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n");
            std::fs::write(own.join("hosts.toml"), text)?;
        }
        Ok(())
    }

    /// What `push` of an archive with an OCI layout does.
    pub(crate) fn push(&self, archive: &Path, name: &str, tag: &str) -> Result<()> {
        let layout = self.folder.join("layout");
        std::fs::create_dir_all(&layout)?;
        run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&layout))?;
        let read = |path: &Path| -> Result<Value> { Ok(serde_json::from_slice(&std::fs::read(path)?)?) };
        let blob = |reference: &Value| {
            let digest = reference["digest"].as_str().unwrap_or_default().trim_start_matches("sha256:");
            layout.join("blobs/sha256").join(digest)
        };
        let index = read(&blob(&read(&layout.join("index.json"))?["manifests"][0]))?;
        let manifest = blob(&index["manifests"][0]);
        let content = read(&manifest)?;
        let layers = content["layers"].as_array().context("the image has no layers")?;
        for reference in layers.iter().chain([&content["config"]]) {
            self.keep(&std::fs::read(blob(reference))?)?;
        }
        self.tag(name, tag, &std::fs::read(&manifest)?)?;
        Ok(std::fs::remove_dir_all(&layout)?)
    }

    /// An image of one layer: the files below a folder.
    fn push_root(&self, root: &Path, name: &str, tag: &str, command: &[&str]) -> Result<()> {
        let layer = self.folder.join("layer.tar");
        let mut pack = Command::new("tar");
        pack.args(["--owner=0", "--group=0", "--numeric-owner", "-cf"]).arg(&layer);
        run(pack.arg("-C").arg(root).arg("."))?;
        let layer = self.keep(&std::fs::read(&layer)?)?;
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {"Cmd": command},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        });
        let mut config = self.keep(config.to_string().as_bytes())?;
        config["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
        let mut layer = layer;
        layer["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar");
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        self.tag(name, tag, manifest.to_string().as_bytes())
    }

    fn push_pause(&self) -> Result<()> {
        let (root, source) = (self.folder.join("pause"), self.folder.join("pause.c"));
        std::fs::create_dir_all(&root)?;
        std::fs::write(&source, PAUSE_SOURCE)?;
        run(Command::new("cc").args(["-O2", "-static", "-o"]).arg(root.join("pause")).arg(&source))?;
        let (name, tag) =
            PAUSE.trim_start_matches("registry.example.org/").split_once(':').context("no tag")?;
        self.push_root(&root, name, tag, &["/pause"])
    }

    fn push_nginx(&self) -> Result<()> {
        let root = self.folder.join("nginx");
        run(Command::new("bash").args(["-euc", NGINX_ROOT, "nginx"]).arg(&root))?;
        self.push_root(&root, "library/nginx", "latest", &["/usr/sbin/nginx"])
    }

    /// Keeps content under its digest, and returns what refers to it.
    fn keep(&self, content: &[u8]) -> Result<Value> {
        let hash = digest(&SHA256, content);
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(self.folder.join("blobs").join(&hash), content)?;
        Ok(json!({"digest": format!("sha256:{hash}"), "size": content.len()}))
    }

    fn tag(&self, name: &str, tag: &str, manifest: &[u8]) -> Result<()> {
        self.keep(manifest)?;
        let tags = self.folder.join("tags").join(name);
        std::fs::create_dir_all(&tags)?;
        Ok(std::fs::write(tags.join(tag), manifest)?)
    }
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"daemon off;
user root;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log {folder}/access.log;
  types {{ }}
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen {API_SERVER}:{PORT};
    location = /v2/ {{ return 200 "{{}}"; }}
    location ~ ^/v2/.+/manifests/sha256:(?<hash>[0-9a-f]+)$ {{ default_type {MANIFEST}; alias {folder}/blobs/$hash; }}
    location ~ ^/v2/.+/blobs/sha256:(?<hash>[0-9a-f]+)$ {{ default_type application/octet-stream; alias {folder}/blobs/$hash; }}
    location ~ ^/v2/(?<name>.+)/manifests/(?<tag>[^/]+)$ {{ default_type {MANIFEST}; alias {folder}/tags/$name/$tag; }}
  }}
}}
"#
    )
}

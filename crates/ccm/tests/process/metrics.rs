//! The page of metrics, read by the parsers of Prometheus' own client library for Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Process;
use crate::stage::Stage;

/// The release whose parsers read the page.
const PARSER: &str = "prometheus_client==0.26.0";

/// Reads a page from standard input and prints a line for each family; a page that is not valid is an error.
const READ: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
names = [family.name for family in parse(sys.stdin.read())]
twice = sorted({name for name in names if names.count(name) > 1})
if twice:
    sys.exit(f'families that appear twice: {twice}')
print('\\n'.join(names))
";

/// A Python with the parsers; absent on a machine without Python 3 or its package index.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus-client");
    let python = folder.join("bin/python");
    let has_parser = |python: &Path| {
        let import =
            Command::new(python).args(["-c", "import prometheus_client.openmetrics.parser"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    if !has_parser(&python) {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status().ok()?;
        let pip = Command::new(&python).args(["-m", "pip", "install", "--quiet", PARSER]).status().ok()?;
        (made.success() && pip.success()).then_some(())?;
    }
    has_parser(&python).then_some(python)
}

/// Names of the families on a page.
fn families(python: &Path, page: &str) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), page).unwrap();
    let output = Command::new(python)
        .args(["-c", READ])
        .stdin(std::fs::File::open(file.path()).unwrap())
        .output()
        .unwrap();
    let (names, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}\n{page}");
    names.lines().map(str::to_owned).collect()
}

/// All controllers at work, a Service served: what a scraper gets is valid, whatever it asks for.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_metrics_is_valid() {
    let stage = Stage::new().await;
    let router = stage.cloud.seed().router_id.clone();
    stage.set_cloud_conf(&format!("{}\n[Route]\nrouter-id={router}\n", stage.cloud_conf()));
    let process = Process::start(&stage, "ccm", &["--cluster-cidr=10.244.0.0/16"]);
    process.until_ready().await;
    stage.serve("web").await;

    let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    for accept in [None, Some("application/openmetrics-text;version=1.0.0"), Some("text/plain;version=0.0.4")]
    {
        assert_eq!(process.scrape(accept).await.content_type, openmetrics, "{accept:?}");
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/scrape-metrics.md");
    assert!(
        std::fs::read_to_string(guide).unwrap().contains("as OpenMetrics 1.0, whatever `Accept` asks for")
    );
    let page = process.scrape(Some("text/plain;version=0.0.4")).await;
    assert!(page.body.ends_with("# EOF\n"), "{}", page.body);
    for queue in ["service", "Nodes"] {
        let adds = format!("workqueue_adds_total{{name=\"{queue}\"}}");
        assert!(page.body.contains(&adds), "{}", page.body);
    }

    let Some(python) = python() else {
        eprintln!("not read by Prometheus' parsers: there is no Python 3 with {PARSER} on this machine");
        return;
    };
    let names = families(&python, &page.body);
    for name in [
        "workqueue_depth",
        "running_managed_controllers",
        "openstack_api_requests",
        "route_controller_route_sync",
    ] {
        assert!(names.iter().any(|known| known.starts_with(name)), "{name} in {names:?}");
    }
}

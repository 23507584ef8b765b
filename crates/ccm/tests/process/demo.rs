//! The demo as somebody sees it who runs it for the first time.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::stage::Stage;

/// Rows and columns of the terminal that everybody has.
const SCREEN: (usize, usize) = (24, 80);

#[tokio::test(flavor = "multi_thread")]
async fn it_fits_on_one_screen_with_a_line_for_each_chapter() {
    let stage = Stage::new().await;
    let (status, output) = Process::run(&stage, &["demo"]);
    assert!(status.success(), "{output}");
    assert!(output.lines().count() < SCREEN.0, "{output}");
    assert!(output.lines().all(|line| line.chars().count() <= SCREEN.1), "{output}");
    for (chapter, words) in [
        ("Break", vec!["1.36", "VIP", "CUT OFF", "ok"]),
        ("Cure", vec!["1.36", "ipMode: Proxy", "ok", "ok"]),
        ("Canary", vec!["one kube-proxy 1.29", "hostname", "ok", "ok"]),
        ("Fallback", vec!["1.28", "hostname", "ok", "ok"]),
        ("Upgrade", vec!["1.28 to 1.36", "hostname, then Proxy", "ok", "ok"]),
        ("Clean-up", vec!["nothing left behind", "ok"]),
    ] {
        let line =
            output.lines().find(|line| line.starts_with(chapter)).unwrap_or_else(|| panic!("{output}"));
        let mut rest = line;
        for word in words {
            let (_, after) = rest.split_once(word).unwrap_or_else(|| panic!("{word} in {line:?}"));
            rest = after;
        }
    }
    for said in [
        "doctor says D201: nodes may short-circuit a path that needs the load balancer",
        "doctor finds no error",
    ] {
        assert!(output.contains(said), "{said} in {output}");
    }
    assert!(!output.contains('\x1b'), "no colours in a file: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_is_shown_when_asked_for() {
    let stage = Stage::new().await;
    let (status, output) = Process::run(&stage, &["demo", "--verbose"]);
    assert!(status.success(), "{output}");
    for text in ["connection closed", "198.18.0.51", "client=203.0.113.7", "node-2 1.36, too"] {
        assert!(output.contains(text), "{text} in {output}");
    }
    assert_eq!(output.matches("as expected").count(), 18, "{output}");
    assert!(!output.contains("as stated"), "{output}");
}

/// Runs kubectl on the cluster that is kept; absent on a machine without it.
fn kubectl(kubeconfig: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("kubectl").args(["--kubeconfig", kubeconfig]).args(arguments).output().ok()?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {arguments:?}: {text}");
    Some(text)
}

/// Runs the commands of this program that the demo prints, with the variables that it prints.
fn every_subcommand_that_is_printed_works(stage: &Stage, output: &str) {
    let exports = output.lines().filter_map(|line| line.trim().strip_prefix("export "));
    let variables: Vec<(&str, &str)> =
        exports.flat_map(str::split_whitespace).filter_map(|pair| pair.split_once('=')).collect();
    assert_eq!(variables.len(), 3, "{output}");
    let commands = output.lines().filter_map(|line| line.trim().strip_prefix("openstack-ccm "));
    let mut count = 0;
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        let ended = Process::run_with(stage, &variables, &words);
        let code = ended.0.code().unwrap();
        assert!(code == 0 || code == 2, "{command}: {code}: {}", ended.1);
        count += 1;
    }
    assert_eq!(count, 7, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_a_demo_that_has_not_come_to_its_end() {
    let stage = Stage::new().await;
    let mut process = Process::command(&stage, "demo", &["demo"]);
    process.until_says("Break").await;
    let start = Instant::now();
    process.terminate();
    assert_eq!(process.end().await.code(), Some(1), "{}", process.output());
    assert!(start.elapsed() < Duration::from_secs(10), "{}", process.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_answers_to_kubectl_and_an_interruption_says_what_is_true() {
    let stage = Stage::new().await;
    let mut process = Process::command(&stage, "demo", &["demo", "--keep"]);
    process.until_says("Ctrl-C or SIGTERM ends it.").await;
    let output = process.output();
    let kubeconfig =
        output.split("KUBECONFIG=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    if let Some(events) = kubectl(&kubeconfig, &["get", "events", "--sort-by=.lastTimestamp"]) {
        assert!(events.contains("EnsuredLoadBalancer"), "{events}");
        kubectl(&kubeconfig, &["create", "service", "loadbalancer", "web", "--tcp=80:8080"]).unwrap();
        let start = Instant::now();
        let path = "jsonpath={.status.loadBalancer.ingress[0].ip}";
        while kubectl(&kubeconfig, &["get", "service", "web", "-o", path]).unwrap().trim().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(120), "the Service gets no address");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    } else {
        eprintln!("not tried with kubectl: there is none on this machine");
    }
    every_subcommand_that_is_printed_works(&stage, &output);
    process.terminate();
    let code = process.end().await.code();
    let output = process.output();
    assert_eq!(code, Some(0), "{output}");
    let (_, after) = output.split_once("Ctrl-C or SIGTERM ends it.").unwrap();
    assert_eq!(after.trim(), "The simulated cluster has ended, and its files are removed.");
    assert!(!std::path::Path::new(&kubeconfig).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_before_the_end_is_no_success() {
    let stage = Stage::new().await;
    let mut process = Process::command(&stage, "demo", &["demo"]);
    process.until_says("Break").await;
    process.interrupt();
    assert_eq!(process.end().await.code(), Some(1), "{}", process.output());
    assert!(
        process.output().contains("interrupted: only what is shown above was measured"),
        "{}",
        process.output()
    );
}

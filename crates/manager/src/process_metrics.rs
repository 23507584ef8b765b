//! Metrics of the process: what every Prometheus client library shows, and the framework's metrics of a controller
//! manager.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::args::controllers::ControllerName;
use crate::args::feature_gates::{FeatureGates, LOAD_BALANCER_IP_MODE};
use crate::health::{Health, Probe};
use crate::version::COMMIT;

/// Clock ticks in a second of `/proc/<pid>/stat`; the same on every Linux that this program is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Registers the metrics.
pub fn register(registry: &mut Registry, health: &Health, gates: &FeatureGates) {
    registry.register_collector(Box::new(Process));
    registry.register_collector(Box::new(RunningControllers(health.clone())));
    let build = Family::<Vec<(&str, &str)>, Gauge>::default();
    build.get_or_create(&vec![("git_version", env!("CARGO_PKG_VERSION")), ("git_commit", COMMIT)]).set(1);
    registry.register("kubernetes_build_info", "Version of this program; always 1", build);
    let enabled = Family::<Vec<(&str, &str)>, Gauge>::default();
    // Without the gate the cluster's support is detected; a gate that is not forced off counts as on.
    let value = i64::from(gates.load_balancer_ip_mode.unwrap_or(true));
    enabled.get_or_create(&vec![("name", LOAD_BALANCER_IP_MODE), ("stage", "")]).set(value);
    registry.register("kubernetes_feature_enabled", "Whether a feature gate is on", enabled);
}

/// `running_managed_controllers`: controllers with a health check.
#[derive(Debug)]
struct RunningControllers(Health);

impl Collector for RunningControllers {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let running = Family::<Vec<(&str, &str)>, Gauge>::default();
        for controller in ControllerName::ALL {
            let runs = self.0.check(Probe::Liveness, controller.canonical()).is_some();
            let labels = vec![("name", controller.alias()), ("manager", "cloud-controller-manager")];
            running.get_or_create(&labels).set(i64::from(runs));
        }
        let help = "Whether a controller runs in this process";
        let encoder =
            encoder.encode_descriptor("running_managed_controllers", help, None, running.metric_type())?;
        running.encode(encoder)
    }
}

/// The kernel's data of this process. Missing values are left out.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let stat = Stat::read();
        if let Some(stat) = &stat {
            let (name, help) = ("process_cpu_seconds", "Seconds of CPU time used");
            let cpu = ConstCounter::new(stat.cpu_seconds);
            cpu.encode(encoder.encode_descriptor(name, help, None, cpu.metric_type())?)?;
        }
        let start = stat.as_ref().and_then(Stat::start_time);
        let virtual_memory = stat.as_ref().map(|stat| stat.virtual_bytes);
        let gauges = [
            ("process_start_time_seconds", "Start of the process, in seconds since 1970", start),
            ("process_virtual_memory_bytes", "Size of the address space", virtual_memory),
            ("process_resident_memory_bytes", "Memory in use", resident_bytes()),
            ("process_open_fds", "Open files and sockets", open_files()),
            ("process_max_fds", "Files and sockets that may be open", most_files()),
        ];
        for (name, help, value) in gauges {
            let Some(gauge) = value.map(ConstGauge::new) else { continue };
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

/// The fields of `/proc/self/stat` that are shown.
struct Stat {
    cpu_seconds: f64,
    /// Ticks between the start of the machine and that of the process.
    started: f64,
    virtual_bytes: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The second field is the name in brackets, which may hold blanks; the field after it has number 3.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (number(14)? + number(15)?) / TICKS_PER_SECOND,
            started: number(22)?,
            virtual_bytes: number(23)?,
        })
    }

    fn start_time(&self) -> Option<f64> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let boot: f64 = text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Some(boot + self.started / TICKS_PER_SECOND)
    }
}

fn resident_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

fn most_files() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(health: &Health) -> String {
        let mut registry = Registry::default();
        register(&mut registry, health, &FeatureGates::default());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn the_process_is_described_by_the_names_that_every_dashboard_knows() {
        let text = text(&Health::default());
        for name in [
            "process_cpu_seconds_total ",
            "process_start_time_seconds ",
            "process_virtual_memory_bytes ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_max_fds ",
            "kubernetes_build_info{git_version=",
            "kubernetes_feature_enabled{name=\"LoadBalancerIPMode\",stage=\"\"} 1",
        ] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name} in {text}");
        }
    }

    #[test]
    fn the_controllers_that_run_are_counted() {
        let health = Health::default();
        health.set(ControllerName::ServiceLb.canonical(), Probe::Liveness, None);
        let text = text(&health);
        let line = |name: &str, value: u8| {
            format!(
                "running_managed_controllers{{name=\"{name}\",manager=\"cloud-controller-manager\"}} {value}"
            )
        };
        assert!(text.contains(&line("service", 1)) && text.contains(&line("route", 0)), "{text}");
    }

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_confuse() {
        let fields: Vec<String> = (3..=24).map(|number| number.to_string()).collect();
        let stat = Stat::parse(&format!("1 (a b) c) {}", fields.join(" "))).unwrap();
        assert_eq!((stat.cpu_seconds, stat.started, stat.virtual_bytes), (0.29, 22.0, 23.0));
    }
}

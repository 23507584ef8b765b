//! The chart of the overlay: the same policy as the program prints, and arguments that the program takes.

use clap::Parser as _;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::objects::Canary;
use openstack_ccm_overlay::names::{CANARY_CLASS, CANARY_NAMESPACE};
use openstack_ccm_overlay::policy::{ApiVersion, yaml};
use openstack_ccm_overlay::rules::{Rules, clouds};
use openstack_ccm_tools::overlay::args::{OverlayCommand, OverlayCommandLine};
use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::{Objects, Release, repository, strings};

pub(crate) fn release() -> Release {
    Release::without_image().chart(&repository("charts/ip-mode-overlay"))
}

fn policy_only() -> Release {
    release().set("controller.enabled=false").set("policy.enabled=true")
}

#[rstest]
#[case::all(&[], &[], ApiVersion::V1)]
#[case::two_clouds(&["linode", "vultr"], &[], ApiVersion::V1)]
#[case::further(&["civo"], &["lb.example.org/proxy=it's=on", "lb.example.org/tls"], ApiVersion::V1Beta1)]
fn the_policy_is_the_one_that_the_program_prints(
    #[case] names: &[&str],
    #[case] annotations: &[&str],
    #[case] version: ApiVersion,
) {
    let mut release = policy_only().set(&format!("policy.api={}", version.as_str()));
    if !names.is_empty() {
        release = release.set(&format!("clouds={{{}}}", names.join(",")));
    }
    for (index, annotation) in annotations.iter().enumerate() {
        release = release.set(&format!("annotations[{index}]={annotation}"));
    }
    let Some(rendered) = release.objects() else { return };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let rules = Rules {
        clouds: clouds(&names).unwrap(),
        annotations: annotations.iter().map(|pair| pair.parse().unwrap()).collect(),
        ..Rules::default()
    };
    assert_eq!(rendered.0, Objects::parse(&yaml(&rules, version)).0);
}

#[test]
fn the_program_takes_the_arguments_of_the_chart() {
    let release = release()
        .set("image.repository=registry.example.org/lb")
        .set("clouds={digitalocean,linode}")
        .set("annotations={lb.example.org/proxy=on}")
        .set(r"selector={edge=yes,tier in (web\,api),!internal}")
        .set("hostnameSuffix=nip.example")
        .set("loadBalancerIPMode=true");
    let Some(objects) = release.objects() else { return };
    let container = objects.container();
    assert_eq!(container["command"], json!(["/bin/ip-mode-overlay"]));
    let arguments = [vec!["ip-mode-overlay".to_owned()], strings(&container["args"])].concat();
    let OverlayCommand::Run(run) = OverlayCommandLine::parse_from(arguments).command else {
        panic!("not run")
    };
    let options = run.rules.options().unwrap();
    let rules = &options.rules;
    assert_eq!((rules.clouds.len(), rules.annotations.len()), (2, 1));
    assert_eq!(rules.labels.to_string(), "edge=yes,tier in (api,web),!internal");
    assert_eq!((options.hostname_suffix.as_deref(), options.ip_mode_gate), (Some("nip.example"), Some(true)));
    let cleanup =
        &objects.named("Job", "ip-mode-overlay-cleanup")["spec"]["template"]["spec"]["containers"][0];
    let arguments = [vec!["ip-mode-overlay".to_owned()], strings(&cleanup["args"])].concat();
    let OverlayCommand::Cleanup(cleanup) = OverlayCommandLine::parse_from(arguments).command else {
        panic!("not cleanup")
    };
    assert_eq!(cleanup.hostname_suffix.as_deref(), Some("nip.example"));
}

/// The same pods and Services as those of the other program in the image, under its own names.
#[test]
fn the_canary_is_the_one_that_the_image_knows() {
    let image = "image.repository=registry.example.org/openstack-ccm";
    let Some(objects) = release().set(image).set("canary.enabled=true").objects() else { return };
    let own = |value: Value| -> Value {
        let text = value.to_string().replace("openstack-ccm.io/canary", "ip-mode-overlay/canary");
        let text = text.replace("/bin/openstack-ccm", "/bin/ip-mode-overlay");
        serde_json::from_str(&text.replace("openstack-ccm-canary", CANARY_NAMESPACE)).unwrap()
    };
    let ours = Canary {
        namespace: CANARY_NAMESPACE.into(),
        image: concat!("registry.example.org/openstack-ccm:", env!("CARGO_PKG_VERSION")).into(),
        addresses: Addresses::permanent(),
    };
    let template = &objects.named("DaemonSet", CANARY_NAMESPACE)["spec"]["template"];
    assert_eq!(*template, own(ours.template()));
    for service in ours.services() {
        let name = service["metadata"]["name"].as_str().unwrap().to_owned();
        assert_eq!(objects.named("Service", &name)["spec"], own(service)["spec"]);
    }
    assert_eq!(objects.one("NetworkPolicy")["spec"], own(ours.network_policy())["spec"]);
    for container in template["spec"]["containers"].as_array().unwrap() {
        let arguments = strings(&container["args"]);
        let line = arguments.iter().map(|argument| argument.replace("$(POD_IPS)", "10.244.1.2"));
        OverlayCommandLine::try_parse_from(line).unwrap();
    }
    let arguments = objects.named("Deployment", "ip-mode-overlay")["spec"]["template"].clone();
    let arguments = strings(&arguments["spec"]["containers"][0]["args"]);
    let line = [vec!["ip-mode-overlay".to_owned()], arguments].concat();
    let OverlayCommand::Run(run) = OverlayCommandLine::parse_from(line).command else { panic!("not run") };
    let canary = run.rules.options().unwrap().canary.unwrap();
    assert_eq!((canary.namespace.as_str(), canary.class), (CANARY_NAMESPACE, CANARY_CLASS));
    assert_eq!(
        objects.all("Role").find(|role| role["metadata"]["namespace"] == CANARY_NAMESPACE).unwrap()["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list", "watch"]},
        ])
    );
}

/// One pod leads, and there is another one wherever nodes are drained.
#[rstest]
#[case::default(&[], true)]
#[case::one_pod(&["controller.replicas=1"], false)]
#[case::switched_off(&["podDisruptionBudget.enabled=false"], false)]
fn a_drain_takes_one_pod_at_a_time(#[case] settings: &[&str], #[case] limited: bool) {
    let with_image = release().set("image.repository=registry.example.org/lb");
    let Some(objects) = settings.iter().fold(with_image, |release, one| release.set(one)).objects() else {
        return;
    };
    assert_eq!(objects.all("PodDisruptionBudget").count(), usize::from(limited));
    let spec = &objects.pod()["spec"];
    assert_eq!(spec["priorityClassName"], "system-cluster-critical");
    for budget in objects.all("PodDisruptionBudget") {
        assert_eq!(budget["spec"]["selector"], objects.one("Deployment")["spec"]["selector"]);
    }
}

/// The probes are for anybody; the metrics are for an account that the API server lets read them.
#[test]
fn the_metrics_are_read_by_an_account_of_their_own() {
    let with_image = || release().set("image.repository=registry.example.org/lb");
    let Some(objects) = with_image().set("podMonitor.enabled=true").objects() else { return };
    objects.0.iter().for_each(|object| crate::kubernetes::knows(object).unwrap());
    let endpoint = &objects.one("PodMonitor")["spec"]["podMetricsEndpoints"][0];
    let ports = objects.container()["ports"].as_array().unwrap().clone();
    let metrics = ports.iter().find(|port| port["name"] == endpoint["port"]).unwrap();
    assert_eq!((&endpoint["scheme"], &metrics["containerPort"]), (&json!("https"), &json!(10258)));
    assert_eq!(
        objects.named("ClusterRole", "ip-mode-overlay:metrics")["rules"],
        json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
    );
    let asks = objects.named("ClusterRoleBinding", "ip-mode-overlay:auth-delegate");
    assert_eq!(asks["subjects"][0]["name"], objects.pod()["spec"]["serviceAccountName"]);
    let line = [vec!["ip-mode-overlay".to_owned()], strings(&objects.container()["args"])].concat();
    let OverlayCommand::Run(run) = OverlayCommandLine::parse_from(line).command else { panic!("not run") };
    assert_eq!(run.serving.secure_port, 10258);
    assert_eq!(with_image().objects().unwrap().all("Secret").count(), 0, "no token without a monitor");
}

#[rstest]
#[case::no_image(&[], "image.repository")]
#[case::nothing(&["controller.enabled=false"], "nothing would be installed")]
#[case::labels_by_policy(&["controller.enabled=false", "policy.enabled=true", "selector={a=b}"], "need the controller")]
#[case::unknown_cloud(&["clouds={azure}", "image.repository=r/i"], "clouds")]
fn values_that_cannot_work_are_refused(#[case] values: &[&str], #[case] problem: &str) {
    let release = values.iter().fold(release(), |release, value| release.set(value));
    let Some(error) = release.error() else { return };
    assert!(error.contains(problem), "{error}");
}

/// An overlay for a version of Kubernetes that lacks what it needs would be rejected by the API server, or do nothing.
#[rstest]
#[case::the_final_api("1.35.0", &["controller.enabled=false", "policy.enabled=true"], "policy.api=v1beta1")]
#[case::no_such_api("1.33.0", &["controller.enabled=false", "policy.enabled=true", "policy.api=v1beta1"], "1.34 and newer")]
#[case::no_ip_mode("1.29.0", &["image.repository=registry.example.org/lb"], "set hostnameSuffix")]
fn what_the_cluster_lacks_is_refused(
    #[case] version: &str,
    #[case] settings: &[&str],
    #[case] expected: &str,
) {
    let release = settings.iter().fold(release().kubernetes(version), |release, one| release.set(one));
    let Some(error) = release.error() else { return };
    assert!(error.contains(expected), "{error}");
}

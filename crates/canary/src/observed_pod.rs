//! A pod with only the fields that are read here: the full type takes half a megabyte of machine code to
//! decode.

use std::collections::BTreeSet;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::DAEMON_SETS;

/// A pod as the API server returns it. Absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObservedPod {
    pub metadata: ObjectMeta,
    pub spec: ObservedSpec,
    pub status: ObservedStatus,
}

/// `spec`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedSpec {
    /// The node that the pod runs on.
    pub node_name: Option<String>,
    /// The containers of the pod.
    pub containers: Vec<ObservedContainer>,
}

/// One entry of `spec.containers`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObservedContainer {
    pub image: Option<String>,
    /// The command in place of the image's entry point.
    pub command: Option<Vec<String>>,
    /// Arguments of the command.
    pub args: Option<Vec<String>>,
}

/// `status`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// The kubelet's status of each container; absent until its first report.
    pub container_statuses: Option<Vec<ObservedContainerStatus>>,
}

/// One entry of `status.containerStatuses`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObservedContainerStatus {
    pub name: String,
    pub ready: bool,
    /// State of the container.
    pub state: ObservedState,
}

/// State of a container. At most one field is present.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObservedState {
    pub running: Option<IgnoredAny>,
    /// The container does not run yet, or not again yet.
    pub waiting: Option<Waiting>,
}

/// Why a container does not run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// One word, for example `ErrImagePull`.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

impl k8s_openapi::Resource for ObservedPod {
    const API_VERSION: &'static str = "v1";
    const GROUP: &'static str = "";
    const KIND: &'static str = "Pod";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "pods";
    type Scope = NamespaceResourceScope;
}

impl k8s_openapi::Metadata for ObservedPod {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &Self::Ty {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Self::Ty {
        &mut self.metadata
    }
}

/// Returns the uids of the canary DaemonSets: pods of other owners do not count. Uids, since whoever creates a pod can write any owner's
/// name into it.
pub fn of_canary<'a>(daemon_sets: impl IntoIterator<Item = &'a ObjectMeta>) -> BTreeSet<String> {
    let keeps = |name: &str| DAEMON_SETS.contains(&name);
    let of_canary = daemon_sets.into_iter().filter(|one| one.name.as_deref().is_some_and(keeps));
    of_canary.filter_map(|one| one.uid.clone()).collect()
}

impl ObservedPod {
    /// Returns the uid of the pod's controller, if it is said to be a DaemonSet.
    pub fn daemon_set(&self) -> Option<&str> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let is_daemon_set = (owner.api_version.as_str(), owner.kind.as_str()) == ("apps/v1", "DaemonSet");
        is_daemon_set.then_some(owner.uid.as_str())
    }

    /// Returns the node that the pod runs on; empty before it has a node.
    pub fn node(&self) -> &str {
        self.spec.node_name.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateWaiting, ContainerStatus, Pod,
        PodSpec, PodStatus,
    };

    use super::*;

    /// A field whose name differs from that of Kubernetes would always be empty.
    #[test]
    fn what_is_read_has_the_names_that_kubernetes_gives_it() {
        let text = |text: &str| Some(text.to_owned());
        let status = |name: &str, state| ContainerStatus {
            name: name.to_owned(),
            ready: true,
            state: Some(state),
            ..ContainerStatus::default()
        };
        let pod = Pod {
            metadata: ObjectMeta { name: text("a"), ..ObjectMeta::default() },
            spec: Some(PodSpec {
                node_name: text("n1"),
                containers: vec![Container {
                    image: text("i"),
                    command: Some(vec!["c".to_owned()]),
                    args: Some(vec!["x".to_owned()]),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            status: Some(PodStatus {
                phase: text("Running"),
                container_statuses: Some(vec![
                    status(
                        "r",
                        ContainerState {
                            running: Some(ContainerStateRunning::default()),
                            ..ContainerState::default()
                        },
                    ),
                    status(
                        "w",
                        ContainerState {
                            waiting: Some(ContainerStateWaiting { reason: text("R"), message: text("m") }),
                            ..ContainerState::default()
                        },
                    ),
                ]),
                ..PodStatus::default()
            }),
        };
        let seen: ObservedPod = serde_json::from_value(serde_json::to_value(&pod).unwrap()).unwrap();
        let of = |name: &str, state| ObservedContainerStatus { name: name.to_owned(), ready: true, state };
        let waiting = Waiting { reason: "R".to_owned(), message: "m".to_owned() };
        let expected = ObservedPod {
            metadata: pod.metadata.clone(),
            spec: ObservedSpec {
                node_name: text("n1"),
                containers: vec![ObservedContainer {
                    image: text("i"),
                    command: Some(vec!["c".to_owned()]),
                    args: Some(vec!["x".to_owned()]),
                }],
            },
            status: ObservedStatus {
                phase: text("Running"),
                container_statuses: Some(vec![
                    of("r", ObservedState { running: Some(IgnoredAny), waiting: None }),
                    of("w", ObservedState { running: None, waiting: Some(waiting) }),
                ]),
            },
        };
        assert_eq!(seen, expected);
        assert_eq!(seen.node(), "n1");
    }

    #[test]
    fn a_pod_says_which_daemon_set_made_it() {
        let of = |kind: &str, controller: bool| {
            let owner = serde_json::json!({"apiVersion": "apps/v1", "kind": kind, "name": "a", "uid": "u", "controller": controller});
            let pod = serde_json::json!({"metadata": {"name": "a", "ownerReferences": [owner]}});
            serde_json::from_value::<ObservedPod>(pod).unwrap().daemon_set().map(str::to_owned)
        };
        assert_eq!(of("DaemonSet", true).as_deref(), Some("u"));
        assert_eq!(of("DaemonSet", false), None);
        assert_eq!(of("ReplicaSet", true), None);
        assert_eq!(ObservedPod::default().daemon_set(), None);
    }

    #[test]
    fn only_the_daemon_sets_of_a_canary_make_pods_that_count() {
        let named = |name: &str| {
            let name = Some(name.to_owned());
            ObjectMeta { uid: name.clone(), name, ..ObjectMeta::default() }
        };
        let all = [named(DAEMON_SETS[0]), named("another")];
        assert_eq!(of_canary(&all), BTreeSet::from([DAEMON_SETS[0].to_owned()]));
    }

    #[test]
    fn a_pod_without_a_node_or_status_can_be_read() {
        let seen: ObservedPod = serde_json::from_str(r#"{"metadata": {"name": "a"}}"#).unwrap();
        assert_eq!((seen.node(), seen.status.container_statuses.as_ref()), ("", None));
    }
}

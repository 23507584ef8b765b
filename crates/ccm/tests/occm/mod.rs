//! What the Go openstack-cloud-controller-manager (OCCM) has: `recorded.json` as its releases show it, `announced.json` as
//! threads of its users and authors do.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value};

/// What the releases have, by kind and name.
pub(crate) fn recorded() -> &'static Value {
    static RECORDED: OnceLock<Value> = OnceLock::new();
    RECORDED.get_or_init(|| read("recorded.json"))
}

/// What no recorded release has yet.
pub(crate) fn announced() -> &'static Value {
    static ANNOUNCED: OnceLock<Value> = OnceLock::new();
    ANNOUNCED.get_or_init(|| read("announced.json"))
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ccm/tests/occm").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Everything of a kind, each with its releases.
pub(crate) fn all(kind: &str) -> &'static Map<String, Value> {
    recorded()[kind].as_object().unwrap()
}

/// The releases whose things of a kind are known; flags and gates are those of releases whose program was asked.
pub(crate) fn releases(kind: &str) -> Vec<&'static str> {
    let only_asked = matches!(kind, "flags" | "gates");
    let all = recorded()["releases"].as_object().unwrap().iter();
    all.filter(|(_, release)| !only_asked || release["asked for flags and gates"].is_string())
        .map(|(minor, _)| minor.as_str())
        .collect()
}

/// Since when OCCM has it, in words for a table: `OCCM` where the oldest recorded release has it, too. Nothing where OCCM
/// does not have it.
pub(crate) fn since(kind: &str, name: &str) -> Option<String> {
    let releases = releases(kind);
    let (oldest, newest) = (releases[0], releases[releases.len() - 1]);
    if let Some(within) = recorded()[kind][name]["in"].as_str() {
        let (first, last) = within.split_once('-').unwrap_or((within, within));
        return Some(match (first == oldest, last == newest) {
            (true, true) => "OCCM".to_owned(),
            (false, true) => format!("OCCM {first}"),
            (_, false) => format!("OCCM until {last}"),
        });
    }
    let thread = announced()[kind][name].as_object()?;
    let link = thread["thread"].as_str().unwrap();
    Some(match thread["state"].as_str().unwrap() {
        "merged" => format!("OCCM, [after {newest}]({link})"),
        _ => format!("OCCM, [proposed]({link})"),
    })
}

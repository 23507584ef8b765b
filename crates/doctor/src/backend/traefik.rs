//! Traefik: each entry point has a switch, in a file, in flags or in variables. Traefik takes the first of these that there is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::program::{Mounted, Program};
use super::{Entrance, Expectation, Known, Shown, go_bool, networks};
use crate::finding::Evidence;

const SWITCH: &str = "--entryPoints.NAME.proxyProtocol.trustedIPs=CIDR of the load balancer";
/// Where Traefik looks for a file without being told.
const FILES: [&str; 2] = ["/etc/traefik/traefik.yaml", "/etc/traefik/traefik.yml"];

pub(super) const KNOWN: Known = Known {
    name: "Traefik",
    images: &["traefik", "traefik/traefik"],
    programs: &["traefik"],
    maps: |program| program.maps(),
    shown,
};

fn shown(program: &Program<'_>, entrance: Entrance<'_>) -> Shown {
    let settings = settings(program)?;
    let listens = |address: &str| {
        let address = address.split('/').next().unwrap_or_default();
        address.rsplit(':').next().and_then(|port| port.parse().ok()) == Some(entrance.target)
    };
    let entry_point = settings.iter().find_map(|(key, value)| {
        let name = key.strip_prefix("entrypoints.")?.strip_suffix(".address")?;
        listens(value).then_some(name)
    });
    let Some(name) = entry_point else {
        return Err(Expectation::NotSeen(format!("no entry point shows the port {}", entrance.target)));
    };
    let key = format!("entrypoints.{name}.proxyprotocol");
    let of_header: Vec<(&String, &String)> =
        settings.iter().filter(|(one, _)| one.starts_with(&key)).collect();
    let object = format!("{}: entry point {name}", program.title());
    let Some((first, value)) = of_header.first() else {
        let evidence = Evidence::new(object, "proxyProtocol", "absent");
        return Ok((Expectation::Off, evidence, Some(SWITCH.into())));
    };
    let of = |part: &str| settings.get(&format!("{key}.{part}")).map(String::as_str).unwrap_or_default();
    let networks = networks(of("trustedips")).unwrap_or_default();
    // From others Traefik reads the header, and ignores what it says.
    let trusts = go_bool(of("insecure")) == Some(true) || entrance.within(&networks) != Some(false);
    let expects = if trusts { Expectation::Either } else { Expectation::Distrusted { required: false } };
    let field = first.strip_prefix(&format!("entrypoints.{name}.")).unwrap_or(first);
    Ok((expects, Evidence::new(object, field, *value), Some(SWITCH.into())))
}

/// Returns the static configuration: keys in lower case.
fn settings(program: &Program<'_>) -> Result<BTreeMap<String, String>, Expectation> {
    let variables = program.variables();
    let named = |key: &str| variables.get(key).cloned();
    let file = match (program.flag("configfile"), named("TRAEFIK_CONFIGFILE")) {
        (Some(file), _) | (None, Some(Some(file))) => Some(file),
        (None, Some(None)) => return Err(not_read("a variable that doctor does not read")),
        (None, None) => FILES.iter().map(|file| (*file).to_owned()).find(|file| is_there(program, file)),
    };
    if let Some(file) = file {
        return in_file(program, &file);
    }
    let flags: BTreeMap<String, String> = program
        .words()
        .iter()
        .filter_map(|word| {
            let (key, value) =
                word.strip_prefix("--")?.split_once('=').unwrap_or((word.strip_prefix("--")?, "true"));
            Some((key.to_ascii_lowercase(), value.to_owned()))
        })
        .collect();
    if !flags.is_empty() {
        return Ok(flags);
    }
    if variables.contains_key("") {
        return Err(not_read("variables of a Secret"));
    }
    let mut settings = BTreeMap::new();
    for (name, value) in variables {
        let Some(key) = name.strip_prefix("TRAEFIK_ENTRYPOINTS_") else { continue };
        let value = value.ok_or_else(|| not_read("a variable that doctor does not read"))?;
        settings.insert(format!("entrypoints.{}", key.to_ascii_lowercase().replace('_', ".")), value);
    }
    Ok(settings)
}

fn not_read(what: &str) -> Expectation {
    Expectation::NotSeen(format!("its configuration is in {what}"))
}

/// Returns whether a file is there, as far as mounts show it.
fn is_there(program: &Program<'_>, file: &str) -> bool {
    match program.mounted(file) {
        None => false,
        Some(Mounted::Other) => true,
        Some(Mounted::ConfigMap(map, key)) => {
            program.data(&map).is_ok_and(|data| data.contains_key(&key) || data.contains_key("traefik.toml"))
        }
    }
}

fn in_file(program: &Program<'_>, file: &str) -> Result<BTreeMap<String, String>, Expectation> {
    let Some(Mounted::ConfigMap(map, key)) = program.mounted(file) else {
        return Err(not_read(&format!("the file {file}, which is in no ConfigMap")));
    };
    let data = program.data(&map)?;
    let text =
        data.get(&key).ok_or_else(|| not_read(&format!("the file {file}, which its ConfigMap lacks")))?;
    if file.ends_with(".toml") {
        return Err(not_read("a file of TOML"));
    }
    let value: Value =
        serde_saphyr::from_str(text).map_err(|_| not_read(&format!("{file}, which is not YAML")))?;
    let mut settings = BTreeMap::new();
    flatten("", &value, &mut settings);
    Ok(settings)
}

fn flatten(place: &str, value: &Value, settings: &mut BTreeMap<String, String>) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                let dot = if place.is_empty() { "" } else { "." };
                flatten(&format!("{place}{dot}{}", key.to_ascii_lowercase()), value, settings);
            }
        }
        Value::Array(list) => {
            settings.insert(place.to_owned(), list.iter().map(text).collect::<Vec<_>>().join(","));
        }
        Value::Object(_) => drop(settings.insert(place.to_owned(), "true".to_owned())),
        other => drop(settings.insert(place.to_owned(), text(other))),
    }
}

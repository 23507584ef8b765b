//! Parses the output of `nft -j list ruleset`, including rules that iptables wrote, as far as nft understands them.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde_json::Value;

use super::RulesError;
use super::iptables::network;
use super::ruleset::{Action, Element, Rule, Table, Tables};
use super::target::Transport;

/// The table families that see packets to a load balancer.
const FAMILIES: [&str; 3] = ["ip", "ip6", "inet"];

/// Parses a dump.
pub(super) fn parse(text: &str) -> Result<Tables, RulesError> {
    let dump: Value = serde_json::from_str(text).map_err(|error| RulesError::Json(error.to_string()))?;
    let objects = dump["nftables"].as_array();
    let objects = objects.ok_or_else(|| RulesError::Json("there is no list \"nftables\"".to_owned()))?;
    let mut tables = Tables::new();
    for object in objects {
        if let Some(chain) = of_family(object, "chain") {
            table(&mut tables, chain).chains.entry(text_of(&chain["name"])).or_default();
        } else if let Some(rule) = of_family(object, "rule") {
            let rules = table(&mut tables, rule).chains.entry(text_of(&rule["chain"])).or_default();
            rules.push(read_rule(rule));
        } else if let Some(map) = of_family(object, "map") {
            let elements = map["elem"].as_array().into_iter().flatten().filter_map(element);
            table(&mut tables, map).maps.entry(text_of(&map["name"])).or_default().extend(elements);
        }
    }
    Ok(tables)
}

fn of_family<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let object = object.get(kind)?;
    FAMILIES.contains(&object["family"].as_str()?).then_some(object)
}

/// Returns the table of an object. Tables of all families share it: an address is of one family.
fn table<'a>(tables: &'a mut Tables, object: &Value) -> &'a mut Table {
    let name = object.get("table").unwrap_or(&object["name"]);
    tables.entry(text_of(name)).or_default()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Parses a map element: `[{"concat": ["203.0.113.10", "tcp", 443]}, {"goto": {"target": "external-…"}}]`.
fn element(element: &Value) -> Option<Element> {
    let pair = element.as_array()?;
    let key = pair.first()?;
    // nft wraps the key if it has a comment, a counter or a timeout.
    let key = key.get("elem").map_or(key, |wrapped| &wrapped["val"]);
    let parts = key["concat"].as_array()?;
    let [to, transport, port] = parts.as_slice() else { return None };
    Some(Element {
        to: to.as_str()?.parse().ok()?,
        transport: Transport::parse(transport.as_str()?)?,
        port: number(port)?,
        action: verdict(pair.get(1)?)?,
    })
}

fn number(value: &Value) -> Option<u16> {
    u16::try_from(value.as_u64()?).ok()
}

/// Parses a verdict: `{"goto": {"target": "x"}}`, `{"drop": null}`.
fn verdict(value: &Value) -> Option<Action> {
    let target = |value: &Value| value["target"].as_str().map(str::to_owned);
    let object = value.as_object()?;
    object.iter().find_map(|(key, value)| match key.as_str() {
        "goto" => target(value).map(Action::Goto),
        "jump" => target(value).map(Action::Jump),
        "drop" => Some(Action::Drop),
        "reject" => Some(Action::Reject),
        "return" => Some(Action::Return),
        _ => None,
    })
}

fn read_rule(object: &Value) -> Rule {
    let mut rule = Rule::new(Action::Other);
    rule.comment = object["comment"].as_str().map(str::to_owned);
    for expression in object["expr"].as_array().into_iter().flatten() {
        if let Some(found) = expression.get("match") {
            read_match(found, &mut rule);
        } else if let Some(action) = action(expression) {
            rule.action = action;
        } else if let Some(map) = expression.get("vmap") {
            rule.action = choice(map);
        }
    }
    rule
}

fn read_match(found: &Value, rule: &mut Rule) {
    let field = found["left"]["payload"]["field"].as_str();
    let key = found["left"]["meta"]["key"].as_str();
    let is_equal = matches!(found["op"].as_str(), Some("==" | "in"));
    let right = &found["right"];
    match (field, key) {
        (Some("daddr"), _) if is_equal => rule.to = networks(right).into_iter().next(),
        // Either other sources are dropped, or these sources go on: both name the admitted sources.
        (Some("saddr"), _) => {
            rule.from = networks(right);
            rule.conditional |= !is_equal;
        }
        (Some("dport"), _) if is_equal => {
            rule.port = number(right);
            let protocol = found["left"]["payload"]["protocol"].as_str();
            rule.transport = rule.transport.or(protocol.and_then(Transport::parse));
        }
        (Some("protocol"), _) | (_, Some("l4proto")) if is_equal => {
            rule.transport = right.as_str().and_then(Transport::parse);
        }
        _ => rule.conditional = true,
    }
}

/// Parses addresses and prefixes, one or a set of them.
fn networks(value: &Value) -> Vec<IpNet> {
    let one = |value: &Value| -> Option<IpNet> {
        if let Some(prefix) = value.get("prefix") {
            let address: IpAddr = prefix["addr"].as_str()?.parse().ok()?;
            return IpNet::new(address, u8::try_from(prefix["len"].as_u64()?).ok()?).ok();
        }
        network(value.as_str()?)
    };
    match value["set"].as_array() {
        Some(set) => set.iter().filter_map(one).collect(),
        None => one(value).into_iter().collect(),
    }
}

fn action(expression: &Value) -> Option<Action> {
    if let Some(to) = expression.get("dnat") {
        return Some(Action::Destinations(destinations(to)));
    }
    // nft shows rules that iptables wrote without their arguments.
    if expression["xt"]["type"] == "target" && expression["xt"]["name"] == "DNAT" {
        return Some(Action::Destinations(vec!["a pod (nft does not show which)".to_owned()]));
    }
    verdict(expression)
}

/// Parses `{"addr": "10.244.1.7", "port": 8080}`, or an object with a map of several addresses.
fn destinations(to: &Value) -> Vec<String> {
    let shown = |address: &Value, port: Option<u16>| -> Option<String> {
        let address: IpAddr = address.as_str()?.parse().ok()?;
        Some(port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string()))
    };
    let several = to["addr"]["map"]["data"]["set"].as_array();
    let one_of = |pair: &Value| {
        let place = pair.as_array()?.get(1)?;
        match place["concat"].as_array() {
            Some(parts) => shown(parts.first()?, number(parts.get(1)?)),
            None => shown(place, to.get("port").and_then(number)),
        }
    };
    match several {
        Some(pairs) => pairs.iter().filter_map(one_of).collect(),
        None => shown(&to["addr"], to.get("port").and_then(number)).into_iter().collect(),
    }
}

/// Parses `numgen random mod 2 vmap { 0 : goto endpoint-…, 1 : goto endpoint-… }`.
fn choice(map: &Value) -> Action {
    let chains = map["data"]["set"].as_array().into_iter().flatten().filter_map(|pair| {
        match verdict(pair.as_array()?.get(1)?)? {
            Action::Goto(chain) | Action::Jump(chain) => Some(chain),
            _ => None,
        }
    });
    match map["data"].as_str().and_then(|name| name.strip_prefix('@')) {
        Some(name) => Action::Map(name.to_owned()),
        None => Action::OneOf(chains.collect()),
    }
}

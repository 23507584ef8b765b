//! Neutron's lists: every attribute can be a filter, repeated values mean "one of these".

use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::{has_extension, resource, views};
use crate::filters::{TAG_PARAMETERS, TagFilter, scalar_matches, select_fields};
use crate::paging::{self, SortKey};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

const CONTROL: [&str; 6] = ["fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"];

/// The resources that the caller may see and the query asks for.
pub(crate) fn list(world: &World, caller: &Caller, request: &Request, kind: ResourceKind) -> Answer {
    let filters = filters(request);
    check_filters(world, kind, &filters)?;
    let (has_tags, tags) = (has_extension(world, "standard-attr-tag"), TagFilter::from_request(request));
    let mut views: Vec<Value> = kind
        .resources(&world.network)
        .values()
        .filter(|resource| resource::may_see(world, caller, kind, resource))
        .filter(|resource| filters.iter().all(|(name, values)| may_match(resource, name, values)))
        .filter(|resource| !has_tags || tags.accepts(&json!(resource.tags)))
        .map(|resource| views::view(world, caller, kind, resource))
        .filter(|view| filters.iter().all(|(name, values)| matches(view, name, values)))
        .collect();
    paging::sort(&mut views, &sort_keys(request));
    let limit = limit(request)?;
    let reverse = request.parameter("page_reverse").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let marker = request.parameter("marker");
    let page = paging::page(views, marker, limit, reverse)
        .ok_or_else(|| NeutronFault::not_found(kind, marker.unwrap_or_default()))?;
    let links = links(world, request, &page, limit, reverse);
    let fields = request.parameters("fields");
    let entries: Vec<Value> = page.into_iter().map(|view| select_fields(view, &fields)).collect();
    let mut body = Map::new();
    body.insert(kind.collection().to_owned(), json!(entries));
    if let Some(links) = links {
        body.insert(format!("{}_links", kind.collection()), links);
    }
    Ok(Reply::ok(Value::Object(body)))
}

/// The filters by name, values of one name together.
fn filters(request: &Request) -> Vec<(String, Vec<String>)> {
    let mut filters: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in &request.query {
        if CONTROL.contains(&name.as_str()) || TAG_PARAMETERS.contains(&name.as_str()) {
            continue;
        }
        match filters.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value.clone()),
            None => filters.push((name.clone(), vec![value.clone()])),
        }
    }
    filters
}

fn check_filters(
    world: &World,
    kind: ResourceKind,
    filters: &[(String, Vec<String>)],
) -> Result<(), NeutronFault> {
    if !has_extension(world, "filter-validation") {
        return Ok(());
    }
    let known = views::attribute_names(kind);
    let unknown: Vec<Value> = filters
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, _)| json!(name))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let names = crate::python_repr::python_repr(&Value::Array(unknown));
    Err(NeutronFault::bad_request("HTTPBadRequest", format!("{names} is invalid attribute for filtering")))
}

/// Whether a resource can match, by what is cheap to compare: views of thousands of others need not be made.
fn may_match(resource: &Resource, name: &str, values: &[String]) -> bool {
    match resource.attributes.get(name) {
        Some(Value::String(text)) => values.contains(text),
        Some(_) | None => true,
    }
}

fn matches(view: &Value, name: &str, values: &[String]) -> bool {
    if name == "fixed_ips" {
        return values.iter().all(|value| fixed_ip_matches(&view["fixed_ips"], value));
    }
    values.iter().any(|value| scalar_matches(&view[name], value))
}

/// `ip_address=`, `ip_address_substr=` and `subnet_id=`, each within one value.
fn fixed_ip_matches(fixed_ips: &Value, condition: &str) -> bool {
    let Some((name, wanted)) = condition.split_once('=') else { return false };
    fixed_ips.as_array().into_iter().flatten().any(|ip| match name {
        "ip_address_substr" => ip["ip_address"].as_str().is_some_and(|address| address.contains(wanted)),
        name => ip[name] == wanted,
    })
}

fn sort_keys(request: &Request) -> Vec<SortKey> {
    let directions = request.parameters("sort_dir");
    let mut keys: Vec<SortKey> = request
        .parameters("sort_key")
        .into_iter()
        .enumerate()
        .map(|(index, name)| SortKey {
            name: name.to_owned(),
            descending: directions.get(index) == Some(&"desc"),
        })
        .collect();
    keys.push(SortKey::ascending("id"));
    keys
}

fn limit(request: &Request) -> Result<Option<usize>, NeutronFault> {
    match request.parameter("limit") {
        None => Ok(None),
        Some(text) => match text.parse::<usize>() {
            Ok(0) => Ok(None),
            Ok(limit) => Ok(Some(limit)),
            Err(_) => {
                let message = format!("Limit must be an integer 0 or greater and not '{text}'");
                Err(NeutronFault::bad_request("HTTPBadRequest", message))
            }
        },
    }
}

/// Links are there only with a limit, and both of them from the first page on.
fn links(
    world: &World,
    request: &Request,
    page: &[Value],
    limit: Option<usize>,
    reverse: bool,
) -> Option<Value> {
    let (limit, first, last) = (limit?, page.first()?, page.last()?);
    let kept: Vec<&str> = request
        .raw_query
        .split('&')
        .filter(|part| !part.starts_with("marker=") && !part.starts_with("page_reverse="))
        .collect();
    let url = format!("{}{}?{}", world.endpoint(Service::Network), request.path, kept.join("&"));
    let id = |view: &Value| view["id"].as_str().unwrap_or_default().to_owned();
    let full = page.len() >= limit;
    let mut links = Vec::new();
    if full || reverse {
        links.push(json!({"rel": "next", "href": format!("{url}&marker={}", id(last))}));
    }
    if full || !reverse {
        links.push(
            json!({"rel": "previous", "href": format!("{url}&marker={}&page_reverse=True", id(first))}),
        );
    }
    Some(json!(links))
}

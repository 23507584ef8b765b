//! Octavia's lists: filters, sorting, fields and pages.

use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use crate::filters::{TAG_PARAMETERS, TagFilter, scalar_matches, select_fields};
use crate::paging::{self, SortKey};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::load_balancing::Entity;

const CONTROL: [&str; 8] = ["fields", "limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse", "_"];
const SHARED: [&str; 7] =
    ["id", "provisioning_status", "operating_status", "project_id", "tenant_id", "created_at", "updated_at"];

/// What a list is made of.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    /// The key of the list in the answer.
    pub(crate) collection: &'a str,
    /// Names that filters and sorting may use; `None` for all that the views have.
    pub(crate) names: Option<Vec<&'a str>>,
    /// The service's base URL, for the links.
    pub(crate) base_url: &'a str,
    /// Whether this API version has tags.
    pub(crate) has_tags: bool,
}

/// The names that filters may use for a kind in one API version.
pub(crate) fn filter_names(kind: ObjectKind, minor: u8) -> Vec<&'static str> {
    let attributes = kind
        .attributes()
        .iter()
        .filter(|attribute| attribute.stored && attribute.since <= minor)
        .map(|one| one.name);
    let relations: &[&str] = match kind {
        ObjectKind::LoadBalancer => &["vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id"],
        // Both spellings of the first one, as the real service.
        ObjectKind::Listener => &["loadbalancer_id", "load_balancer_id", "default_pool_id"],
        ObjectKind::Pool => &["loadbalancer_id", "load_balancer_id", "listener_id"],
        ObjectKind::Member => &[],
        ObjectKind::HealthMonitor => &["pool_id"],
    };
    attributes.chain(relations.iter().copied()).chain(SHARED).collect()
}

/// Whether an object can be in the list at all, by what is cheap to compare: views of thousands of others need not be made.
pub(crate) fn may_match(request: &Request, entity: &Entity, load_balancer_id: Option<&str>) -> bool {
    let is = |name: &str, value: &str| request.parameter(name).is_none_or(|wanted| wanted == value);
    is("id", &entity.id)
        && is("name", entity.text("name"))
        && load_balancer_id.is_none_or(|id| is("loadbalancer_id", id) && is("load_balancer_id", id))
}

/// The list that the query asks for.
pub(crate) fn list(request: &Request, views: Vec<Value>, listing: &Listing<'_>) -> Answer {
    check_names(request, listing)?;
    let limit = limit(request)?;
    let tags = TagFilter::from_request(request);
    let mut views: Vec<Value> = views
        .into_iter()
        .filter(|view| !listing.has_tags || tags.accepts(&view["tags"]))
        .filter(|view| filters(request).all(|(name, wanted)| attribute_matches(view, name, wanted)))
        .collect();
    paging::sort(&mut views, &sort_keys(request, listing)?);
    let marker = request.parameter("marker");
    let reverse = request.parameter("page_reverse").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let Some(page) = paging::page(views, marker, limit, reverse) else {
        let text = format!("Supplied pagination marker '{}' is not valid.", marker.unwrap_or_default());
        return Err(OctaviaFault::BadRequest(text).into());
    };
    let links = links(request, &page, limit, listing);
    let fields = request.parameters("fields");
    let entries: Vec<Value> = page.into_iter().map(|view| select_fields(view, &fields)).collect();
    let mut body = Map::new();
    body.insert(listing.collection.to_owned(), json!(entries));
    body.insert(format!("{}_links", listing.collection), links);
    Ok(Reply::ok(Value::Object(body)))
}

fn filters(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    request
        .query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !CONTROL.contains(name) && !TAG_PARAMETERS.contains(name))
}

fn check_names(request: &Request, listing: &Listing<'_>) -> Result<(), OctaviaFault> {
    let invalid =
        || OctaviaFault::BadRequest("One or more arguments are either duplicate or invalid".to_owned());
    let Some(names) = &listing.names else { return Ok(()) };
    let unknown_filter = filters(request).any(|(name, _)| !names.contains(&name));
    let tags_unknown =
        !listing.has_tags && TAG_PARAMETERS.iter().any(|name| request.parameter(name).is_some());
    if unknown_filter || tags_unknown { Err(invalid()) } else { Ok(()) }
}

/// Relations are arrays of ids on the wire and one id in the query.
fn attribute_matches(view: &Value, name: &str, wanted: &str) -> bool {
    let related = match name {
        "loadbalancer_id" | "load_balancer_id" => "loadbalancers",
        "listener_id" => "listeners",
        "pool_id" => "pools",
        _ => return scalar_matches(&view[name], wanted),
    };
    view[related].as_array().is_some_and(|ids| ids.iter().any(|id| id["id"] == wanted))
}

fn limit(request: &Request) -> Result<Option<usize>, Reply> {
    match request.parameter("limit") {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let description = format!("Supplied pagination limit '{text}' is not valid.");
            Reply::titled(http::StatusCode::BAD_REQUEST, &description)
        }),
    }
}

fn sort_keys(request: &Request, listing: &Listing<'_>) -> Result<Vec<SortKey>, OctaviaFault> {
    let mut keys: Vec<SortKey> = match (request.parameter("sort"), request.parameter("sort_key")) {
        (Some(sort), _) => sort.split(',').map(SortKey::parse).collect(),
        (None, Some(key)) => {
            let descending = request.parameter("sort_dir") == Some("desc");
            vec![SortKey { name: key.to_owned(), descending }]
        }
        (None, None) => vec![SortKey::ascending("created_at")],
    };
    if let Some(names) = &listing.names
        && let Some(unknown) = keys.iter().find(|key| !names.contains(&key.name.as_str()))
    {
        return Err(OctaviaFault::BadRequest(format!("Supplied sort key '{}' is not valid.", unknown.name)));
    }
    keys.push(SortKey::ascending("id"));
    Ok(keys)
}

/// Links keep the limit and the order, and lose fields and filters: so does the real service.
fn links(request: &Request, page: &[Value], limit: Option<usize>, listing: &Listing<'_>) -> Value {
    let (Some(limit), Some(first), Some(last)) = (limit, page.first(), page.last()) else { return json!([]) };
    let mut kept = vec![format!("limit={limit}")];
    for name in ["sort", "sort_key"] {
        if let Some(value) = request.parameter(name) {
            kept.push(format!("{name}={value}"));
        }
    }
    let url = format!("{}{}?{}", listing.base_url, request.path, kept.join("&"));
    let id = |view: &Value| view["id"].as_str().unwrap_or_default().to_owned();
    let mut links = Vec::new();
    if request.parameter("marker").is_some() {
        links.push(
            json!({"href": format!("{url}&marker={}&page_reverse=True", id(first)), "rel": "previous"}),
        );
    }
    if page.len() >= limit {
        links.push(json!({"href": format!("{url}&marker={}", id(last)), "rel": "next"}));
    }
    json!(links)
}

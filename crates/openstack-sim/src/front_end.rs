//! What stands in front of the services, or how they are configured: requests lose what the cloud takes no notice of, and answers
//! what it does not show.

use std::sync::{Mutex, PoisonError};

use http::Method;
use serde_json::Value;

use crate::octavia::lacks::remove;
use crate::request::Request;

/// Parameters of lists that choose no objects.
const NO_FILTERS: [&str; 6] = ["fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"];

/// How requests or answers are changed on their way.
#[derive(Debug, Clone)]
pub enum Rewrite {
    /// Lists of a service whose path ends so are answered as if they had been asked for without these filters; without any where
    /// none is named. Octavia with `allow_filtering = False` (octavia/api/common/pagination.py), Neutron without the extension
    /// `filter-validation` for attributes that it does not have (neutron/api/api_common.py).
    IgnoresFilters { service: &'static str, path: &'static str, names: &'static [&'static str] },
    /// Answers of a service do not have this: `floatingips[].tags`.
    Hides { service: &'static str, place: &'static str },
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct FrontEnd {
    rules: Mutex<Vec<Rewrite>>,
}

impl FrontEnd {
    pub(crate) fn add(&self, rule: Rewrite) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }

    fn rules(&self) -> Vec<Rewrite> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The request as the service gets it.
    pub(crate) fn forward(&self, mut request: Request) -> Request {
        for rule in self.rules() {
            let Rewrite::IgnoresFilters { service, path, names } = rule else { continue };
            let is_list = request.method == Method::GET && request.path.ends_with(path);
            if !is_list || service != request.service.catalog_type() {
                continue;
            }
            request.query.retain(|(key, _)| {
                NO_FILTERS.contains(&key.as_str()) || !(names.is_empty() || names.contains(&key.as_str()))
            });
            let mut kept = url::form_urlencoded::Serializer::new(String::new());
            request.raw_query = kept.extend_pairs(&request.query).finish();
        }
        request
    }

    /// Takes out of an answer what the client does not get to see.
    pub(crate) fn hide(&self, request: &Request, body: &mut Value) {
        for rule in self.rules() {
            if let Rewrite::Hides { service, place } = rule
                && service == request.service.catalog_type()
            {
                remove(body, place);
            }
        }
    }
}

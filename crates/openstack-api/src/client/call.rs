//! A named call before it is sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

use super::filter::Filters;
use crate::error::{ApiError, DecodeError};
use crate::optional::Access;
use crate::transport::{Request, Service};

/// Objects per page of a long list. Octavia and Neutron have no limit unless an administrator sets one, and the text of thousands
/// of objects takes megabytes, in addition to the objects read from it.
const PAGE_SIZE: u32 = 400;

/// A call: its name in metrics, and its request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    name: &'static str,
    service: Service,
    method: Method,
    path: Result<String, String>,
    pub(super) query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Result<Bytes, String>>,
}

/// The paths of a service below a common root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths {
    service: Service,
    root: &'static [&'static str],
}

impl Paths {
    /// Creates the paths of `service` below `root`.
    pub(crate) const fn new(service: Service, root: &'static [&'static str]) -> Self {
        Self { service, root }
    }

    /// Creates a read, named `name` in metrics. `segments` are the parts of the path; ids among them are validated and encoded.
    pub(crate) fn get(self, name: &'static str, segments: &[&str]) -> Call {
        self.call(name, Method::GET, segments)
    }

    /// Creates a POST, which creates an object.
    pub(crate) fn post(self, name: &'static str, segments: &[&str]) -> Call {
        self.call(name, Method::POST, segments)
    }

    /// Creates a PUT, which changes an object.
    pub(crate) fn put(self, name: &'static str, segments: &[&str]) -> Call {
        self.call(name, Method::PUT, segments)
    }

    pub(crate) fn delete(self, name: &'static str, segments: &[&str]) -> Call {
        self.call(name, Method::DELETE, segments)
    }

    fn call(self, name: &'static str, method: Method, segments: &[&str]) -> Call {
        let path = join(&[self.root, segments].concat());
        let (query, headers) = (Vec::new(), HeaderMap::new());
        Call { name, service: self.service, method, path, query, headers, body: None }
    }
}

impl Call {
    /// Adds a query pair.
    pub(crate) fn query(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((key.into(), value.into()));
        self
    }

    /// Adds a query pair if there is a value.
    pub(crate) fn query_if(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(key, value),
            None => self,
        }
    }

    /// Limits the answer to these fields of each object.
    pub(crate) fn fields(self, names: &[&str]) -> Self {
        names.iter().fold(self, |call, name| call.query("fields", *name))
    }

    /// Requests a list in pages of [`PAGE_SIZE`].
    pub(crate) fn in_pages(self) -> Self {
        self.query("limit", PAGE_SIZE.to_string())
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the body to `{root: value}`.
    pub(crate) fn body<T: Serialize + ?Sized>(mut self, root: &str, value: &T) -> Self {
        // Serialized directly into text: a tree of values with thousands of members would take many times the memory.
        let body = serde_json::to_vec(&BTreeMap::from([(root, value)])).map_err(|error| error.to_string());
        self.body = Some(body.map(|mut text| {
            text.shrink_to_fit();
            Bytes::from(text)
        }));
        self
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns what the objects of a list have to match. Nova's filters are regular expressions.
    pub(super) fn filters(&self) -> Filters {
        if self.service == Service::Compute { Filters::default() } else { Filters::of(&self.query) }
    }

    /// Returns whether the request has an attribute or argument of this name. In a text within the body quotes are escaped.
    pub(crate) fn carries(&self, name: &str) -> bool {
        let key = format!("\"{name}\":");
        let body = self.body.iter().flatten();
        let mut bodies = body.map(|body| body.windows(key.len()).any(|part| part == key.as_bytes()));
        self.query.iter().any(|(query, _)| query == name) || bodies.any(|has_it| has_it)
    }

    pub(crate) fn creates(&self) -> bool {
        self.method == Method::POST
    }

    /// Returns method and path without ids, as the table of calls has them.
    pub(crate) fn access(&self) -> Option<&'static Access> {
        let path = self.path.as_ref().ok()?;
        Access::all().find(|access| access.allows(self.service, self.method.as_str(), path))
    }

    /// Returns the error of an answer to this call that cannot be decoded.
    pub(crate) fn undecodable(&self, source: DecodeError) -> ApiError {
        ApiError::Decode { call: self.name, service: self.service, source }
    }

    pub(super) fn request(&self) -> Result<Request, ApiError> {
        let path = self.path.clone().map_err(|id| ApiError::InvalidId { call: self.name, id })?;
        let body = match &self.body {
            None => None,
            Some(Ok(body)) => Some(body.clone()),
            Some(Err(error)) => {
                let source = crate::transport::TransportError::Request {
                    service: self.service,
                    source: error.clone().into(),
                };
                return Err(ApiError::Transport { call: self.name, source });
            }
        };
        let (service, method) = (self.service, self.method.clone());
        Ok(Request {
            service,
            method,
            path,
            query: self.query.clone(),
            headers: self.headers.clone(),
            body,
            permit: None,
        })
    }
}

/// Joins path segments. Refuses an empty segment, which would turn a call on one object into a call on the collection, and `..`,
/// which would turn it into a call on another object; the refused segment is the error.
fn join(segments: &[&str]) -> Result<String, String> {
    if segments.is_empty() {
        return Ok("/".to_owned());
    }
    let mut path = String::new();
    for segment in segments {
        if segment.is_empty() || *segment == "." || *segment == ".." {
            return Err((*segment).to_owned());
        }
        path.push('/');
        path.push_str(&path_segment(segment));
    }
    Ok(path)
}

/// Percent-encodes all characters except those that RFC 3986 calls unreserved.
fn path_segment(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ids come from annotations and files. Whatever they contain, the request stays below the intended collection.
        #[test]
        fn an_id_is_refused_or_stays_one_segment(id in any::<String>()) {
            if let Ok(path) = join(&["v2.0", "ports", &id]) {
                let url = url::Url::parse(&format!("http://host{path}")).unwrap();
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 3);
                prop_assert_eq!(&segments[..2], ["v2.0", "ports"]);
                prop_assert!(!segments[2].is_empty());
                prop_assert_eq!((url.query(), url.fragment()), (None, None));
            } else {
                prop_assert!(["", ".", ".."].contains(&id.as_str()));
            }
        }
    }
}

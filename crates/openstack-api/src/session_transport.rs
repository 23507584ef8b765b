//! Sends requests over HTTP, beside a session of the `openstack` crate.
//!
//! The session is for typed calls of that crate. It does not send this crate's requests (docs/adr/0002): its errors hide whether a
//! request may have been processed, and it caches the endpoints for ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderName, StatusCode};
use openstack::session::{ServiceType, Session};
use openstack::{EndpointFilters, InterfaceType};
use reqwest::header::CONTENT_TYPE;
use url::Url;

use crate::body::{BodyError, whole_body};
use crate::endpoint;
use crate::identity::{AuthError, AuthOptions, Keystone, Token, http_client, network_cause};
use crate::transport::{Request, Response, Service, Transport, TransportError};

impl ServiceType for Service {
    fn catalog_type(&self) -> &'static str {
        Service::catalog_type(*self)
    }

    /// Paths contain the version; version discovery would cost a request per service.
    fn version_discovery_supported(&self) -> bool {
        false
    }
}

/// Sends requests to a real cloud. Clones share the token and connections.
#[derive(Clone)]
pub struct SessionTransport {
    http: reqwest::Client,
    keystone: Keystone,
    session: Session,
    region: Option<String>,
    interface: InterfaceType,
    endpoints: BTreeMap<Service, Url>,
}

impl std::fmt::Debug for SessionTransport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionTransport")
            .field("keystone", &self.keystone)
            .field("region", &self.region)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}

impl SessionTransport {
    /// Logs in and creates the transport.
    ///
    /// # Errors
    /// The options are invalid, or Keystone does not return a token.
    pub async fn connect(options: &AuthOptions) -> Result<Self, Arc<AuthError>> {
        let http = http_client(options)?;
        let keystone = Keystone::new(http.clone(), options)?;
        // Before the session requests a token: the session's error would hide the cause.
        keystone.token().await?;
        let mut filters = EndpointFilters::default().with_interfaces(options.interface);
        filters.region.clone_from(&options.region);
        let session = Session::new_with_client(http.clone(), keystone.clone())
            .await
            .map_err(|error| AuthError::Session(error.into()))?
            .with_endpoint_filters(filters);
        let (region, interface) = (options.region.clone(), options.interface);
        let endpoints = options.endpoints.clone();
        Ok(Self { http, keystone, session, region, interface, endpoints })
    }

    /// Returns the session of the `openstack` crate, for calls that this crate lacks.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the authentication plugin.
    pub const fn keystone(&self) -> &Keystone {
        &self.keystone
    }

    /// Returns the address of a service from the configuration, or else from the catalog of the present token, since services may
    /// move while this program runs.
    ///
    /// # Errors
    /// [`TransportError::NoEndpoint`] if neither has the service; or a failed login.
    pub async fn endpoint(&self, service: Service) -> Result<Url, TransportError> {
        let token = self.keystone.token().await.map_err(TransportError::Auth)?;
        self.listed(service, &token)
    }

    fn listed(&self, service: Service, token: &Token) -> Result<Url, TransportError> {
        let listed = token.catalog.endpoint(service.catalog_type(), self.interface, self.region.as_deref());
        self.endpoints.get(&service).or(listed).cloned().ok_or_else(|| TransportError::NoEndpoint {
            service,
            region: self.region.clone(),
            interface: self.interface,
        })
    }

    fn url(&self, request: &Request, token: &Token) -> Result<Url, TransportError> {
        let service = request.service;
        let listed = self.listed(service, token)?;
        endpoint::request_url(service, &listed, &request.path, &request.query).ok_or_else(|| {
            TransportError::Request { service, source: format!("{:?} is not a path", request.path).into() }
        })
    }

    async fn attempt(&self, request: &Request, token: &Token) -> Result<Response, TransportError> {
        let (service, url) = (request.service, self.url(request, token)?);
        let mut builder =
            self.http.request(request.method.clone(), url.clone()).headers(request.headers.clone());
        builder = builder.header(HeaderName::from_static("x-auth-token"), token.header());
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let failed = |error: reqwest::Error| network_error(service, &url, error);
        request.check_permit()?;
        let response = builder.send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = whole_body(response).await.map_err(|error| match error {
            BodyError::TooLong => TransportError::TooLong { service, host: endpoint::host(&url) },
            BodyError::Network(error) => failed(error),
        })?;
        Ok(Response { status, headers, body })
    }
}

#[async_trait]
impl Transport for SessionTransport {
    /// Sends a request. After a 401 it logs in again and repeats the request once: the refused request was not processed.
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        let token = self.keystone.token().await.map_err(TransportError::Auth)?;
        let response = self.attempt(&request, &token).await?;
        if response.status != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        tracing::debug!(service = %request.service, "the token was refused, logging in again");
        let token = self.keystone.reauthenticate(&token).await.map_err(TransportError::Auth)?;
        self.attempt(&request, &token).await
    }
}

fn network_error(service: Service, url: &Url, error: reqwest::Error) -> TransportError {
    let host = endpoint::host(url);
    if error.is_builder() {
        TransportError::Request { service, source: network_cause(error) }
    } else if error.is_connect() {
        TransportError::Connect { service, host, source: network_cause(error) }
    } else {
        let timed_out = error.is_timeout();
        TransportError::LostAnswer { service, host, timed_out, source: network_cause(error) }
    }
}

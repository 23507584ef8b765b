//! One request from arrival to answer.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use crate::access::{Attributes, User};
use crate::answer::{self, Answer};
use crate::failure::Failure;
use crate::faults::Verdict;
use crate::kinds::Part;
use crate::log::RequestRecord;
use crate::parameters::{self, Parameters};
use crate::patch::PatchKind;
use crate::route::{Review, Route};
use crate::shared::Shared;
use crate::table::IncludeObject;
use crate::verbs::{DeleteOptions, Target, Written};
use crate::{body, discovery, openapi, review, table, token, watch};

/// Serves one request. An error is a broken connection: a fault asked for it.
pub(crate) async fn handle(shared: Arc<Shared>, parts: Parts, body: Bytes) -> io::Result<Answer> {
    let now = shared.state().clock.now();
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let record = RequestRecord::new(parts.method.clone(), path, query, &parts.headers, &body, now);
    let verdict = shared.faults().judge(&record);
    let number = shared.log().arrived(record.clone());
    let reset = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let answer = match verdict {
        Verdict::Serve => serve(&shared, &parts.headers, &record),
        Verdict::Answer { status, body, retry_after } => {
            answer::with_retry_after(answer::json(status, &body), retry_after)
        }
        Verdict::Refuse => return reset(),
        Verdict::Hang => std::future::pending().await,
        Verdict::ServeAndLoseAnswer => {
            serve(&shared, &parts.headers, &record);
            return reset();
        }
        Verdict::ServeAfter(time) => {
            tokio::time::sleep(time).await;
            serve(&shared, &parts.headers, &record)
        }
    };
    shared.log().answered(number, answer.status().as_u16());
    Ok(answer)
}

fn serve(shared: &Arc<Shared>, headers: &HeaderMap, record: &RequestRecord) -> Answer {
    let user = match shared.access().authenticate(headers) {
        Ok(user) => user,
        Err(failure) => return answer::failure(&failure),
    };
    if !accepts_json(headers) {
        return answer::failure(&Failure::not_acceptable());
    }
    let call = Call { shared, headers, record, parameters: Parameters::new(&record.query), user };
    call.answer(Route::parse(&record.path)).unwrap_or_else(|failure| answer::failure(&failure))
}

/// Clients that only take protobuf get an error that says so.
fn accepts_json(headers: &HeaderMap) -> bool {
    let Some(accepted) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return true;
    };
    accepted.split(',').any(|range| {
        let media_type = range.split(';').next().unwrap_or_default().trim();
        matches!(media_type, "application/json" | "*/*" | "application/*" | "text/plain" | "")
    })
}

struct Call<'a> {
    shared: &'a Arc<Shared>,
    headers: &'a HeaderMap,
    record: &'a RequestRecord,
    parameters: Parameters<'a>,
    user: User,
}

impl Call<'_> {
    fn answer(&self, route: Route) -> Result<Answer, Failure> {
        let version = self.shared.state().version;
        let document = |document: Option<Value>| match document {
            Some(document) => answer::json(200, &document),
            None => answer::unknown_path(),
        };
        Ok(match route {
            Route::Objects(target) => return self.objects(&target),
            Route::Token(target) => return self.token(&target),
            Route::Review(review) => return self.review(review),
            Route::Version => answer::json(200, &discovery::version(version)),
            Route::Health => answer::text(200, "ok"),
            Route::CoreVersions => answer::json(200, &discovery::core_versions()),
            Route::Groups => answer::json(200, &discovery::groups()),
            Route::Group(group) => document(discovery::group(&group)),
            Route::Resources { group, version } => document(discovery::resources(&group, &version)),
            Route::OpenApi(path) => document(openapi::document(&path, version)),
            Route::UnknownResource => return Err(Failure::unknown_resource()),
            Route::Unknown => answer::unknown_path(),
        })
    }

    fn authorize(&self, verb: &str, target: &Target, subresource: &str) -> Result<(), Failure> {
        let attributes = Attributes {
            verb: verb.to_owned(),
            group: target.resource.group.to_owned(),
            resource: target.resource.plural.to_owned(),
            subresource: subresource.to_owned(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            path: String::new(),
        };
        self.shared.access().authorize(&self.user, &attributes)
    }

    fn objects(&self, target: &Target) -> Result<Answer, Failure> {
        let is_watch = self.record.is_watch();
        let verb = match (&self.record.method, target.name.is_empty()) {
            (&Method::GET, _) if is_watch => "watch",
            (&Method::GET, true) => "list",
            (&Method::GET, false) => "get",
            (&Method::POST, true) => "create",
            (&Method::PUT, false) => "update",
            (&Method::PATCH, false) => "patch",
            (&Method::DELETE, false) if target.part == Part::Main => "delete",
            _ => return Err(Failure::method_not_allowed()),
        };
        let subresource = match target.part {
            Part::Main => "",
            Part::Status => "status",
        };
        self.authorize(verb, target, subresource)?;
        match verb {
            "watch" => self.watch(target),
            "list" => {
                let options = self.parameters.list(target.resource, self.version())?;
                let list = self.shared.state().list(target, &options)?;
                Ok(self.shown(target, &list))
            }
            "get" => {
                let object = self.shared.state().get(target)?;
                Ok(self.shown(target, &object))
            }
            "create" => self.create(target),
            "update" => self.update(target),
            "patch" => self.patch(target),
            _ => self.delete(target),
        }
    }

    fn shown(&self, target: &Target, object: &Value) -> Answer {
        if !wants_table(self.headers) {
            return answer::json(200, object);
        }
        let now = self.shared.state().clock.now();
        let single = std::slice::from_ref(object);
        let items = object.get("items").and_then(Value::as_array).map_or(single, Vec::as_slice);
        let mut rendered = table::render(target.resource, items, self.include_object(), now);
        rendered["metadata"] =
            object.get("items").map_or_else(Value::default, |_| object["metadata"].clone());
        answer::json(200, &rendered)
    }

    fn include_object(&self) -> IncludeObject {
        IncludeObject::parse(self.parameters.get("includeObject"))
    }

    fn watch(&self, target: &Target) -> Result<Answer, Failure> {
        let version = self.shared.state().version;
        let mut options = self.parameters.watch(target.resource, version)?;
        options.as_table = wants_table(self.headers).then(|| self.include_object());
        Ok(answer::lines(watch::open(self.shared, target.clone(), options)))
    }

    fn body(&self) -> Result<Value, Failure> {
        body::parse(&self.record.content_type, &self.record.body)
    }

    fn create(&self, target: &Target) -> Result<Answer, Failure> {
        let options = self.parameters.write("CreateOptions", &self.record.user_agent, self.version())?;
        let sent = self.body()?;
        Ok(written(&self.shared.state().create(target, &sent, &options)?))
    }

    fn update(&self, target: &Target) -> Result<Answer, Failure> {
        let options = self.parameters.write("UpdateOptions", &self.record.user_agent, self.version())?;
        let sent = self.body()?;
        Ok(written(&self.shared.state().update(target, &sent, &options)?))
    }

    fn version(&self) -> crate::version::ApiVersion {
        self.shared.state().version
    }

    fn patch(&self, target: &Target) -> Result<Answer, Failure> {
        let kind = PatchKind::from_media_type(&self.record.content_type)
            .ok_or_else(Failure::unsupported_media_type)?;
        let options = self.parameters.write("PatchOptions", &self.record.user_agent, self.version())?;
        let patch = body::parse_patch(&self.record.body)?;
        Ok(written(&self.shared.state().patch(target, kind, &patch, &options)?))
    }

    fn delete(&self, target: &Target) -> Result<Answer, Failure> {
        let body = if self.record.body.is_empty() { Value::Null } else { self.body()? };
        let mut options = DeleteOptions::from_body(&body);
        options.dry_run |= parameters::is_dry_run(&self.parameters, "DeleteOptions", self.version())?;
        Ok(written(&self.shared.state().delete(target, &options)?))
    }

    fn token(&self, target: &Target) -> Result<Answer, Failure> {
        if self.record.method != Method::POST {
            return Err(Failure::method_not_allowed());
        }
        self.authorize("create", target, "token")?;
        let sent = self.body()?;
        let account = self.shared.state().get(target)?;
        let now = self.shared.state().clock.now();
        let (answer, text, token) = token::issue(&account, &sent, now, self.version());
        self.shared.access().add_token(&text, token);
        Ok(answer::json(201, &answer))
    }

    fn review(&self, review: Review) -> Result<Answer, Failure> {
        if self.record.method != Method::POST {
            return Err(Failure::method_not_allowed());
        }
        if review != Review::SelfSubjectAccess {
            let (_, group, resource, _) =
                Review::ALL.into_iter().find(|(one, ..)| *one == review).unwrap_or(Review::ALL[0]);
            let attributes = Attributes {
                verb: "create".to_owned(),
                group: group.to_owned(),
                resource: resource.to_owned(),
                ..Attributes::default()
            };
            self.shared.access().authorize(&self.user, &attributes)?;
        }
        let sent = self.body()?;
        let answer = review::answer(&self.shared.access(), review, &self.user, &sent, self.version())?;
        Ok(answer::json(201, &answer))
    }
}

fn wants_table(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').next().is_some_and(|first| first.contains("as=Table"))
}

fn written(written: &Written) -> Answer {
    let status = if written.created { 201 } else { 200 };
    answer::json_with_warnings(status, &written.object, &written.warnings)
}

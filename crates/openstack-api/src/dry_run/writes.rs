//! The changes of a write. Octavia is assumed to make them at once.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::kind::{Kind, Target, pool_of};
use super::view::{get, under};
use super::{DryRun, ObjectChange, Stop, answer, placeholder, unknown};
use crate::client::Paths;
use crate::transport::{Request, Response, Service, Transport as _, TransportError};

pub(super) type Attributes = Map<String, Value>;

impl DryRun {
    /// Returns the changes of the request, and its answer.
    ///
    /// # Errors
    /// The object does not exist, the cloud cannot be queried, or the effect of the request cannot be predicted.
    pub(super) async fn effect(
        &self,
        request: &Request,
        target: Target<'_>,
        body: Option<&Value>,
    ) -> Result<(Response, Vec<ObjectChange>), Stop> {
        let Target { kind, list, id, below } = target;
        let attributes = || {
            let object = body.and_then(|body| body[kind.root()].as_object()).cloned();
            object.ok_or_else(|| unknown(request, &format!("the body has no {}", kind.root())))
        };
        let mut writing = Writing { run: self, changes: Vec::new() };
        let path = format!("{list}/{}", id.unwrap_or_default());
        let (status, shown) = match (&request.method, kind, id, below) {
            (&Method::POST, _, None, []) => {
                let object = writing.create(kind, &list, attributes()?).await?;
                (StatusCode::CREATED, json!({kind.root(): object}))
            }
            (&Method::PUT, Kind::Member, None, []) => {
                let wanted = body.and_then(|body| body["members"].as_array()).cloned();
                let wanted = wanted.ok_or_else(|| unknown(request, "the body has no members"))?;
                let additive = request.query.contains(&("additive_only".to_owned(), "true".to_owned()));
                writing.batch(&list, wanted, additive).await?;
                (StatusCode::ACCEPTED, Value::Null)
            }
            (&Method::PUT, _, Some(_), []) => {
                let attributes = attributes()?;
                let after = writing.update(kind, path, |object| object.extend(attributes)).await?;
                (StatusCode::OK, json!({kind.root(): after}))
            }
            (&Method::PUT, Kind::LoadBalancer, Some(_), ["failover"]) => {
                writing
                    .update(kind, path, |one| drop(one.insert("operating_status".into(), "ONLINE".into())))
                    .await?;
                (StatusCode::ACCEPTED, Value::Null)
            }
            (&Method::PUT, Kind::Router, Some(_), [action @ ("add_extraroutes" | "remove_extraroutes")]) => {
                let named = attributes()?.remove("routes");
                let adds = *action == "add_extraroutes";
                let after =
                    writing.update(kind, path, |router| change_list(router, "routes", named, adds)).await?;
                (StatusCode::OK, json!({kind.root(): after}))
            }
            (&Method::PUT, _, Some(_), ["tags"]) => {
                let tags = body.map(|body| body["tags"].clone()).unwrap_or_default();
                writing.update(kind, path, |object| drop(object.insert("tags".to_owned(), tags))).await?;
                (StatusCode::OK, json!({}))
            }
            (&Method::DELETE, _, Some(_), ["tags", tag]) => {
                writing
                    .update(kind, path, |object| change_list(object, "tags", Some(json!([tag])), false))
                    .await?;
                (StatusCode::NO_CONTENT, Value::Null)
            }
            (&Method::DELETE, _, Some(_), []) => {
                writing.delete(kind, path).await?;
                (StatusCode::NO_CONTENT, Value::Null)
            }
            _ => return Err(unknown(request, "this program makes no such call").into()),
        };
        Ok((answer(status, &shown), writing.changes))
    }

    pub(super) async fn object(&self, kind: Kind, path: &str) -> Result<Value, Stop> {
        let request = get(kind, path.to_owned());
        let response = self.view.send(request.clone()).await?;
        match under(kind.root(), &response) {
            Some(object) => Ok(object),
            None if response.status.is_success() => {
                Err(unknown(&request, "the answer cannot be read").into())
            }
            None => Err(Stop::Answer(Box::new(response))),
        }
    }

    /// Reads all objects of a list.
    async fn list(
        &self,
        service: Service,
        list: &str,
        root: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<Value>, Stop> {
        let segments: Vec<&str> = list.split('/').skip(1).collect();
        let call = Paths::new(service, &[]).get("list", &segments);
        let call = query.iter().fold(call, |call, (key, value)| call.query(*key, *value));
        let listed = self.client.collect(call, root, Vec::new()).await;
        listed.map_err(|error| Stop::Failed(TransportError::Request { service, source: error.into() }))
    }

    /// Reads the objects of a kind with this attribute.
    async fn list_by(&self, kind: Kind, key: &str, value: &str) -> Result<Vec<Value>, Stop> {
        self.list(kind.of_service(), &kind.list(), kind.list_root(), &[(key, value)]).await
    }

    pub(super) fn new_id(&self) -> String {
        placeholder::id(self.view.next())
    }

    /// Returns an address of the family of a subnet; of IPv4, if the subnet cannot be read.
    pub(super) async fn new_address(&self, subnet: &Value) -> Result<Value, Stop> {
        let subnets = self.subnets("id", subnet).await?;
        let v6 = subnets.first().is_some_and(|subnet| subnet["ip_version"] == 6);
        Ok(json!(placeholder::address(self.view.next(), v6)))
    }

    /// Returns the subnets with this attribute; none where the value is null.
    pub(super) async fn subnets(&self, key: &str, value: &Value) -> Result<Vec<Value>, Stop> {
        match value.as_str() {
            Some(value) => self.list(Service::Network, "/v2.0/subnets", "subnets", &[(key, value)]).await,
            None => Ok(Vec::new()),
        }
    }
}

/// A write with its changes so far.
pub(super) struct Writing<'a> {
    pub(super) run: &'a DryRun,
    changes: Vec<ObjectChange>,
}

impl Writing<'_> {
    pub(super) fn set(&mut self, kind: Kind, path: String, before: Option<Value>, after: Option<Value>) {
        let id = id_of(before.as_ref().or(after.as_ref()).unwrap_or(&Value::Null));
        let parent = pool_of(kind, &path).map(str::to_owned);
        self.run.view.write(path, after.clone());
        self.changes.push(ObjectChange { kind, id, parent, before, after });
    }

    /// Notes new attributes of an object.
    async fn update(
        &mut self,
        kind: Kind,
        path: String,
        edit: impl FnOnce(&mut Attributes),
    ) -> Result<Value, Stop> {
        let before = self.run.object(kind, &path).await?;
        let mut after = before.clone();
        if let Some(object) = after.as_object_mut() {
            edit(object);
            if kind.is_octavias() {
                object.insert("provisioning_status".to_owned(), json!("ACTIVE"));
            }
        }
        self.set(kind, path, Some(before.clone()), Some(after.clone()));
        self.relink(kind, &before, &after).await?;
        Ok(after)
    }

    /// Changes an object as a consequence of another object's change.
    pub(super) async fn edit(&self, kind: Kind, id: &str, edit: impl FnOnce(&mut Value)) -> Result<(), Stop> {
        let path = kind.path(id);
        let mut object = self.run.object(kind, &path).await?;
        edit(&mut object);
        self.run.view.write(path, Some(object));
        Ok(())
    }

    /// Notes the members of a batch; members that it does not name are deleted, unless it only adds. Attributes that it leaves out
    /// of a named member are reset.
    async fn batch(&mut self, list: &str, wanted: Vec<Value>, additive: bool) -> Result<(), Stop> {
        let mut before = self.run.list(Service::LoadBalancer, list, "members", &[]).await?;
        for wanted in wanted {
            let is_same =
                |member: &Value| ["address", "protocol_port"].iter().all(|key| member[*key] == wanted[*key]);
            match before.iter().position(is_same) {
                None => drop(
                    self.create(Kind::Member, list, wanted.as_object().cloned().unwrap_or_default()).await?,
                ),
                Some(place) => {
                    let known = before.swap_remove(place);
                    let mut after = known.clone();
                    extend(&mut after, member_defaults());
                    extend(&mut after, wanted);
                    after["provisioning_status"] = json!("ACTIVE");
                    if after != known {
                        self.set(Kind::Member, format!("{list}/{}", id_of(&known)), Some(known), Some(after));
                    }
                }
            }
        }
        for gone in before.into_iter().filter(|_| !additive) {
            self.set(Kind::Member, format!("{list}/{}", id_of(&gone)), Some(gone), None);
        }
        Ok(())
    }

    async fn delete(&mut self, kind: Kind, path: String) -> Result<(), Stop> {
        let object = self.run.object(kind, &path).await?;
        self.set(kind, path, Some(object.clone()), None);
        if kind == Kind::LoadBalancer {
            return self.delete_below(&object).await;
        }
        self.relink(kind, &object, &Value::Null).await
    }

    /// Notes what is deleted with a load balancer: all its children, and its VIP port, from which floating IPs are then detached.
    async fn delete_below(&mut self, load_balancer: &Value) -> Result<(), Stop> {
        for kind in [Kind::Listener, Kind::Pool] {
            for child in self.run.list_by(kind, "loadbalancer_id", &id_of(load_balancer)).await? {
                self.set(kind, kind.path(&id_of(&child)), Some(child), None);
            }
        }
        if let Some(port) = load_balancer["vip_port_id"].as_str() {
            for floating_ip in self.run.list_by(Kind::FloatingIp, "port_id", port).await? {
                self.edit(Kind::FloatingIp, &id_of(&floating_ip), |one| one["port_id"] = Value::Null).await?;
            }
        }
        Ok(())
    }

    /// Updates the references to a changed object: `before` is null where it is new, `after` where it is deleted.
    pub(super) async fn relink(&self, kind: Kind, before: &Value, after: &Value) -> Result<(), Stop> {
        let either = if after.is_null() { before } else { after };
        match kind {
            Kind::Listener if before["default_pool_id"] != after["default_pool_id"] => {
                for (shown, uses) in [(before, false), (after, true)] {
                    let Some(pool) = shown["default_pool_id"].as_str() else { continue };
                    let listener = json!([{"id": shown["id"]}]);
                    let change = |pool: &mut Value| {
                        pool.as_object_mut()
                            .into_iter()
                            .for_each(|pool| change_list(pool, "listeners", Some(listener.clone()), uses));
                    };
                    self.edit(Kind::Pool, pool, change).await?;
                }
            }
            Kind::Pool if after.is_null() => {
                for listener in before["listeners"].as_array().into_iter().flatten() {
                    self.edit(Kind::Listener, &id_of(listener), |one| one["default_pool_id"] = Value::Null)
                        .await?;
                }
            }
            Kind::HealthMonitor => {
                for pool in either["pools"].as_array().into_iter().flatten() {
                    self.edit(Kind::Pool, &id_of(pool), |pool| {
                        pool["healthmonitor_id"] = after["id"].clone();
                    })
                    .await?;
                }
            }
            Kind::SecurityGroupRule => {
                let group = either["security_group_id"].as_str().unwrap_or_default();
                let change = |group: &mut Value| {
                    let Some(rules) = group["security_group_rules"].as_array_mut() else { return };
                    rules.retain(|rule| rule["id"] != either["id"]);
                    rules.extend((!after.is_null()).then(|| after.clone()));
                };
                self.edit(Kind::SecurityGroup, group, change).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the defaults of a new member, to which a batch also resets attributes that it leaves out of an existing member.
pub(super) fn member_defaults() -> Value {
    json!({"weight": 1, "backup": false, "admin_state_up": true, "monitor_port": null, "monitor_address": null})
}

/// Adds the named elements to a list, or removes them.
fn change_list(object: &mut Attributes, key: &str, named: Option<Value>, adds: bool) {
    let list = |value: Option<Value>| value.and_then(|value| value.as_array().cloned()).unwrap_or_default();
    let named = list(named);
    let mut all = list(object.remove(key));
    all.retain(|one| !named.contains(one));
    all.extend(named.into_iter().filter(|_| adds));
    object.insert(key.to_owned(), Value::Array(all));
}

pub(super) fn extend(object: &mut Value, with: Value) {
    if let (Some(object), Value::Object(with)) = (object.as_object_mut(), with) {
        object.extend(with);
    }
}

pub(super) fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_default().to_owned()
}

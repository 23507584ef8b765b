//! Creates one object, or a tree of objects.

use serde_json::{Value, json};

use super::Stop;
use super::kind::Kind;
use super::writes::{Attributes, Writing, extend, id_of, member_defaults};

impl Writing<'_> {
    /// Notes a new object, with the objects that its attributes create.
    pub(super) async fn create(
        &mut self,
        kind: Kind,
        list: &str,
        mut attributes: Attributes,
    ) -> Result<Value, Stop> {
        let nested =
            ["listeners", "default_pool", "members", "healthmonitor"].map(|key| attributes.remove(key));
        let id = self.run.new_id();
        let mut object = json!({"id": id, "name": "", "tags": [], "project_id": self.run.view.project_id()});
        let parent = |object: &mut Value, key: &str, list: &str| {
            let id = object.as_object_mut().and_then(|object| object.remove(key));
            object[list] = json!([{"id": id}]);
        };
        if kind.is_octavias() {
            extend(
                &mut object,
                json!({"admin_state_up": true, "provisioning_status": "ACTIVE", "operating_status": "ONLINE"}),
            );
        }
        if kind == Kind::Member {
            extend(&mut object, member_defaults());
        }
        extend(&mut object, Value::Object(attributes));
        match kind {
            Kind::LoadBalancer => self.give_vip(&mut object).await?,
            Kind::Listener | Kind::Pool => parent(&mut object, "loadbalancer_id", "loadbalancers"),
            Kind::HealthMonitor => parent(&mut object, "pool_id", "pools"),
            Kind::FloatingIp if object["floating_ip_address"].is_null() => {
                object["floating_ip_address"] = self.run.new_address(&Value::Null).await?;
            }
            // A new group has two rules that allow all egress.
            Kind::SecurityGroup => {
                let rules = ["IPv4", "IPv6"].map(|family| {
                    let id = self.run.new_id();
                    let rule = json!({"id": id, "security_group_id": object["id"], "direction": "egress", "ethertype": family});
                    self.run.view.write(Kind::SecurityGroupRule.path(&id), Some(rule.clone()));
                    rule
                });
                object["security_group_rules"] = json!(rules);
            }
            Kind::Member | Kind::FloatingIp | Kind::SecurityGroupRule | Kind::Port | Kind::Router => {}
        }
        self.set(kind, format!("{list}/{id}"), None, Some(object.clone()));
        self.relink(kind, &Value::Null, &object).await?;
        self.create_below(kind, &id, &object, nested).await?;
        if kind == Kind::LoadBalancer {
            Ok(object)
        } else {
            self.run.object(kind, &format!("{list}/{id}")).await
        }
    }

    /// Notes the children of a new load balancer, listener or pool.
    async fn create_below(
        &mut self,
        kind: Kind,
        id: &str,
        object: &Value,
        nested: [Option<Value>; 4],
    ) -> Result<(), Stop> {
        let [listeners, default_pool, members, monitor] = nested;
        let load_balancer =
            if kind == Kind::LoadBalancer { json!(id) } else { object["loadbalancers"][0]["id"].clone() };
        for listener in objects(listeners) {
            let with = with(listener, "loadbalancer_id", load_balancer.clone());
            Box::pin(self.create(Kind::Listener, &Kind::Listener.list(), with)).await?;
        }
        for pool in objects(default_pool) {
            let with = with(pool, "loadbalancer_id", load_balancer.clone());
            let pool = Box::pin(self.create(Kind::Pool, &Kind::Pool.list(), with)).await?;
            self.edit(Kind::Listener, id, |listener| listener["default_pool_id"] = pool["id"].clone())
                .await?;
            self.edit(Kind::Pool, &id_of(&pool), |pool| pool["listeners"] = json!([{"id": id}])).await?;
        }
        for member in objects(members) {
            Box::pin(self.create(Kind::Member, &format!("{}/members", Kind::Pool.path(id)), member)).await?;
        }
        for monitor in objects(monitor) {
            let with = with(monitor, "pool_id", json!(id));
            Box::pin(self.create(Kind::HealthMonitor, &Kind::HealthMonitor.list(), with)).await?;
        }
        Ok(())
    }

    /// Gives a load balancer its VIP port, and the addresses that the request does not name.
    async fn give_vip(&mut self, object: &mut Value) -> Result<(), Stop> {
        if object["vip_subnet_id"].is_null() && object["vip_port_id"].is_null() {
            // Octavia chooses a subnet of the network, an IPv4 subnet if there is one.
            let mut subnets = self.run.subnets("network_id", &object["vip_network_id"]).await?;
            subnets.sort_by_key(|subnet| subnet["ip_version"] != 4);
            object["vip_subnet_id"] = subnets.first().map(|subnet| subnet["id"].clone()).unwrap_or_default();
        }
        if object["vip_address"].is_null() {
            object["vip_address"] = self.run.new_address(&object["vip_subnet_id"]).await?;
        }
        for vip in object["additional_vips"].as_array_mut().into_iter().flatten() {
            if vip["ip_address"].is_null() {
                vip["ip_address"] = self.run.new_address(&vip["subnet_id"]).await?;
            }
        }
        if object["vip_port_id"].is_null() {
            object["vip_port_id"] = json!(self.run.new_id());
        }
        Ok(())
    }
}

fn with(mut attributes: Attributes, key: &str, value: Value) -> Attributes {
    attributes.insert(key.to_owned(), value);
    attributes
}

/// Returns the attributes of one object, or of several.
fn objects(nested: Option<Value>) -> impl Iterator<Item = Attributes> {
    let all = match nested {
        Some(Value::Array(all)) => all,
        other => other.into_iter().collect(),
    };
    all.into_iter().filter_map(|one| one.as_object().cloned())
}

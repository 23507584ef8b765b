//! What becomes of the members of a pool.

use serde_json::{Map, Value, json};

use crate::dry_run::kind::Kind;
use crate::dry_run::view::View;
use crate::dry_run::{ObjectChange, Stop, changed, created, deleted, id_of, merged, placeholder};

/// What a batch resets on a member that is there where it says nothing of it, and what a new member has.
fn defaults() -> Map<String, Value> {
    let defaults = json!({"weight": 1, "backup": false, "admin_state_up": true, "monitor_port": null,
        "monitor_address": null});
    defaults.as_object().cloned().unwrap_or_default()
}

/// Notes the members of a batch; those that it does not name go, unless it only adds.
pub(super) async fn batch(
    view: &View,
    pool: &str,
    wanted: Vec<Value>,
    additive: bool,
) -> Result<Vec<ObjectChange>, Stop> {
    let mut before = view.members(pool).await?;
    let (mut after, mut changes) = (Vec::new(), Vec::new());
    for wanted in wanted {
        let Value::Object(attributes) = wanted else { continue };
        let same = |member: &Value| {
            ["address", "protocol_port"].iter().all(|key| Some(&member[*key]) == attributes.get(*key))
        };
        match before.iter().position(same) {
            None => {
                let member = new(view, &attributes);
                changes.push(created(Kind::Member, &member));
                after.push(member);
            }
            Some(place) => {
                let known = before.swap_remove(place);
                let mut member = merged(&merged(&known, &defaults()), &attributes);
                member["provisioning_status"] = json!("ACTIVE");
                if member != known {
                    changes.push(changed(Kind::Member, &known, &member));
                }
                after.push(member);
            }
        }
    }
    if additive {
        after.append(&mut before);
    }
    changes.extend(before.iter().map(|member| deleted(Kind::Member, member)));
    view.put_members(pool, after);
    Ok(changes.into_iter().map(|change| of_pool(change, pool)).collect())
}

/// Notes one more member.
pub(super) async fn add(
    view: &View,
    pool: &str,
    attributes: &Map<String, Value>,
) -> Result<(Value, Vec<ObjectChange>), Stop> {
    let mut members = view.members(pool).await?;
    let member = new(view, attributes);
    members.push(member.clone());
    view.put_members(pool, members);
    let change = of_pool(created(Kind::Member, &member), pool);
    Ok((member, vec![change]))
}

/// Notes that a member is gone.
pub(super) async fn remove(view: &View, pool: &str, id: &str) -> Result<Vec<ObjectChange>, Stop> {
    let mut members = view.members(pool).await?;
    let gone =
        members.extract_if(.., |member| id_of(member) == id).map(|member| deleted(Kind::Member, &member));
    let changes = gone.map(|change| of_pool(change, pool)).collect();
    view.put_members(pool, members);
    Ok(changes)
}

fn new(view: &View, attributes: &Map<String, Value>) -> Value {
    let member = json!({"id": placeholder::id(view.next()), "name": "", "tags": [], "subnet_id": null,
        "provisioning_status": "ACTIVE", "operating_status": "NO_MONITOR", "project_id": view.project_id});
    merged(&merged(&member, &defaults()), attributes)
}

fn of_pool(change: ObjectChange, pool: &str) -> ObjectChange {
    ObjectChange { parent: Some(pool.to_owned()), ..change }
}

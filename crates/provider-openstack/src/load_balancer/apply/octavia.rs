//! The Octavia calls of steps, each of which locks the load balancer.

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::{Octavia, UpdateMember};

use super::requests;
use crate::load_balancer::failure::present;
use crate::load_balancer::objects::step::{
    Answer, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep,
};

pub(super) async fn load_balancer(octavia: &Octavia, step: &LoadBalancerStep) -> Result<Answer, ApiError> {
    match step {
        LoadBalancerStep::Create { load_balancer, listeners } => {
            let body = requests::load_balancer(load_balancer, listeners);
            let mut made = octavia.create_load_balancer(body).await?;
            made.tree = made.tree.filter(|tree| tree.listeners.len() == listeners.len());
            return Ok(Answer::LoadBalancer(Box::new(made)));
        }
        LoadBalancerStep::Update { id, changes } => {
            octavia.update_load_balancer(id, changes).await.map(drop)?;
        }
        LoadBalancerStep::Failover { id } => octavia.failover_load_balancer(id).await?,
        LoadBalancerStep::Delete { id, cascade } => {
            present(octavia.delete_load_balancer(id, *cascade).await)?;
        }
    }
    Ok(Answer::Nothing)
}

pub(super) async fn listener(octavia: &Octavia, step: &ListenerStep) -> Result<Answer, ApiError> {
    match step {
        ListenerStep::Create { load_balancer_id, listener, default_pool } => {
            let mut body = requests::listener(listener);
            body.loadbalancer_id = Some(load_balancer_id.clone());
            body.default_pool_id = default_pool.as_ref().and_then(Handle::id).map(str::to_owned);
            return Ok(Answer::Child(octavia.create_listener(&body).await?.id));
        }
        ListenerStep::Update { id, changes, key: _ } => {
            octavia.update_listener(id, changes).await.map(drop)?;
        }
        ListenerStep::SwapDefaultPool { listener_id, pool, key: _ } => {
            let changes = requests::default_pool(pool.id().unwrap_or_default());
            octavia.update_listener(listener_id, &changes).await.map(drop)?;
        }
        ListenerStep::Delete { id, key: _ } => {
            present(octavia.delete_listener(id).await)?;
        }
    }
    Ok(Answer::Nothing)
}

pub(super) async fn pool(octavia: &Octavia, step: &PoolStep) -> Result<Answer, ApiError> {
    match step {
        PoolStep::Create { load_balancer_id, pool } => {
            let mut body = requests::pool(pool);
            body.loadbalancer_id = Some(load_balancer_id.clone());
            return Ok(Answer::Child(octavia.create_pool(&body).await?.id));
        }
        PoolStep::Update { id, changes } => octavia.update_pool(id, changes).await.map(drop)?,
        PoolStep::Delete { id, name: _ } => {
            present(octavia.delete_pool(id).await)?;
        }
    }
    Ok(Answer::Nothing)
}

pub(super) async fn member(octavia: &Octavia, step: &MemberStep) -> Result<Answer, ApiError> {
    match step {
        MemberStep::ReplaceAll { pool, members } => {
            let specs = members.iter().map(|member| requests::member(member)).collect();
            octavia.batch_members(pool.id().unwrap_or_default(), specs).await?;
        }
        MemberStep::Add { pool, members } => {
            let specs = members.iter().map(|member| requests::member(member)).collect();
            octavia.add_members(pool.id().unwrap_or_default(), specs).await?;
        }
        MemberStep::Create { pool, member } => {
            let pool_id = pool.id().unwrap_or_default();
            octavia.create_member(pool_id, &requests::member(member)).await.map(drop)?;
        }
        MemberStep::Update { pool_id, id, member } => {
            octavia.update_member(pool_id, id, &UpdateMember { monitor_port: member.monitor_port }).await?;
        }
        MemberStep::Delete { pool_id, id, name: _ } => {
            present(octavia.delete_member(pool_id, id).await)?;
        }
    }
    Ok(Answer::Nothing)
}

pub(super) async fn monitor(octavia: &Octavia, step: &MonitorStep) -> Result<Answer, ApiError> {
    match step {
        MonitorStep::Create { pool, monitor } => {
            let mut body = requests::monitor(monitor);
            body.pool_id = pool.id().map(str::to_owned);
            return Ok(Answer::Child(octavia.create_health_monitor(&body).await?.id));
        }
        MonitorStep::Update { id, changes, pool_id: _ } => {
            octavia.update_health_monitor(id, changes).await.map(drop)?;
        }
        MonitorStep::Delete { id, pool_id: _ } => {
            present(octavia.delete_health_monitor(id).await)?;
        }
    }
    Ok(Answer::Nothing)
}

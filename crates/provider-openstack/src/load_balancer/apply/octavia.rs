//! The calls of the steps that Octavia carries out, and that lock the load balancer.

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::Octavia;

use super::answer::Answer;
use super::requests;
use crate::load_balancer::failure::present;
use crate::load_balancer::step::{Child, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep};

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
    let listener = match step {
        ListenerStep::Create { load_balancer_id, listener, default_pool } => {
            let mut body = requests::listener(listener);
            body.loadbalancer_id = Some(load_balancer_id.clone());
            body.default_pool_id = default_pool.id().map(str::to_owned);
            octavia.create_listener(&body).await?
        }
        ListenerStep::Update { id, changes, key: _ } => octavia.update_listener(id, changes).await?,
        ListenerStep::SwapDefaultPool { listener_id, pool, key: _ } => {
            let changes = requests::default_pool(pool.id().unwrap_or_default());
            octavia.update_listener(listener_id, &changes).await?
        }
        ListenerStep::Delete { id, key: _ } => {
            present(octavia.delete_listener(id).await)?;
            return Ok(Answer::Gone(Child::Listener(id.clone())));
        }
    };
    Ok(Answer::Listener(Box::new(listener)))
}

pub(super) async fn pool(octavia: &Octavia, step: &PoolStep) -> Result<Answer, ApiError> {
    let pool = match step {
        PoolStep::Create { load_balancer_id, pool } => {
            let mut body = requests::pool(pool);
            body.loadbalancer_id = Some(load_balancer_id.clone());
            octavia.create_pool(&body).await?
        }
        PoolStep::Update { id, changes } => octavia.update_pool(id, changes).await?,
        PoolStep::Delete { id, name: _ } => {
            present(octavia.delete_pool(id).await)?;
            return Ok(Answer::Gone(Child::Pool(id.clone())));
        }
    };
    Ok(Answer::Pool(Box::new(pool)))
}

pub(super) async fn member(octavia: &Octavia, step: &MemberStep) -> Result<Answer, ApiError> {
    match step {
        MemberStep::ReplaceAll { pool, members } => {
            let pool_id = pool.id().unwrap_or_default();
            let specs = members.iter().map(|member| requests::member(member)).collect();
            octavia.batch_members(pool_id, specs).await?;
            let (pool_id, members) = (pool_id.to_owned(), members.clone());
            return Ok(Answer::Members { pool_id, members });
        }
        MemberStep::Create { pool, member } => {
            let pool_id = pool.id().unwrap_or_default();
            octavia.create_member(pool_id, &requests::member(member)).await.map(drop)?;
        }
        MemberStep::Delete { pool_id, id, name: _ } => {
            present(octavia.delete_member(pool_id, id).await)?;
        }
    }
    Ok(Answer::Nothing)
}

pub(super) async fn monitor(octavia: &Octavia, step: &MonitorStep) -> Result<Answer, ApiError> {
    let (monitor, pool_id) = match step {
        MonitorStep::Create { pool, monitor } => {
            let mut body = requests::monitor(monitor);
            body.pool_id = pool.id().map(str::to_owned);
            (octavia.create_health_monitor(&body).await?, pool.id().unwrap_or_default())
        }
        MonitorStep::Update { id, pool_id, changes } => {
            (octavia.update_health_monitor(id, changes).await?, pool_id.as_str())
        }
        MonitorStep::Delete { id, pool_id } => {
            present(octavia.delete_health_monitor(id).await)?;
            let monitor = Child::Monitor { id: id.clone(), pool_id: pool_id.clone() };
            return Ok(Answer::Gone(monitor));
        }
    };
    Ok(Answer::Monitor { monitor: Box::new(monitor), pool_id: pool_id.to_owned() })
}

//! Checks which optional parts of its API the cloud has: tries the reads of each part, and only lists its writes.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::ApiError;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::{
    FloatingIpFilter, NetworkFilter, PortFilter, SecurityGroupFilter, SubnetFilter,
};
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancerFilter};
use openstack_ccm_openstack_api::optional::{Access, Feature, OptionalPart};
use openstack_ccm_openstack_api::transport::Service;
use uuid::Uuid;

use super::Section;

/// Reports for each part whether the cloud has it, what is done without it, and which calls were not tried.
pub(super) async fn check(openstack: &OpenStack, findings: &mut Section) -> anyhow::Result<()> {
    let extensions = extensions(openstack).await;
    for part in OptionalPart::ALL.into_iter().filter(|part| is_there(openstack, *part)) {
        let feature = part.feature();
        let mut shown = String::new();
        let failure = match part {
            OptionalPart::Quotas => read_quota(openstack, &mut shown).await,
            part => try_reading(openstack, part).await,
        };
        let lacking = openstack.client.lacking().into_iter().find(|lacking| lacking.part == part);
        match (lacking, failure) {
            (Some(lacking), _) => findings.warning("", format_args!("{lacking}: {}", lacking.answer))?,
            (None, Some(failure)) => findings.warning("", format_args!("{}: {failure}", feature.name))?,
            (None, None) if feature.calls.iter().any(Access::reads) => {
                findings.ok(format_args!("the cloud has: {}{shown}", feature.name))?;
            }
            (None, None) => {
                if let Some(alias) = unlisted(feature, extensions.as_ref()) {
                    let text = format!(
                        "{}: Neutron does not list {alias}; without it, {}",
                        feature.name, feature.without
                    );
                    findings.warning("", text)?;
                }
            }
        }
        for call in feature.calls.iter().filter(|call| !call.reads()) {
            findings.not_tried(not_tried(*call, feature, &extensions))?;
        }
    }
    Ok(())
}

fn is_there(openstack: &OpenStack, part: OptionalPart) -> bool {
    part.feature().calls.iter().all(|call| match call.service {
        Service::KeyManager => openstack.barbican.is_some(),
        service => openstack.has(service),
    })
}

/// Returns the aliases of Neutron's extensions; absent where Neutron does not list them.
async fn extensions(openstack: &OpenStack) -> Option<BTreeSet<String>> {
    let listed = openstack.neutron.list_extensions().await.ok()?;
    Some(listed.into_iter().map(|extension| extension.alias).collect())
}

/// Returns the extension that promises a part, if Neutron lists its extensions and not this one.
fn unlisted<'a>(feature: &'a Feature, extensions: Option<&BTreeSet<String>>) -> Option<&'a str> {
    let alias = feature.promised_by.strip_suffix(" (Neutron)")?;
    extensions.is_some_and(|extensions| !extensions.contains(alias)).then_some(alias)
}

fn not_tried(call: Access, feature: &Feature, extensions: &Option<BTreeSet<String>>) -> String {
    let Access { service, method, path } = call;
    let Feature { name, promised_by, without, .. } = feature;
    let alias = promised_by.strip_suffix(" (Neutron)");
    let promise = match (alias, extensions) {
        (Some(alias), Some(extensions)) if extensions.contains(alias) => format!("Neutron lists {alias}"),
        (Some(alias), Some(_)) => format!("Neutron does not list {alias}"),
        _ => format!("promised by {promised_by}"),
    };
    format!("{method} {path} ({service}), for {name}: {promise}; without it, {without}")
}

/// Makes the read calls of a part, with the id of no object where a call needs an id. The client notes what the cloud lacks; the
/// function returns any other error.
async fn try_reading(openstack: &OpenStack, part: OptionalPart) -> Option<String> {
    let OpenStack { octavia, neutron, barbican, .. } = openstack;
    let nobody = Uuid::nil().to_string();
    let error = match part {
        OptionalPart::Versions => {
            return octavia.api_versions().await.err().map(|error| error.to_string());
        }
        OptionalPart::LoadBalancerTags => return no_tags(openstack, &nobody).await,
        OptionalPart::Filters => filter_by_nothing(openstack, &nobody).await.err(),
        OptionalPart::StatusTree => octavia.load_balancer_statuses(&nobody).await.err(),
        OptionalPart::NetworkById => neutron.get_network(&nobody).await.err(),
        OptionalPart::SecurityGroups => {
            let filter = SecurityGroupFilter { name: Some(nobody), ..SecurityGroupFilter::default() };
            neutron.list_security_groups(&filter).await.err()
        }
        OptionalPart::Providers => octavia.list_providers().await.err(),
        OptionalPart::Certificates => barbican.as_ref()?.get_container(&nobody).await.err(),
        OptionalPart::FloatingIpTags
        | OptionalPart::FloatingIpDescription
        | OptionalPart::SecurityGroupTags
        | OptionalPart::Quotas
        | OptionalPart::AdditiveBatches => None,
    };
    error.filter(|error| !error.is_not_found()).map(|error| error.to_string())
}

/// Returns how Octavia shows that load balancers have no tags: it does not know them as a filter either.
async fn no_tags(openstack: &OpenStack, nobody: &str) -> Option<String> {
    let by_tags = LoadBalancerFilter { tags: vec![nobody.to_owned()], ..LoadBalancerFilter::default() };
    let listed = openstack.octavia.list_load_balancers(&by_tags).await;
    let lacking =
        openstack.client.lacking().into_iter().find(|lacking| lacking.part == OptionalPart::Filters);
    let sign = "GET /v2.0/lbaas/loadbalancers refuses to filter by tags";
    let is_shown = listed.is_ok() && lacking.is_some_and(|lacking| lacking.evidence.contains(sign));
    is_shown.then(|| format!("{sign}; without tags, {}", OptionalPart::LoadBalancerTags.feature().without))
}

/// Lists by filters that no object matches: an answer that has one shows that the cloud does not filter.
async fn filter_by_nothing(openstack: &OpenStack, nobody: &str) -> Result<(), ApiError> {
    let OpenStack { octavia, neutron, .. } = openstack;
    let (nobody, tags) = (Some(nobody.to_owned()), vec![nobody.to_owned()]);
    let by_tags = LoadBalancerFilter { tags: tags.clone(), ..LoadBalancerFilter::default() };
    octavia.list_load_balancers(&by_tags).await?;
    let by_name = LoadBalancerFilter { name: nobody.clone(), ..LoadBalancerFilter::default() };
    octavia.list_load_balancers(&by_name).await?;
    let children = ChildFilter { load_balancer_id: nobody.clone(), ..ChildFilter::default() };
    octavia.list_listeners(&children).await?;
    octavia.list_pools(&children).await?;
    let by_tags = FloatingIpFilter { tags, ..FloatingIpFilter::default() };
    neutron.list_floating_ips(&by_tags).await?;
    let by_port = FloatingIpFilter { port_id: nobody.clone(), ..FloatingIpFilter::default() };
    neutron.list_floating_ips(&by_port).await?;
    neutron.list_networks(&NetworkFilter { id: nobody.clone(), ..NetworkFilter::default() }).await?;
    neutron.list_subnets(&SubnetFilter { network_id: nobody.clone(), ..SubnetFilter::default() }).await?;
    neutron.list_ports(&PortFilter { network_id: nobody, ..PortFilter::default() }).await.map(drop)
}

/// Appends how many load balancers the project may have.
async fn read_quota(openstack: &OpenStack, shown: &mut String) -> Option<String> {
    let project_id = openstack.project_id.as_ref()?;
    match openstack.octavia.quota(project_id).await {
        Ok(quota) => {
            let limit = quota.load_balancer.filter(|limit| *limit >= 0);
            let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
            *shown = format!(" (load balancers in this project: {limit})");
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

//! Each part, in each way in which a cloud can lack it, from the beginning or later: Services live.

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Lack, OddCloud, Rewrite};
use rstest::rstest;
use serde_json::json;

use super::life::{Possible, go_on, lives, needy};
use crate::support::World;

const OCTAVIA: &str = "load-balancer";
const NEUTRON: &str = "network";
const BARBICAN: &str = "key-manager";

/// How a cloud lacks something.
enum How {
    /// Requests with this method, path and text in their body are refused: by Neutron or Octavia, with status and text.
    Refuses(&'static str, Method, &'static str, &'static str, u16, &'static str),
    Rewrites(Rewrite),
    Lacks(Lack),
}
use How::{Lacks, Refuses, Rewrites};

const fn ignores(service: &'static str, path: &'static str, names: &'static [&'static str]) -> How {
    Rewrites(Rewrite::IgnoresFilters { service, path, names })
}

const fn hides(service: &'static str, place: &'static str) -> How {
    Rewrites(Rewrite::Hides { service, place })
}

impl How {
    fn apply(&self, world: &World) {
        match self {
            Refuses(service, method, path, body, status, text) => {
                let of_neutron =
                    |kind| json!({"NeutronError": {"type": kind, "message": text, "detail": ""}});
                let answer = match (*service, status) {
                    (NEUTRON, 404) => of_neutron("HTTPNotFound"),
                    (NEUTRON, 403) => of_neutron("PolicyNotAuthorized"),
                    (NEUTRON, _) => of_neutron("HTTPBadRequest"),
                    (BARBICAN, _) => json!({"code": status, "title": "Refused", "description": text}),
                    _ => json!({"faultcode": "Client", "faultstring": text, "debuginfo": null}),
                };
                let refused = Fault::new().service(service).method(method.clone()).path(path).with_body(body);
                world.cloud.faults().add(refused.answer(*status, answer));
            }
            Rewrites(rule) => world.cloud.rewrite(rule.clone()),
            Lacks(lack) => world.cloud.lack(*lack),
        }
    }

    /// Whether the cloud has no such attribute, or does not show it.
    fn hides(&self, wanted: &str) -> bool {
        matches!(self, Rewrites(Rewrite::Hides { place, .. }) if *place == wanted)
    }

    /// Whether load balancers get no tags.
    fn takes_tags_away(&self) -> bool {
        self.hides("loadbalancer.tags")
            || matches!(self, Refuses(OCTAVIA, Method::POST, "/loadbalancers$", ..))
            || matches!(self, Refuses(OCTAVIA, Method::GET, "^/$", ..))
    }

    fn takes_certificates_away(&self) -> bool {
        matches!(self, Lacks(Lack::Certificates) | Refuses(BARBICAN, ..))
    }
}

fn possible(ways: &[How]) -> Possible {
    let is_hidden = |place| ways.iter().any(|how| how.hides(place));
    let refuses_tags = |how: &How| matches!(how, Refuses(OCTAVIA, Method::POST, "/listeners$", ..));
    Possible {
        shares: !ways.iter().any(How::takes_tags_away),
        shows_tags: !is_hidden("loadbalancer.tags"),
        makes_children: !ways.iter().any(refuses_tags),
        terminates: !ways.iter().any(How::takes_certificates_away),
        marks: !(is_hidden("floatingips[].tags") && is_hidden("floatingips[].description")),
    }
}

const FORBIDDEN: &str = "Policy does not allow this request to be performed.";
const NO_TAG: &str = "['tags'] is invalid attribute for filtering";
const NO_DESCRIPTION: &str = "['description'] is invalid attribute for filtering";
const NO_FILTER: &str = "One or more arguments are either duplicate or invalid";
const TAGS_PATH: &str = "/floatingips/[^/]+/tags$";

#[rstest]
#[case::tags_of_floating_ips_written(vec![Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN)])]
#[case::tags_of_floating_ips_filtered(vec![Refuses(NEUTRON, Method::GET, r"/floatingips\?.*tags=", "", 400, NO_TAG)])]
#[case::tags_of_floating_ips_ignored(vec![ignores(NEUTRON, "/floatingips", &["tags"])])]
#[case::tags_of_floating_ips_absent(vec![hides(NEUTRON, "floatingip.tags"), hides(NEUTRON, "floatingips[].tags")])]
#[case::tags_of_floating_ips_written_and_filtered(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 404, "The resource could not be found."),
    Refuses(NEUTRON, Method::GET, r"/floatingips\?.*tags=", "", 400, NO_TAG),
])]
#[case::descriptions_written(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    Refuses(NEUTRON, Method::PUT, "/floatingips/[^/]+$", "\"description\":", 400, "Unrecognized attribute(s) 'description'"),
])]
#[case::descriptions_created(vec![
    Refuses(NEUTRON, Method::POST, "/floatingips$", "\"description\":", 400, "Unrecognized attribute(s) 'description'"),
])]
#[case::descriptions_filtered(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    Refuses(NEUTRON, Method::GET, r"/floatingips\?.*description=", "", 400, NO_DESCRIPTION),
])]
#[case::descriptions_ignored(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    ignores(NEUTRON, "/floatingips", &["description"]),
])]
#[case::descriptions_absent(vec![hides(NEUTRON, "floatingip.description"), hides(NEUTRON, "floatingips[].description")])]
#[case::descriptions_and_tags_absent(vec![hides(NEUTRON, "floatingip.description"), hides(NEUTRON, "floatingips[].description"),
    hides(NEUTRON, "floatingip.tags"), hides(NEUTRON, "floatingips[].tags")])]
#[case::tags_of_load_balancers_written(vec![
    Refuses(OCTAVIA, Method::POST, "/loadbalancers$", "\"tags\":", 400, "Unknown attribute for argument load_balancer.loadbalancer: tags"),
    Refuses(OCTAVIA, Method::POST, "/listeners$", "\"tags\":", 400, "Unknown attribute for argument listener_.listener: tags"),
    Refuses(OCTAVIA, Method::POST, "/pools$", "\"tags\":", 400, "Unknown attribute for argument pool_.pool: tags"),
])]
#[case::tags_of_load_balancers_filtered(vec![Refuses(OCTAVIA, Method::GET, r"\?.*tags=", "", 400, NO_FILTER)])]
#[case::tags_of_load_balancers_ignored(vec![ignores(OCTAVIA, "/loadbalancers", &["tags"])])]
#[case::tags_of_load_balancers_absent(vec![hides(OCTAVIA, "loadbalancer.tags"), hides(OCTAVIA, "loadbalancers[].tags"),
    hides(OCTAVIA, "listener.tags"), hides(OCTAVIA, "listeners[].tags"), hides(OCTAVIA, "pool.tags"), hides(OCTAVIA, "pools[].tags")])]
#[case::descriptions_of_load_balancers_absent(vec![hides(OCTAVIA, "loadbalancer.description"), hides(OCTAVIA, "loadbalancers[].description")])]
#[case::versions_read(vec![Refuses(OCTAVIA, Method::GET, "^/$", "", 403, FORBIDDEN)])]
#[case::status_tree_read(vec![Refuses(OCTAVIA, Method::GET, "/status$", "", 403, FORBIDDEN)])]
#[case::additive_batches_written(vec![Refuses(OCTAVIA, Method::PUT, "additive_only", "", 400, "Unknown argument: \"additive_only\"")])]
#[case::networks_by_id_read(vec![Refuses(NEUTRON, Method::GET, "^/v2.0/networks/[^/]+$", "", 404, "The resource could not be found.")])]
#[case::networks_filtered(vec![Refuses(NEUTRON, Method::GET, r"/networks\?", "", 400, "['router:external', 'id'] is invalid attribute for filtering")])]
#[case::networks_ignored(vec![ignores(NEUTRON, "/networks", &[]), ignores(NEUTRON, "/subnets", &[])])]
#[case::networks_absent(vec![hides(NEUTRON, "networks[].router:external"), hides(NEUTRON, "network.router:external")])]
#[case::security_groups_written(vec![Refuses(NEUTRON, Method::POST, "/security-groups$", "", 403, FORBIDDEN)])]
#[case::security_groups_tagged(vec![Refuses(NEUTRON, Method::PUT, "/security-groups/[^/]+/tags$", "", 404, "The resource could not be found.")])]
#[case::security_groups_read(vec![Refuses(NEUTRON, Method::GET, "/security-groups", "", 404, "The resource could not be found.")])]
#[case::security_groups_filtered(vec![Refuses(NEUTRON, Method::GET, r"/security-groups\?", "", 400, "['name', 'project_id'] is invalid attribute for filtering")])]
#[case::security_groups_ignored(vec![ignores(NEUTRON, "/security-groups", &[]), ignores(NEUTRON, "/ports", &[])])]
#[case::security_groups_absent(vec![
    Refuses(NEUTRON, Method::GET, "/security-groups", "", 404, "The resource could not be found."),
    hides(NEUTRON, "ports[].security_groups"), hides(NEUTRON, "port.security_groups")])]
#[case::marks_of_security_groups_absent(vec![
    hides(NEUTRON, "security_groups[].tags"), hides(NEUTRON, "security_group.tags"),
    hides(NEUTRON, "security_groups[].description"), hides(NEUTRON, "security_group.description")])]
#[case::providers_read(vec![Refuses(OCTAVIA, Method::GET, "/providers$", "", 403, FORBIDDEN)])]
#[case::quotas_read(vec![Refuses(OCTAVIA, Method::GET, "/quotas/", "", 403, FORBIDDEN)])]
#[case::certificates_read(vec![Lacks(Lack::Certificates)])]
#[case::certificates_forbidden(vec![Refuses(BARBICAN, Method::GET, "^/v1/", "", 403, FORBIDDEN)])]
#[case::certificates_not_found(vec![Refuses(BARBICAN, Method::GET, "^/v1/", "", 404, "Not Found")])]
#[case::load_balancers_filtered(vec![Refuses(OCTAVIA, Method::GET, r"/loadbalancers\?.*(name|tags|vip_port_id)=", "", 400, NO_FILTER)])]
#[case::load_balancers_ignored(vec![ignores(OCTAVIA, "/loadbalancers", &[])])]
#[case::children_filtered(vec![Refuses(OCTAVIA, Method::GET, r"/(listeners|pools)\?.*loadbalancer_id=", "", 400, NO_FILTER)])]
#[case::children_ignored(vec![ignores(OCTAVIA, "/listeners", &[]), ignores(OCTAVIA, "/pools", &[])])]
#[case::ports_filtered(vec![Refuses(NEUTRON, Method::GET, r"/ports\?.*device_id=", "", 400, "['device_id'] is invalid attribute for filtering")])]
#[case::ports_of_floating_ips_ignored(vec![ignores(NEUTRON, "/floatingips", &[])])]
#[tokio::test(start_paused = true)]
async fn services_live_where_a_part_is_missing(#[case] ways: Vec<How>, #[values(false, true)] later: bool) {
    let world = needy();
    let possible = possible(&ways);
    let lose = |world: &World| ways.iter().for_each(|how| how.apply(world));
    if later {
        go_on(world, lose, possible).await;
    } else {
        lose(&world);
        lives(world, possible).await;
    }
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(2)]
#[case(3)]
#[case(4)]
#[case(5)]
#[case(6)]
#[case(7)]
#[case(8)]
#[case(9)]
#[tokio::test(start_paused = true)]
async fn services_live_in_an_odd_cloud(#[case] number: usize, #[values(false, true)] later: bool) {
    let world = needy();
    let odd = OddCloud::ALL[number];
    let possible = Possible {
        shares: !matches!(odd, OddCloud::OctaviaWithoutTags | OddCloud::GatewayWithFewPaths),
        shows_tags: odd != OddCloud::OctaviaWithoutTags,
        makes_children: true,
        terminates: odd != OddCloud::AccessRules,
        marks: odd != OddCloud::NeutronWithoutDescriptions,
    };
    if later {
        go_on(world, |world| world.cloud.become_odd(odd), possible).await;
    } else {
        world.cloud.become_odd(odd);
        lives(world, possible).await;
    }
}

//! Converts errors of OpenStack calls to failures of a reconciliation: the class determines what happens next, and the message says
//! what the user can do.

use std::borrow::Borrow;
use std::error::Error;
use std::fmt::Display;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};

/// The likely cause if the cloud says that an object does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The user named an object that does not exist.
    Input,
    /// The object existed when it was read, and another client deleted it. The next reconciliation reads again.
    Race,
}

/// The result of a call, which can be converted to a failure of the reconciliation.
pub(crate) trait Answered<T> {
    /// Converts the error of `doing` something with what was read: see [`Missing::Race`].
    fn while_doing(self, doing: impl Display) -> Result<T, Failure>;

    /// Converts the error of `doing` something with what the user named: see [`Missing::Input`].
    fn when_asked(self, doing: impl Display) -> Result<T, Failure>;
}

impl<T, E: Borrow<ApiError>> Answered<T> for Result<T, E> {
    fn while_doing(self, doing: impl Display) -> Result<T, Failure> {
        self.map_err(|error| of_call(error.borrow(), doing, Missing::Race))
    }

    fn when_asked(self, doing: impl Display) -> Result<T, Failure> {
        self.map_err(|error| of_call(error.borrow(), doing, Missing::Input))
    }
}

/// Returns `None` instead of an error if the object does not exist.
pub(crate) fn present<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns the failure of a reconciliation whose call failed while `doing` something, for example `creating the floating IP`.
pub(crate) fn of_call(error: &ApiError, doing: impl Display, missing: Missing) -> Failure {
    let kind = error.kind();
    let mut message = format!("{doing}: {}", chain(error));
    if let Some(advice) = advice(kind, error) {
        message.push_str("; ");
        message.push_str(&advice);
    }
    let mut failure = Failure::new(class(kind, error, missing), message);
    failure.retry_after = error.retry_after();
    failure.is_overload = matches!(kind, ErrorKind::RateLimited | ErrorKind::Unavailable);
    failure
}

/// Returns the failure of looking up an object in the setting `key`.
pub(super) fn of_named(error: &ApiError, kind: &str, id: &str, key: &str) -> Failure {
    if error.is_not_found() {
        return not_there(kind, id, key);
    }
    of_call(error, format_args!("looking up {kind} {id} of {key}"), Missing::Input)
}

/// Returns the failure for an object in the setting `key` that the cloud does not show.
pub(super) fn not_there(kind: &str, id: &str, key: &str) -> Failure {
    Failure::user_input(format!(
        "{kind} {id} does not exist, or the user of cloud.conf cannot see it: correct {key} (an annotation of the \
         Service, a class, or cloud.conf)"
    ))
}

fn class(kind: ErrorKind, error: &ApiError, missing: Missing) -> FailureClass {
    match kind {
        ErrorKind::NotFound if is_without_gateway(error) => FailureClass::UserInput,
        ErrorKind::NotFound => match missing {
            Missing::Input => FailureClass::UserInput,
            Missing::Race => FailureClass::Busy,
        },
        ErrorKind::Conflict(ConflictCause::Immutable | ConflictCause::Stale) => FailureClass::Busy,
        // Another object is in the way (address in use, port taken): a quick retry does not help, and each refused creation of a
        // load balancer may cost an address of the subnet.
        ErrorKind::Conflict(ConflictCause::Other) | ErrorKind::BadRequest | ErrorKind::NoEndpoint => {
            FailureClass::UserInput
        }
        ErrorKind::Quota => FailureClass::Quota,
        ErrorKind::Policy | ErrorKind::Unauthorized => FailureClass::Auth,
        ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::LostAnswer | ErrorKind::ServerFault => {
            FailureClass::Unavailable
        }
        ErrorKind::Decode => FailureClass::Bug,
    }
}

/// Returns what the user can do about the error.
fn advice(kind: ErrorKind, error: &ApiError) -> Option<String> {
    match kind {
        ErrorKind::Quota if is_out_of_addresses(error) => Some(
            "the subnet has no free address: enlarge the subnet, release some addresses, or choose another network or subnet"
                .to_owned(),
        ),
        ErrorKind::Quota => Some(quota_advice(error)),
        ErrorKind::Policy => Some(policy_advice(error)),
        ErrorKind::Unauthorized if error.is_of_this_call_alone() => error.access_advice(),
        ErrorKind::Unauthorized => {
            Some("check that the credentials in cloud.conf are correct and have not expired".to_owned())
        }
        ErrorKind::NotFound => missing_advice(error).map(str::to_owned),
        _ => None,
    }
}

/// Returns whether the addresses of a network or subnet are exhausted, and not the project's quota.
pub(super) fn is_out_of_addresses(error: &ApiError) -> bool {
    let quota = |text: &str| text.to_ascii_lowercase().contains("quota");
    error.kind() == ErrorKind::Quota && error.fault().is_some_and(|fault| !quota(&fault.message))
}

fn quota_advice(error: &ApiError) -> String {
    let resource = error.fault().and_then(|fault| quota_resource(&fault.message));
    let resource = resource.map_or_else(|| "this kind of object".to_owned(), |name| format!("{name:?}"));
    format!(
        "the project's quota of {resource} is used up: have an administrator raise the quota, or delete objects that are no longer needed"
    )
}

/// Returns the resource in Octavia's `Quota has been met for resources: Load Balancer` or Neutron's
/// `Quota exceeded for resources: ['floatingip'].`
fn quota_resource(message: &str) -> Option<&str> {
    let (_, resources) = message.lines().next()?.split_once("for resources:")?;
    let name = resources.trim_matches(|letter: char| letter.is_whitespace() || "[]'\".".contains(letter));
    (!name.is_empty()).then_some(name)
}

fn policy_advice(error: &ApiError) -> String {
    let call = error.call();
    let message = error.fault().map(|fault| fault.message.as_str()).unwrap_or_default();
    let rule = policy_rule(message);
    if call == "floating_ip_delete" {
        let rule = rule.unwrap_or("delete_floatingip");
        return format!(
            "the cloud's policy {rule} does not allow the user of cloud.conf to delete floating IPs: have a user with this right \
             delete the floating IP, or keep the floating IP in the project with the annotation \
             loadbalancer.openstack.org/keep-floatingip: \"true\""
        );
    }
    // The rule for a chosen address: create_floatingip:floating_ip_address.
    if call.starts_with("floating_ip_create") && message.contains(":floating_ip_address") {
        return "most clouds let only administrators choose the address of a floating IP: have an administrator create the floating IP in \
                the project, or remove spec.loadBalancerIP or loadbalancer.openstack.org/floating-ip from the Service"
            .to_owned();
    }
    rule.map_or_else(
        || role_advice(call).to_owned(),
        |rule| {
            format!(
                "the cloud's policy {rule} does not allow the user of cloud.conf to make this call: have an administrator change the \
                 rule, or give the user a role that the rule allows"
            )
        },
    )
}

/// Returns the rule in Neutron's `(rule:delete_floatingip and ...) is disallowed by policy` or Nova's
/// `Policy doesn't allow RULE to be performed.`
fn policy_rule(message: &str) -> Option<&str> {
    let begin = message.split_once("rule:").or_else(|| message.split_once("doesn't allow "))?.1;
    let end = begin.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:-".contains(letter)));
    let rule = &begin[..end.unwrap_or(begin.len())];
    (!rule.is_empty()).then_some(rule)
}

fn role_advice(call: &str) -> &'static str {
    if call.starts_with("loadbalancer") {
        "the user of cloud.conf needs the role load-balancer_member (or member, where the cloud uses the default policy) in the project \
         of the load balancer: first check that cloud.conf names that project"
    } else if call.starts_with("container") || call.starts_with("secret") {
        "the user of cloud.conf needs the role creator in the project, or an ACL on the TLS container"
    } else {
        "the user of cloud.conf needs the role member in the project"
    }
}

fn missing_advice(error: &ApiError) -> Option<&'static str> {
    is_without_gateway(error).then_some(
        "connect the subnet of the load balancer to a router whose gateway is on the floating network; if that subnet is itself on an \
         external network, annotate the Service with service.beta.kubernetes.io/openstack-internal-load-balancer: \"true\"",
    )
}

/// Returns whether no router leads from the port to the floating network. Neutron answers as if an object did not exist.
fn is_without_gateway(error: &ApiError) -> bool {
    error.fault().and_then(|fault| fault.name.as_deref()) == Some("ExternalGatewayForFloatingIPNotFound")
}

/// Returns the error and its causes in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (**error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
    use openstack_ccm_openstack_api::neutron::{CreateFloatingIp, Neutron};
    use openstack_ccm_openstack_api::octavia::{LoadBalancerFilter, Octavia};
    use openstack_ccm_openstack_api::transport::{FnTransport, Response};
    use rstest::rstest;

    use super::*;

    fn client(status: u16, body: &'static str) -> Client {
        let transport = FnTransport::new(move |_| async move {
            let mut answer = http::Response::new(bytes::Bytes::from_static(body.as_bytes()));
            *answer.status_mut() = http::StatusCode::from_u16(status).expect("a status");
            answer.headers_mut().insert("retry-after", http::HeaderValue::from_static("7"));
            Ok(Response::from(answer))
        });
        let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
        Client::new(std::sync::Arc::new(transport), settings)
    }

    async fn octavia_says(status: u16, body: &'static str) -> Failure {
        let octavia = Octavia::new(client(status, body));
        let error = octavia.list_load_balancers(&LoadBalancerFilter::default()).await.expect_err("a failure");
        of_call(&error, "creating the load balancer", Missing::Input)
    }

    async fn neutron_says(status: u16, body: &'static str) -> Failure {
        let neutron = Neutron::new(client(status, body));
        let error = neutron.create_floating_ip(&CreateFloatingIp::default()).await.expect_err("a failure");
        of_call(&error, "creating the floating IP", Missing::Input)
    }

    #[rstest]
    #[case::quota(
        403,
        r#"{"faultstring":"Quota has been met for resources: Load Balancer"}"#,
        FailureClass::Quota,
        r#"quota of "Load Balancer" is used up"#
    )]
    #[case::neutron_quota_quoted(
        409,
        r#"{"faultstring":"The VIP IP address is already in use: Quota exceeded for resources: ['port']."}"#,
        FailureClass::Quota,
        r#"quota of "port" is used up"#
    )]
    #[case::role(
        403,
        r#"{"faultstring":"Policy does not allow this request to be performed."}"#,
        FailureClass::Auth,
        "role load-balancer_member (or member, where the cloud uses the default policy) in the project of the load balancer: first check that cloud.conf names that project"
    )]
    #[case::lock(
        409,
        r#"{"faultstring":"Load Balancer x is immutable and cannot be updated."}"#,
        FailureClass::Busy,
        "immutable"
    )]
    #[case::address_taken(
        409,
        r#"{"faultstring":"The VIP IP address is already in use: 10.0.0.9"}"#,
        FailureClass::UserInput,
        "already in use"
    )]
    #[case::subnet(
        400,
        r#"{"faultstring":"Subnet x not found."}"#,
        FailureClass::UserInput,
        "Subnet x not found"
    )]
    #[case::credentials(401, "{}", FailureClass::Auth, "check that the credentials")]
    #[case::nova_rule(
        403,
        r#"{"forbidden":{"code":403,"message":"Policy doesn't allow os_compute_api:servers:detail to be performed."}}"#,
        FailureClass::Auth,
        "the cloud's policy os_compute_api:servers:detail does not allow the user of cloud.conf to make this call"
    )]
    #[case::fault(500, r#"{"faultstring":"boom"}"#, FailureClass::Unavailable, "boom")]
    #[tokio::test(start_paused = true)]
    async fn a_refusal_of_octavia_says_what_to_do(
        #[case] status: u16,
        #[case] body: &'static str,
        #[case] class: FailureClass,
        #[case] text: &str,
    ) {
        let failure = octavia_says(status, body).await;
        assert_eq!(failure.class, class);
        assert!(failure.message.starts_with("creating the load balancer: "), "{failure}");
        assert!(failure.message.contains(text), "{failure}");
    }

    #[rstest]
    #[case::quota(409, r#"{"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: ['floatingip'].","detail":""}}"#,
        FailureClass::Quota, r#"quota of "floatingip" is used up"#)]
    #[case::chosen_address(
        403,
        r#"{"NeutronError":{"type":"PolicyNotAuthorized","message":"(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy","detail":""}}"#,
        FailureClass::Auth,
        "remove spec.loadBalancerIP"
    )]
    #[case::any_address(
        403,
        r#"{"NeutronError":{"type":"PolicyNotAuthorized","message":"rule:create_floatingip is disallowed by policy","detail":""}}"#,
        FailureClass::Auth,
        "the cloud's policy create_floatingip does not allow"
    )]
    #[case::no_router(
        404,
        r#"{"NeutronError":{"type":"ExternalGatewayForFloatingIPNotFound","message":"no","detail":""}}"#,
        FailureClass::UserInput,
        "connect the subnet of the load balancer to a router"
    )]
    #[case::network(404, r#"{"NeutronError":{"type":"NetworkNotFound","message":"Network x could not be found.","detail":""}}"#,
        FailureClass::UserInput, "Network x could not be found.")]
    #[tokio::test(start_paused = true)]
    async fn a_refusal_of_neutron_says_what_to_do(
        #[case] status: u16,
        #[case] body: &'static str,
        #[case] class: FailureClass,
        #[case] text: &str,
    ) {
        let failure = neutron_says(status, body).await;
        assert_eq!(failure.class, class);
        assert!(failure.message.contains(text), "{failure}");
    }

    /// An API of old limits rates with 413, with or without a time.
    #[rstest]
    #[case::in_the_body(
        r#"{"overLimit":{"code":413,"message":"This request was rate-limited.","retryAfter":"20"}}"#,
        FailureClass::Unavailable,
        "rate-limited"
    )]
    #[case::plain("slow down", FailureClass::Unavailable, "slow down")]
    #[case::quota(r#"{"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: ['floatingip'].","detail":""}}"#, FailureClass::Quota, "quota of \"floatingip\"")]
    #[tokio::test(start_paused = true)]
    async fn field_47_413_is_a_rate_limit_unless_the_cloud_says_otherwise(
        #[case] body: &'static str,
        #[case] class: FailureClass,
        #[case] text: &str,
    ) {
        let failure = neutron_says(413, body).await;
        assert_eq!(failure.class, class, "{failure}");
        assert!(
            failure.message.contains(text) && !failure.message.contains("enlarge the subnet"),
            "{failure}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_that_the_cloud_asks_for_is_kept() {
        let failure = octavia_says(503, "{}").await;
        assert_eq!(
            (failure.class, failure.retry_after),
            (FailureClass::Unavailable, Some(Duration::from_secs(7)))
        );
    }
}

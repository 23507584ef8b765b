//! A client's knowledge of the optional parts of the cloud's API.

use super::{Call, Client};
use crate::error::ApiError;
use crate::optional::{Lacking, OptionalPart};

impl Client {
    /// Awaits the answer to a call of an optional part, and notes whether the cloud has the part.
    pub(crate) async fn noting<T>(
        &self,
        part: OptionalPart,
        call: &Call,
        answer: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let answer = answer.await;
        self.shared.parts.note(part, call, answer.as_ref().err());
        answer
    }

    /// Notes that an answer showed an attribute of a part as this program wrote it.
    pub fn note_shown(&self, part: OptionalPart) {
        self.shared.parts.note_shown(part);
    }

    /// Notes that the answer to a write that was accepted lacks what was written.
    pub(crate) fn note_not_shown(&self, part: OptionalPart, call: &Call) {
        self.shared.parts.note_not_shown(part, call);
    }

    /// Returns whether an answer has shown an attribute of a part as this program wrote it.
    pub fn has_shown(&self, part: OptionalPart) -> bool {
        self.shared.parts.has_shown(part)
    }

    /// Returns whether the cloud is known to lack a part.
    pub fn lacks(&self, part: OptionalPart) -> bool {
        self.shared.parts.lacks(part)
    }

    /// Returns the parts that the cloud lacks.
    pub fn lacking(&self) -> Vec<Lacking> {
        self.shared.parts.lacking()
    }

    /// Returns the missing parts that were not reported yet; the caller has to report them.
    pub fn newly_lacking(&self) -> Vec<Lacking> {
        self.shared.parts.newly_lacking()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use rstest::rstest;

    use super::*;
    use crate::client::{ClientSettings, RetryPolicy};
    use crate::neutron::{FloatingIpFilter, Neutron, Tagged};
    use crate::transport::{FnTransport, Response};

    /// Returns a client for a cloud that answers the setting of tags with this status and body, and all other calls with success.
    fn client(status: u16, body: &'static str) -> Client {
        let transport = FnTransport::new(move |request| async move {
            let (status, body) = if request.path.ends_with("/tags") {
                (status, body)
            } else {
                (200, r#"{"floatingips": []}"#)
            };
            let mut answer = http::Response::new(bytes::Bytes::from_static(body.as_bytes()));
            *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
            Ok(Response::from(answer))
        });
        let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
        Client::new(std::sync::Arc::new(transport), settings)
    }

    #[rstest]
    #[case::names_the_attribute(
        400,
        r#"{"NeutronError": {"type": "BadRequest", "message": "Unrecognized attribute(s) 'tags'"}}"#,
        true
    )]
    #[case::a_wrong_value(
        400,
        r#"{"NeutronError": {"type": "BadRequest", "message": "Invalid input for field/attribute tags. Value: a"}}"#,
        false
    )]
    #[case::another_attribute(
        400,
        r#"{"NeutronError": {"type": "BadRequest", "message": "Unrecognized attribute(s) 'description'"}}"#,
        false
    )]
    #[case::another_fault(
        400,
        r#"{"NeutronError": {"type": "BadRequest", "message": "Malformed request body"}}"#,
        false
    )]
    #[case::access_rules(
        401,
        r#"{"error": {"message": "The request you have made requires authentication."}}"#,
        true
    )]
    #[case::policy(
        403,
        r#"{"NeutronError": {"type": "PolicyNotAuthorized", "message": "rule:update_floatingip_tags"}}"#,
        true
    )]
    #[case::quota(
        403,
        r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['tag']."}}"#,
        false
    )]
    #[case::no_such_path(
        404,
        r#"{"message": "The resource could not be found.", "title": "Not Found"}"#,
        true
    )]
    #[case::object_is_gone(
        404,
        r#"{"NeutronError": {"type": "TagResourceNotFound", "message": "gone"}}"#,
        false
    )]
    #[case::method(405, "", true)]
    #[case::not_implemented(501, "{}", true)]
    #[case::page(418, "<html>no</html>", true)]
    #[case::fault(500, "<html>boom</html>", false)]
    #[case::gateway(502, "<html>boom</html>", false)]
    #[case::rate(429, "<html>slow</html>", false)]
    #[tokio::test(start_paused = true)]
    async fn only_what_would_be_answered_the_same_again_counts(
        #[case] status: u16,
        #[case] body: &'static str,
        #[case] lasting: bool,
    ) {
        let (client, part) = (client(status, body), OptionalPart::FloatingIpTags);
        let neutron = Neutron::new(client.clone());
        neutron.list_floating_ips(&FloatingIpFilter::default()).await.expect("a list");
        neutron
            .replace_tags(Tagged::FloatingIp, "id", &["a".to_owned()].into())
            .await
            .expect_err("a refusal");
        assert_eq!(client.lacks(part), lasting);
        assert_eq!(client.newly_lacking().len(), usize::from(lasting));
        assert!(client.newly_lacking().is_empty(), "it is said once");
        tokio::time::advance(Duration::from_secs(1800)).await;
        assert!(!client.lacks(part), "it is asked for again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_shown_is_not_unknown() {
        let body =
            r#"{"NeutronError": {"type": "BadRequest", "message": "Unrecognized attribute(s) 'tags'"}}"#;
        let client = client(400, body);
        client.note_shown(OptionalPart::FloatingIpTags);
        let neutron = Neutron::new(client.clone());
        let tags = ["a".to_owned()].into();
        neutron.replace_tags(Tagged::FloatingIp, "id", &tags).await.expect_err("a refusal");
        assert!(!client.lacks(OptionalPart::FloatingIpTags));
    }

    #[tokio::test(start_paused = true)]
    async fn a_filter_that_is_refused_is_left_out_and_the_answer_filtered() {
        let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = std::sync::Arc::clone(&asked);
        let transport = FnTransport::new(move |request| {
            seen.lock().expect("no panic").push(request.path_and_query());
            let is_refused = request.query.iter().any(|(key, _)| key == "tags");
            async move {
                let refusal =
                    r#"{"NeutronError": {"message": "['tags'] is invalid attribute for filtering"}}"#;
                let list = r#"{"floatingips": [
                    {"id": "a", "floating_ip_address": "192.0.2.1", "tags": ["t"]},
                    {"id": "b", "floating_ip_address": "192.0.2.2", "tags": []}]}"#;
                let (status, body) = if is_refused { (400, refusal) } else { (200, list) };
                let mut answer = http::Response::new(bytes::Bytes::from_static(body.as_bytes()));
                *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
                Ok(Response::from(answer))
            }
        });
        let client = Client::over(transport);
        let neutron = Neutron::new(client.clone());
        let filter = FloatingIpFilter { tags: vec!["t".to_owned()], ..FloatingIpFilter::default() };
        for _ in 0..2 {
            let found = neutron.list_floating_ips(&filter).await.expect("a list");
            assert_eq!(found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["a"]);
        }
        let paths = ["/v2.0/floatingips?tags=t", "/v2.0/floatingips", "/v2.0/floatingips"];
        assert_eq!(*asked.lock().expect("no panic"), paths);
        let [lacking] = &client.newly_lacking()[..] else { panic!("it is said once") };
        assert!(lacking.to_string().contains("GET /v2.0/floatingips refuses to filter by tags"), "{lacking}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_no_call_takes_says_nothing_of_a_part() {
        let client = client(401, "{}");
        let neutron = Neutron::new(client.clone());
        neutron
            .replace_tags(Tagged::FloatingIp, "id", &["a".to_owned()].into())
            .await
            .expect_err("a refusal");
        assert!(!client.lacks(OptionalPart::FloatingIpTags));
    }
}

//! From the keys of `[Global]` to a login.

use openstack_ccm_openstack_api::identity::{
    ApplicationCredentialName, Credentials, DomainRef, InDomain, Scope,
};
use rstest::rstest;
use secrecy::ExposeSecret;

use crate::environment::{Memory, transcript};

fn load(lines: &str) -> Result<openstack_ccm_provider_openstack::config::Loaded, String> {
    Memory::with_cloud_conf(format!(
        "[Global]\nauth-url=https://k.example.org/v3\n{}\n",
        lines.replace(' ', "\n")
    ))
    .load()
    .map_err(|errors| errors.to_string())
}

fn login(lines: &str) -> (Credentials, Scope) {
    let options = load(lines).unwrap().auth_options;
    (options.credentials, options.scope)
}

fn domain_id(id: &str) -> DomainRef {
    DomainRef::Id(id.to_owned())
}

fn domain_name(name: &str) -> DomainRef {
    DomainRef::Name(name.to_owned())
}

fn user_id(id: &str) -> InDomain {
    InDomain::Id(id.to_owned())
}

fn user_name(name: &str, domain: DomainRef) -> InDomain {
    InDomain::Name { name: name.to_owned(), domain }
}

fn project_id(id: &str) -> Scope {
    Scope::Project(InDomain::Id(id.to_owned()))
}

fn project_name(name: &str, domain: DomainRef) -> Scope {
    Scope::Project(InDomain::Name { name: name.to_owned(), domain })
}

#[rstest]
#[case::ids("user-id=u password=p tenant-id=t", user_id("u"), project_id("t"))]
#[case::names(
    "username=u user-domain-name=ud password=p tenant-name=t tenant-domain-id=td",
    user_name("u", domain_name("ud")),
    project_name("t", domain_id("td"))
)]
#[case::ids_win(
    "username=u user-id=i password=p tenant-name=t tenant-id=ti domain-id=d",
    user_id("i"),
    project_id("ti")
)]
#[case::one_domain_for_both(
    "username=u password=p tenant-name=t domain-id=d",
    user_name("u", domain_id("d")),
    project_name("t", domain_id("d"))
)]
#[case::own_domain_wins(
    "username=u password=p tenant-name=t domain-name=d user-domain-id=ud",
    user_name("u", domain_id("ud")),
    project_name("t", domain_name("d"))
)]
#[case::domain_scope(
    "username=u user-domain-id=ud password=p domain-name=d",
    user_name("u", domain_id("ud")),
    Scope::Domain(domain_name("d"))
)]
#[case::nothing_said("user-id=u password=p", user_id("u"), Scope::Unscoped)]
fn passwords_take_ids_or_names(
    #[case] lines: &str,
    #[case] expected: InDomain,
    #[case] expected_scope: Scope,
) {
    let (credentials, scope) = login(lines);
    let Credentials::Password { user, password } = credentials else { panic!("{credentials:?}") };
    assert_eq!((user, password.expose_secret(), scope), (expected, "p", expected_scope));
}

#[rstest]
#[case::id(
    "application-credential-id=a application-credential-secret=s tenant-id=t",
    ApplicationCredentialName::Id("a".to_owned())
)]
#[case::name_and_user_id(
    "application-credential-name=a application-credential-secret=s user-id=u",
    ApplicationCredentialName::Name { name: "a".to_owned(), user: user_id("u") }
)]
#[case::name_and_default_domain(
    "application-credential-name=a application-credential-secret=s username=u domain-id=d",
    ApplicationCredentialName::Name { name: "a".to_owned(), user: user_name("u", domain_id("d")) }
)]
fn application_credentials_send_no_scope(#[case] lines: &str, #[case] expected: ApplicationCredentialName) {
    let (credentials, scope) = login(lines);
    let Credentials::ApplicationCredential { name, secret } = credentials else { panic!("{credentials:?}") };
    assert_eq!((name, secret.expose_secret(), scope), (expected, "s", Scope::Unscoped));
}

/// Defect: 42, better: a token works without a scope.
#[rstest]
#[case("token=x", Scope::Unscoped)]
#[case("token=x tenant-id=t", project_id("t"))]
#[case("token=x trust-id=tr", Scope::Trust { trust_id: "tr".to_owned() })]
fn tokens_work_with_and_without_scope(#[case] lines: &str, #[case] expected: Scope) {
    let (credentials, scope) = login(lines);
    let Credentials::Token { token } = credentials else { panic!("{credentials:?}") };
    assert_eq!((token.expose_secret(), scope), ("x", expected));
}

#[rstest]
#[case("trust-id=tr trustee-id=te trustee-password=tp user-id=u password=p tenant-id=t", user_id("te"), "tp")]
#[case("trust-id=tr user-id=u password=p", user_id("u"), "p")]
#[case("trust-id=tr username=u domain-id=d password=p", user_name("u", domain_id("d")), "p")]
fn trustees_replace_the_user(
    #[case] lines: &str,
    #[case] expected: InDomain,
    #[case] expected_password: &str,
) {
    let (credentials, scope) = login(lines);
    let Credentials::Password { user: trustee, password } = credentials else { panic!("{credentials:?}") };
    assert_eq!((trustee, password.expose_secret()), (expected, expected_password));
    assert_eq!(scope, Scope::Trust { trust_id: "tr".to_owned() });
}

#[test]
fn with_two_kinds_the_password_is_used_and_said_so() {
    let lines =
        "user-id=u password=p tenant-id=t application-credential-id=a application-credential-secret=s";
    let loaded = load(lines).unwrap();
    assert!(matches!(loaded.auth_options.credentials, Credentials::Password { .. }));
    assert_eq!(loaded.warnings.len(), 1);
    insta::assert_snapshot!(loaded.warnings[0], @"cloud.conf:7:1: [Global] application-credential-secret: this key is not used: `password` is also set, and the login uses `password`; remove one of the two");
}

/// Each case alone, with its message.
#[test]
fn what_is_missing_is_named_for_the_kind_of_log_in() {
    let cases = [
        "region=r",
        "username=u",
        "username=u password=p tenant-name=t",
        "username=u password=p domain-id=d",
        "password=p tenant-id=t",
        "application-credential-id=a",
        "application-credential-secret=s",
        "application-credential-name=a application-credential-secret=s",
        "trust-id=t user-id=u",
        "trust-id=t trustee-password=p",
    ];
    insta::assert_snapshot!(transcript(&cases, |lines| load(lines).unwrap_err()));
}

#[test]
fn a_key_with_an_error_is_not_called_missing_as_well() {
    let message = load("user-id=u password=\"x\\q\" tenant-id=t").unwrap_err();
    assert_eq!(message.lines().count(), 2, "{message}");
}

#[test]
fn tls_region_and_time_out_reach_the_client() {
    let lines =
        "token=t region=R cafilecontents=\"-----BEGIN\\nX\" tls-insecure=TRUE cert-file=/c key-file=/k";
    let message = load(lines).unwrap_err();
    assert!(
        message.contains("cafilecontents") && message.contains("cert-file") && message.contains("key-file"),
        "{message}"
    );
    let conf = "[Global]\nauth-url=http://k\ntoken=t\nregion=R\ncert-file=/c\nkey-file=/k\nca-file=/ca\ntls-insecure=true\n\
                cafilecontents=\"-----BEGIN CERTIFICATE-----\\nAA\"\n[Metadata]\nrequest-timeout=1m30s\n";
    let environment = Memory::with_cloud_conf(conf).file("/c", "").file("/k", "").file("/ca", "");
    let options = environment.load().unwrap().auth_options;
    assert_eq!(options.region.as_deref(), Some("R"));
    assert_eq!(options.request_timeout.as_secs(), 90);
    let certificate = options.tls.client_certificate.unwrap();
    let paths = [Some(certificate.certificate_file), Some(certificate.key_file), options.tls.ca_file];
    assert_eq!(paths.map(|file| file.unwrap().path), ["/c", "/k", "/ca"].map(std::path::PathBuf::from));
    assert_eq!(options.tls.ca_pem.as_deref(), Some("-----BEGIN CERTIFICATE-----\nAA"));
    assert!(options.tls.insecure);
}

//! Generates the reference page of cloud.conf from the tables of keys.

use std::fmt::Write;

use super::section::{
    Global, Key, LoadBalancer, LoadBalancerClass, LoadBalancerNamespace, Metadata, Networking, Route,
    SectionName,
};
use crate::released::{PROGRAM, marked};

const HEAD: &str = "\
# cloud.conf

<!-- Generated from the table of keys. To regenerate it:
     UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test config reference -->

`--cloud-config` names this file. It may be given more than once: files are read in order, for each key the last file wins,
and lists are combined. All errors of all files are reported at once, each with file, line, column, section, key and what to
do. Unknown sections and keys are ignored with a warning. [Configure cloud.conf](../guides/configure-cloud-conf.md) is the guide.

Keys marked *OCCM* have the same name and meaning as in the Go openstack-cloud-controller-manager, in the version that is
named, or in all of the last ones; for the others, *Since* is the version that added them.

## Format

| Element | Rule |
| --- | --- |
| Section | `[Name]`, or `[Name \"sub name\"]` with the quotes. A section may appear several times. |
| Key | `key = value`. Keys consist of letters, digits and `-`; case does not matter, in section names neither. |
| Comment | `#` and `;` start one **anywhere outside quotes**, even inside a word: `password = abc#def` is `abc`. |
| Quotes | `\"...\"` around a value or a part of it. Inside: `\\\\`, `\\\"`, `\\n`, `\\t`, nothing else. Single quotes are ordinary characters. |
| Backslash outside quotes | At the end of a line it continues the value; before `\"` it is that character; elsewhere it is an error. |
| Encoding | UTF-8 without byte-order mark; lines end with LF or CRLF. |

| Type | Values |
| --- | --- |
| text | Anything; empty is the same as absent. |
| secret | Text that never appears in logs or errors. |
| bool | `true`, `yes`, `on`, `1`, `false`, `no`, `off`, `0` in any case. The key alone means true. |
| number | Decimal, or hexadecimal with the prefix `0x`. |
| duration | Numbers with units: `5s`, `1m30s`, `500ms`. A number without a unit is an error. |
| list | One entry per line; repeat the key for more. The key alone empties the list. |
";

const TAIL: &str = "\
## clouds.yaml

With `use-clouds` in `[Global]`, an entry of clouds.yaml fills what that section leaves empty: `auth_url`, `user_id`,
`username`, `password`, `project_id`, `project_name`, `domain_id`, `domain_name`, `project_domain_id`,
`project_domain_name`, `user_domain_id`, `user_domain_name`, `application_credential_id`,
`application_credential_name`, `application_credential_secret`, `token` and `system_scope` of its `auth`, and
`region_name`, `endpoint_type` (or `interface`), `cacert`, `cert`, `key`, `verify` and `auth_type`.

| What | Where |
| --- | --- |
| File | `clouds-file`, else `OS_CLIENT_CONFIG_FILE`, if that file exists; else `clouds.yaml`, then `clouds.yml`, each in the working directory, `~/.config/openstack` and `/etc/openstack` |
| Entry | `cloud`, else `OS_CLOUD`, else the only one there is |
| Overridden by | the same entry of `secure.yaml` (or `.yml`) from the same directories |
| Defaults from | the entry of `clouds-public.yaml` (or `.yml`) that its `profile` (or `cloud`) names |

`--cloud-config` may also name a clouds.yaml itself (a file `*.yaml` or `*.yml`, or one that begins with `clouds:`), alone or beside a
cloud.conf: it is the file, as with `use-clouds` and `clouds-file`. `OS_CLOUD` chooses its entry if there are several.

## Login

If several kinds of credentials are set, the order is: trust, password, token, application credential; `auth_type` of
clouds.yaml overrides it. The scope is the project; without a project the system (`system_scope: all`), else the domain.
";

/// The reference page, as `docs/reference/cloud-conf.md` holds it. `of_occm` says since when OCCM has a key, if it has.
pub fn reference_markdown(of_occm: impl Fn(&str) -> Option<String>) -> String {
    let mut page = HEAD.to_owned();
    for section in SectionName::ALL {
        let (title, about) = introduction(section);
        page.push_str(&format!("\n## {title}\n\n{about}\n"));
        page.push_str(&table_of(section, &of_occm));
    }
    page.push('\n');
    page.push_str(TAIL);
    page
}

fn introduction(section: SectionName) -> (&'static str, &'static str) {
    match section {
        SectionName::Global => ("[Global]", "Login and endpoints. `tenant` is the old word for project."),
        SectionName::LoadBalancer => (
            "[LoadBalancer]",
            "Defaults of all load balancers. Most of them can be overridden per Service by an annotation or a class.",
        ),
        SectionName::LoadBalancerClass => (
            "[LoadBalancerClass \"name\"]",
            "Networks and subnets for the Services whose annotation `loadbalancer.openstack.org/class` names the class. \
             Any number of classes; the name is required and case sensitive.",
        ),
        SectionName::LoadBalancerNamespace => (
            "[LoadBalancerNamespace \"name\"]",
            "What the Services of a namespace may refer to by annotations and `spec.loadBalancerIP`; `*` stands for all \
             namespaces without a section of their own. Lists are separated by commas; a key that is absent allows \
             everything, an empty one nothing. Without any such section everything is allowed, as in OCCM. What cloud.conf \
             itself names is always allowed.",
        ),
        SectionName::Networking => {
            ("[Networking]", "Which addresses of a server become addresses of its node.")
        }
        SectionName::Route => ("[Route]", "Routes of pod networks."),
        SectionName::Metadata => {
            ("[Metadata]", "The name is historical: nothing here is about instance metadata.")
        }
        SectionName::BlockStorage => {
            ("[BlockStorage]", "Accepted because charts always write it. Nothing in it has an effect.")
        }
    }
}

fn table_of(section: SectionName, of_occm: &dyn Fn(&str) -> Option<String>) -> String {
    match section {
        SectionName::Global => table(Global::KEYS, of_occm),
        SectionName::LoadBalancer => table(LoadBalancer::KEYS, of_occm),
        SectionName::LoadBalancerClass => table(LoadBalancerClass::KEYS, of_occm),
        SectionName::LoadBalancerNamespace => table(LoadBalancerNamespace::KEYS, of_occm),
        SectionName::Networking => table(Networking::KEYS, of_occm),
        SectionName::Route => table(Route::KEYS, of_occm),
        SectionName::Metadata => table(Metadata::KEYS, of_occm),
        SectionName::BlockStorage => String::new(),
    }
}

fn table<S>(keys: &[Key<S>], of_occm: &dyn Fn(&str) -> Option<String>) -> String {
    let mut rows =
        "\n| Key | Type | Default | Meaning | Since |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for key in keys {
        let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
        // Writing to a String cannot fail.
        let _ = writeln!(
            rows,
            "| `{}` | {} | {default} | {} | {} |",
            key.name,
            key.field.type_name(),
            key.meaning,
            match key.since {
                "OCCM" => of_occm(key.name).unwrap_or_default(),
                version => marked(version, PROGRAM),
            }
        );
    }
    rows
}

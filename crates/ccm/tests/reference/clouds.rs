//! `docs/overlay/clouds.md`, from the table of the overlay.

use std::fmt::Write as _;

use openstack_ccm_overlay::cloud::{CLOUDS, Key, Value};

use crate::page::{GENERATED, cell};

const INTRODUCTION: &str = "# Clouds

This page lists which clouds need the overlay, according to the source code of their controllers. Newer versions of a controller may write `ipMode`
themselves: `ip-mode-overlay check` shows what your cluster publishes.

## Clouds that the rules know

| Cloud | `--cloud` | A Service is selected by | Status that its controller writes | `ipMode` | Source | Seen |
| --- | --- | --- | --- | --- | --- | --- |
";

const OTHERS: &str = "
## Other clouds that need it

With `--annotation KEY=VALUE`, name the annotation with which your Services ask for the PROXY protocol, or annotate the Services with
`ip-mode-overlay/mode: proxy`.

| Cloud | State of its controller | Source | Seen |
| --- | --- | --- | --- |
| Timeweb Cloud and other clouds with a closed controller | publishes `{ip}` without `ipMode`; the PROXY protocol is switched on in a console | reports of users | 2026-08 |
| Huawei CCE, Open Telekom Cloud | publishes `{ip}` without `ipMode`; no annotation for the PROXY protocol | huaweicloud/huaweicloud-cloud-controller-manager 037c9107 (k8s.io/cloud-provider 0.28.13), opentelekomcloud/cloud-provider-opentelekomcloud 6007a9d | 2026-08 |
| OpenStack with the Go openstack-cloud-controller-manager | publishes `Proxy` for the PROXY protocol since 1.30, and `VIP` if the load balancer terminates TLS or inserts X-Forwarded-For; [when to use the overlay and when openstack-ccm](openstack.md) | kubernetes/cloud-provider-openstack 1.30 | 2026-08 |

## Clouds that do not need it

| Cloud | Why |
| --- | --- |
| Hetzner, Scaleway, cloudscale, Outscale, STACKIT, NSX, Oracle (opt-in) | their controllers write `ipMode` |
| AWS, UpCloud, IBM VPC, Brightbox | they publish hostnames, which nodes never short-circuit |
| Exoscale, Yandex | their load balancers only forward packets; there is no PROXY protocol |
| MetalLB, kube-vip, Cilium LB-IPAM, k3s' ServiceLB | nodes announce the address: `VIP` is right, and the overlay refuses to touch them |
";

/// The page.
pub(crate) fn markdown() -> String {
    let mut page = format!("{GENERATED}\n\n{INTRODUCTION}");
    for cloud in CLOUDS {
        let rules: Vec<String> =
            cloud.annotations.iter().map(|rule| described(rule.key, rule.value)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| {} | `{}` | {} | {} | {} | {} | {} |",
            cloud.title,
            cloud.name,
            cell(&rules.join("<br>")),
            cell(cloud.status),
            cloud.ip_mode,
            cell(cloud.source),
            cloud.seen
        );
    }
    page.push_str(OTHERS);
    page
}

fn described(key: Key, value: Value) -> String {
    let key = match key {
        Key::Exactly(key) => key.to_owned(),
        Key::Prefix(prefix) => format!("{prefix}PORT"),
    };
    match value {
        Value::OneOf(values) => format!("`{key}: {}`", values.first().copied().unwrap_or_default()),
        Value::NoneOf(_) => format!("`{key}` with any value but `false`"),
        Value::Contains(parts) => format!("`{key}` with `{}`", parts.first().copied().unwrap_or_default()),
    }
}

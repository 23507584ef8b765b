//! The token of the pods' ServiceAccount, which a kubelet renews when four fifths of its time are over.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::SCENARIO;
use super::proxy::works;
use super::quickstart::all_ready;
use super::site::Site;
use crate::machine::wait::until;
use crate::stage::Stage;

/// The volume that pods have by default, with a token that lives ten minutes, the shortest that there is, in place of an hour.
const VALUES: &str = r"
extraVolumes:
  - name: token
    projected:
      sources:
        - serviceAccountToken: {path: token, expirationSeconds: 600}
        - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
        - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
extraVolumeMounts:
  - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
";
/// Longest time until a token is replaced: a kubelet looks at its volumes every minute or two.
const RENEWED: Duration = Duration::from_secs(780);

/// The pods get the token.
pub(super) fn shorten(stage: &mut Stage, site: &Site) {
    stage.check(SCENARIO, "helm upgrade with a volume: a token that lives ten minutes", |_| {
        site.operator.saves("token.yaml", VALUES)?;
        site.operator.types(
            "helm upgrade openstack-ccm charts/openstack-ccm --namespace kube-system --reset-then-reuse-values \
             --values token.yaml",
        )?;
        all_ready(site)
    });
}

/// It is renewed while the leader runs.
pub(super) fn renewed(stage: &mut Stage, site: &Site) {
    stage.check(
        SCENARIO,
        "the kubelet renews the token: the same process leads on with the next one",
        |stage| {
            let (leader, _) = site.leader()?;
            let seconds = until("the leader claims the lease with another token", RENEWED, || {
                let claims = site.audit.claims()?;
                let first = claims.iter().position(|claim| claim.pod == leader).context("it never led")?;
                let others = claims[first..].iter().find(|claim| claim.pod != leader);
                ensure!(others.is_none(), "{} has claimed it", others.map_or("", |claim| &claim.pod));
                let first = &claims[first];
                let next = claims.iter().find(|claim| claim.pod == leader && claim.token != first.token);
                let next = next.context("it still has the first token")?;
                Ok(next.received.duration_since(first.received).as_secs())
            })?;
            let pod = site.api.get(&format!("/api/v1/namespaces/kube-system/pods/{leader}"))?;
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            ensure!(*restarts == 0, "it was started again: {restarts}");
            Ok(format!("another token after {seconds} s; {}", works(stage, site)?))
        },
    );
}

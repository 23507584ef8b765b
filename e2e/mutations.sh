#!/usr/bin/env bash
# e2e/mutations.sh NAME [OPTIONS...]
# Breaks the product or the world on purpose, runs the group of scenarios that has to notice, and mends it again.
# Ends with 0 if the named case turned red, with 1 if it stayed green or did not run, with 2 if nothing could be broken.
# OPTIONS go to the run, such as `--folder target/second`. Without NAME it lists the mutations.
set -euo pipefail
cd "$(dirname "$0")/.."

# Name; group; case; file; sed script.
mutations() {
  cat <<'END'
requests-decide; doctor; a node on 1.29; e2e/src/scenario/doctor/cluster_faults.rs; s/stage.join\(NODES\[1\], OLD_SERVER, /stage.join(NODES[1], CURRENT, /
calls-at-most; calls; create 5; crates/provider-openstack/src/load_balancer/poller/mod.rs; s/^const BETWEEN_LISTS: Duration = .*/const BETWEEN_LISTS: Duration = Duration::ZERO;/
metrics-for-all; requested; the load balancer shows its metrics to those who may read them; crates/provider-openstack/src/load_balancer/desired/metrics.rs; s/allowed_cidrs: Some\(allowed\)/allowed_cidrs: Some(vec!["0.0.0.0\/0".into()])/
orphans-of-the-living; plan; --cluster-uid is refused while the cluster answers; crates/ccm/src/subcommands/orphans/mod.rs; s/living != uid,/living != uid || !uid.is_empty(),/
orphans-by-id; plan; what serves is not listed, and not deleted by id; crates/ccm/src/subcommands/orphans/delete.rs; s/anyhow::bail!\("\{id\} is not orphaned.*/anyhow::bail!("{id} cannot be deleted");/
canary-status; canary; published; crates/canary/src/objects.rs; s/\(pair.control, "VIP"\)/(pair.control, "Proxy")/
nobody-dials; doctor; pods that dial see a healthy Service; crates/ccm/src/subcommands/doctor/live.rs; s/    if targets.is_empty\(\) \{/    if targets.len() < usize::MAX {/
api-version; openstack-2024.1; API version; e2e/src/artifacts/release.rs; s/Some\("v2.28"\)/Some("v2.27")/
occm-is-well; predecessor; OCCM 1.36 on 1.36, PROXY protocol; e2e/src/scenario/predecessor.rs; s/proxy\(stage, OccmRelease::V1_29, CURRENT\)/proxy(stage, OccmRelease::V1_36, CURRENT)/
wrong-probe; kubelet; quickstart: helm installs the chart, pods are ready by its probes; charts/openstack-ccm/templates/_pod.tpl; s/"path" "\/readyz"/"path" "\/ready"/
write-outside; kubelet; quickstart: helm installs the chart, pods are ready by its probes; crates/ccm/src/main.rs; s/^(fn main\(\).*\{)$/\1\n    std::fs::write("\/state", "").unwrap_or_else(|_| std::process::exit(1));/
missing-right; kubelet; quickstart: a Service gets an address, and answers; charts/openstack-ccm/templates/rbac.yaml; s/resources: \[services\/status\]/resources: [services\/nothing]/
no-bundle; kubelet; quickstart: the nodes are initialised, and no taint is left; e2e/src/openstack/front.rs; s/^        bundle \+= .*//
long-result; kubelet; doctor -A --live: results longer than a kubelet reads are all read; crates/ccm/src/subcommands/doctor/dial.rs; s/^const LONGEST_MESSAGE: usize = .*/const LONGEST_MESSAGE: usize = 1 << 20;/
END
}

if [ $# = 0 ]; then
  mutations | awk -F '; ' '{printf "%-22s %-17s %s\n", $1, $2, $3}'
  exit 0
fi
name=$1; shift
line=$(mutations | grep "^$name; ") || { echo "there is no mutation $name; without a name they are listed"; exit 2; }
IFS='|' read -r _ group case file script <<<"${line//; /|}"
git diff --quiet HEAD -- "$file" || { echo "$file has changes: commit them first"; exit 2; }
trap 'git checkout --quiet HEAD -- "$file"' EXIT
trap 'exit 2' INT TERM
sed -i -E "$script" "$file"
if git diff --quiet HEAD -- "$file"; then
  echo "$file is not broken by: $script"
  exit 2
fi
git --no-pager diff --unified=0 -- "$file" | tail -n +5

folder=target/e2e-mutation log=target/mutation-$name.log
make --no-print-directory e2e E2E_ARGS="--only $group --worlds 1 --folder $folder $*" 2>&1 | tee "$log" || true
if grep -F "| $case" "$log" | grep -q '^FAIL'; then
  echo "$name: red, as it has to be: $case"
elif grep -F "| $case" "$log" | grep -q '^ok'; then
  echo "$name: GREEN, nobody noticed: $case"
  exit 1
else
  echo "$name: the case did not run: $case"
  exit 1
fi

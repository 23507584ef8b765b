#!/usr/bin/env bash
# e2e/mutations.sh NAME... [-- OPTIONS...]
# Breaks the product or the world on purpose, runs the groups of scenarios that have to notice until the named cases are over, and mends all
# again. Several that stop different cases save builds. Ends with 0 if each named case turned red, with 1 if one stayed green or did not run,
# with 2 if nothing could be broken. OPTIONS go to the run. Without NAME it lists the mutations.
set -euo pipefail
cd "$(dirname "$0")/.."

# Name; group; scenario and case; file; sed script.
mutations() {
  cat <<'END'
requests-decide; doctor; 29 doctor | a node on 1.29; e2e/src/scenario/doctor/cluster_faults.rs; s/stage.join\(NODES\[1\], OLD_SERVER, /stage.join(NODES[1], CURRENT, /
calls-at-most; calls; 24 calls | restart, Services 6; crates/provider-openstack/src/load_balancer/read/lists/shared.rs; s/if others == 0 \{/if others != usize::MAX {/
metrics-for-all; requested; 32 requested | the load balancer shows its metrics to those who may read them; crates/provider-openstack/src/load_balancer/desired/metrics.rs; s/allowed_cidrs: Some\(allowed\)/allowed_cidrs: Some("0.0.0.0\/0".parse().into_iter().collect())/
orphans-of-the-living; plan; 23 orphans | --cluster-uid is refused while the cluster answers; crates/tools/src/orphans/mod.rs; s/living != uid,/living != uid || !uid.is_empty(),/
orphans-by-id; plan; 23 orphans | what serves is not listed, and not deleted by id; crates/tools/src/orphans/delete.rs; s/anyhow::bail!\("\{id\} is not orphaned.*/anyhow::bail!("{id} cannot be deleted");/
canary-status; canary; 20 canary | published; crates/canary/src/objects.rs; s/\(pair.control, "VIP"\)/(pair.control, "Proxy")/
nobody-dials; doctor; 29 doctor | pods that dial see a healthy Service; crates/tools/src/doctor/live.rs; s/    if targets.is_empty\(\) \{/    if targets.len() < usize::MAX {/
api-version; openstack-2024.1; 30 older releases, 2024.1 | API version; e2e/src/artifacts/release.rs; s/Some\("v2.28"\)/Some("v2.27")/
occm-is-well; predecessor; 37 predecessor | OCCM 1.36 on 1.36, PROXY protocol; e2e/src/scenario/predecessor.rs; s/proxy\(stage, OccmRelease::V1_29, CURRENT, "true"\)/proxy(stage, OccmRelease::V1_36, CURRENT, "v2")/
ovn-reports; ovn; 34 ovn | a check of a member fails; e2e/src/openstack/ovn.rs; s/format!\("status=\{status\}"\)/"status=online"/
another-tag; last-release; 40 last release | upgrade: 0.2.0 ends, this program leads, and nothing is written; crates/provider-openstack/src/load_balancer/desired/port.rs; s/^( *tags\.extend\()objects::pool::set_here\(&attributes\)\);/&\n\1["another".to_owned()]);/
wrong-probe; kubelet; 38 kubelet | quickstart: helm installs the chart, pods are ready by its probes; charts/openstack-ccm/templates/_pod.tpl; s/"path" "\/readyz"/"path" "\/ready"/
write-outside; kubelet; 38 kubelet | quickstart: helm installs the chart, pods are ready by its probes; crates/ccm/src/main.rs; s/^(fn main\(\).*\{)$/\1\n    std::fs::write("\/tmp\/state", "").unwrap_or_else(|_| std::process::exit(1));/
missing-right; kubelet; 38 kubelet | quickstart: a Service gets an address, and answers; charts/openstack-ccm/templates/rbac.yaml; s/resources: \[services\/status\]/resources: [services\/nothing]/
no-bundle; kubelet; 38 kubelet | quickstart: helm installs the chart, pods are ready by its probes; e2e/src/scenario/kubelet/front.rs; s/^        bundle \+= .*//
panics-once; current; group | current; crates/manager/src/run.rs; s/^        program\.run\(&self\.health, stop\)\.await;/        tokio::select! { () = program.run(\&self.health, stop) => {} () = tokio::time::sleep(std::time::Duration::from_secs(5)), if std::fs::File::create_new("\/run\/panicked").is_ok() => panic!("once") }/
long-result; kubelet; 38 kubelet | doctor -A --live: results longer than a kubelet reads are all read; crates/manager/src/dial.rs; s/^const MAX_MESSAGE_LENGTH: usize = .*/const MAX_MESSAGE_LENGTH: usize = 1 << 20;/
END
}

if [ $# = 0 ]; then
  mutations | awk -F '; ' '{printf "%-22s %-17s %s\n", $1, $2, $3}'
  exit 0
fi
names=() options=()
while [ $# != 0 ]; do
  case $1 in
  --) shift && options=("$@") && break ;;
  *) names+=("$1") && shift ;;
  esac
done

# Field NUMBER of the mutation NAME.
field() { mutations | awk -F '; ' -v name="$2" -v number="$1" '$1 == name {print $number}'; }
files=() run=
mend() {
  [ -z "$run" ] || kill -- "-$run" 2>/dev/null || true
  [ ${#files[@]} = 0 ] || git checkout --quiet HEAD -- "${files[@]}"
}
trap mend EXIT
trap 'exit 2' INT TERM

for name in "${names[@]}"; do
  file=$(field 4 "$name")
  [ -n "$file" ] || { echo "there is no mutation $name; without a name they are listed"; exit 2; }
  options+=(--only "$(field 2 "$name")")
  if [[ " ${files[*]} " != *" $file "* ]]; then
    git diff --quiet HEAD -- "$file" || { echo "$file has changes: commit them first"; exit 2; }
    files+=("$file")
  fi
  before=$(<"$file")
  sed -i -E "$(field 5 "$name")" "$file"
  [ "$before" != "$(<"$file")" ] || { echo "$file is not broken by: $(field 5 "$name")"; exit 2; }
done
git --no-pager diff --unified=0 -- "${files[@]}" | grep '^[-+]'

log=target/mutations.log
setsid make --no-print-directory e2e E2E_ARGS="--folder target/e2e-mutation ${options[*]}" >"$log" 2>&1 &
run=$!
tail -n +1 --pid="$run" -f "$log" &
# What became of the case of the mutation NAME; nothing before it is over.
verdict() { awk -v wanted="$(field 3 "$1") | " 'index($0, wanted) == 6 {print $1; exit}' "$log"; }
all_over() {
  for name in "${names[@]}"; do
    [ -n "$(verdict "$name")" ] || return 1
  done
}
until all_over || ! kill -0 "$run" 2>/dev/null; do sleep 2; done
result=0
for name in "${names[@]}"; do
  case $(verdict "$name") in
  FAIL) echo "$name: red, as it has to be: $(field 3 "$name")" ;;
  ok) echo "$name: GREEN, nobody noticed: $(field 3 "$name")" && result=1 ;;
  *) echo "$name: the case did not run: $(field 3 "$name")" && result=1 ;;
  esac
done
exit $result

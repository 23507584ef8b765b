#!/usr/bin/env bash
# crates/ccm/tests/mutations.sh RULE...
# For each named rule of the protocol: breaks the product in just that way, runs the whole-program test that has to notice, and mends all
# again. Ends with 0 if each named rule turned red, with 1 if one stayed green or did not run, with 2 if nothing could be broken. `all` names
# all rules; without RULE it lists them.
set -euo pipefail
cd "$(dirname "$0")/../../.."

# Rule; test; file below crates/provider-openstack/src/load_balancer; sed script.
mutations() {
  cat <<'END'
owner_is_shown_before_a_step; rules::a_repair_after_a_pause_begins_with_a_look; state/record.rs; s/self\.since = Moment::now\(\);//
one_step_at_a_time; rules::a_delayed_step_waits_for_that_of_another_service; read/statuses.rs; s/(let takes_step = ).*;/\1|_: \&LoadBalancer| true;/
no_look_while_a_step_holds_the_lock; rules::a_service_that_goes_waits_for_the_end_of_its_own_step; read/whole.rs; s/_ if found\.load_balancer\.provisioning_status\.is_pending\(\)/_ if found.load_balancer.id.is_empty()/
creation_after_a_look_for_its_name; cloud_faults::creations_that_may_have_arrived_are_looked_for_in_no_older_list; reconcile/carry_out.rs; s/self\.lists\.wrote_to_load_balancer\(&load_balancer\.name\)/self.lists.wrote_to_load_balancer(\&load_balancer.name[..0])/
removal_after_a_look; contract::changes::e4_a_port_moves; known/looks.rs; s/\(!goes_on && /(goes_on \&\& /
members_are_listed_before_they_are_named; rules::members_that_stay_are_listed_when_several_go; known/looks.rs; s/(let is_known = )self\.whole .*;/\1true;/
published_after_a_look; cloud_faults::a_creation_that_comes_too_soon_is_sent_again; known/looks.rs; s/(let end = ).*;/\1None.filter(|_| ends);/
END
}

if [ $# = 0 ]; then
  mutations | awk -F '; ' '{printf "%-41s %s\n", $1, $2}'
  exit 0
fi
rules=("$@")
[ "$*" != all ] || mapfile -t rules < <(mutations | awk -F '; ' '{print $1}')

# Field NUMBER of the mutation for RULE.
field() { mutations | awk -F '; ' -v rule="$2" -v number="$1" '$1 == rule {print $number}'; }
file=
mend() { [ -z "$file" ] || git checkout --quiet HEAD -- "$file"; }
trap mend EXIT
trap 'exit 2' INT TERM

log=target/mutation.log
result=0
for rule in "${rules[@]}"; do
  test=$(field 2 "$rule") script=$(field 4 "$rule")
  [ -n "$test" ] || { echo "there is no mutation for $rule; without a name they are listed"; exit 2; }
  path=crates/provider-openstack/src/load_balancer/$(field 3 "$rule")
  git diff --quiet HEAD -- "$path" || { echo "$path has changes: commit them first"; exit 2; }
  file=$path
  sed -i -E "$script" "$file"
  ! git diff --quiet HEAD -- "$file" || { echo "$file is not broken by: $script"; exit 2; }
  git --no-pager diff --unified=0 -- "$file" | grep '^[-+] '
  # What does not compile breaks no rule.
  cargo test --locked --workspace --all-features --test program --no-run
  if cargo test --locked --workspace --all-features --test program -- --exact "$test" >"$log" 2>&1; then
    echo "$rule: GREEN, $test did not notice" && result=1
  elif grep -q "^ *\"$rule: " "$log"; then
    echo "red: $rule"
  else
    echo "$rule: $test failed for another reason, see $log" && result=1
  fi
  mend
done
exit $result

#!/usr/bin/env bash
# e2e/everything.sh: what `make test` does. Runs the hermetic tests, the demo and the scenarios on real components, and ends with a table of
# what became of them. After one that is red the rest is not run. E2E_ARGS go to the scenarios.
set -uo pipefail
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT
rows=() red=

# Each prints how many passed, failed and were left out, by what a target printed and how it ended.
hermetic() { awk '/^test result: / {passed += $4; failed += $6; left += $8} END {print passed + 0, failed + 0, left + 0}' "$output"; }
demo() { [ "$1" = 0 ] && echo 1 0 0 || echo 0 1 0; }
e2e() { awk '/^[0-9]+ cases passed, / {passed = $1; failed = $4; left = $6} END {print passed + 0, failed + 0, left + 0}' "$output"; }

# Runs the target TARGET of make, and keeps a row with the name NAME for the table.
part() {
  local name=$1 target=$2 began=$SECONDS status result=ok passed failed left
  if [ -n "$red" ]; then
    rows+=("$name|-|-|-|-|not run")
    return
  fi
  "${MAKE:-make}" --no-print-directory "$target" | tee "$output"
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || result=RED red=1
  read -r passed failed left < <("$target" "$status")
  rows+=("$name|$passed|$failed|$left|$((SECONDS - began))|$result")
}

part "hermetic tests" hermetic
part "demo" demo
part "scenarios" e2e
echo
printf '%-16s %8s %8s %9s %8s\n' "" passed failed "left out" seconds
printf '%s\n' "${rows[@]}" | awk -F '|' '{printf "%-16s %8s %8s %9s %8s  %s\n", $1, $2, $3, $4, $5, $6}'
[ -z "$red" ]

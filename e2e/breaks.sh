#!/usr/bin/env bash
# e2e/breaks.sh [FOLDER]
# Breaks what a run works with, in one run of four groups, and looks whether the run does what docs/adr/0010 says. By hand, as root, on a
# machine where the scenarios have run. Ends with 0 if all of it was so.
#
#   current          its API server is killed: the group runs to its end in another world
#   machines         RabbitMQ is stopped: the same
#   requested        the controller is held until its Lease is lost: it is started again, and a row says so
#   kubernetes-1.33  nothing of it is built, and the Go proxy does not answer: it is left out by name
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-target/e2e-breaks}")
log=$folder.log
: >"$log"
program=${CARGO_TARGET_DIR:-target}/debug/openstack-ccm-e2e
cache=${XDG_CACHE_HOME:-$HOME/.cache}/openstack-ccm-e2e
aside=$(mktemp -d) run=
mend() {
  [ -z "$run" ] || kill -- "-$run" 2>/dev/null || true
  if compgen -G "$aside/*-1.33-*" >/dev/null; then
    rm -rf "$cache"/*-1.33-*
    mv "$aside"/*-1.33-* "$cache"
  fi
  rm -rf "$aside"
}
trap mend EXIT
trap 'exit 2' INT TERM
if compgen -G "$cache/*-1.33-*" >/dev/null; then mv "$cache"/*-1.33-* "$aside"; fi

# Nobody listens on the port of this proxy, and nothing was fetched before.
GOPROXY=http://127.0.0.1:9 GOMODCACHE=$aside/modules setsid "$program" run --if-possible --folder "$folder" \
  --only current --only machines --only requested --only kubernetes-1.33 >>"$log" 2>&1 &
run=$!
tail -n +1 --pid="$run" -f "$log" &

# The folder of the world that has seen the first case of the group GROUP.
world_at() {
  local found
  while kill -0 "$run" 2>/dev/null; do
    if compgen -G "$folder/queue/findings/*-$1" >/dev/null; then
      found=$(grep -lx -- "$1" "$folder"/world-*/group | head -n 1)
      [ -n "$found" ] && dirname "$found" && return
    fi
    sleep 0.2
  done
  echo "the run is over, and $1 has seen nothing" >&2
  return 1
}
# Sends SIGNAL to the process NAME of the world WORLD, and to no other one of this name.
signal() {
  local process name
  for process in /proc/[0-9]*; do
    # Without a process for each: the machine is busy.
    if read -r name 2>/dev/null <"$process/comm" && [ "$name" = "$2" ] &&
      grep -qaF -- "$3/" "$process/cmdline" "$process/environ" 2>/dev/null; then
      echo "     $1 for $2 of $3" >>"$log"
      kill -s "$1" "${process#/proc/}"
    fi
  done
}
# How long a leader may be held before another one may lead, and some seconds.
lease=20
hold() {
  local world
  world=$(world_at requested)
  signal STOP openstack-ccm "$world"
  sleep $lease
  signal CONT openstack-ccm "$world"
}
kill_server() { signal KILL kube-apiserver "$(world_at current)"; }
stop_broker() { signal TERM beam.smp "$(world_at machines)"; }
breaks=()
for one in hold kill_server stop_broker; do
  "$one" &
  breaks+=("$!")
done
wait "${breaks[@]}" || true
status=0
wait "$run" || status=$?

result=0
# The line NAME: what the log has to hold.
expect() {
  if grep -qE -- "$2" "$log"; then echo "as it has to be: $1"; else echo "MISSING: $1 ($2)" && result=1; fi
}
expect "the API server is named" '^FAIL group \| current \| kube-apiserver ended by itself \(signal 9\)'
expect "current runs to its end in another world" '^begun twice: current'
expect "RabbitMQ is named" '^FAIL group \| machines \| rabbitmq ended by itself'
expect "machines runs to its end in another world" '^begun twice: machines'
expect "the controller is started again, and a row says so" '^ok   .*the controller lost its Lease'
expect "1.33 is left out by name" 'group left out: kubernetes-1.33 \(.* could not be fetched'
expect "nothing has failed in the end" '^[0-9]+ cases passed, 0 failed'
[ "$status" = 0 ] || { echo "the run ended with $status" && result=1; }
exit $result

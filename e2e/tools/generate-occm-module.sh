#!/usr/bin/env bash
# generate-occm-module.sh VERSION DIRECTORY: go.mod and go.sum that pin the openstack-cloud-controller-manager; build with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager
set -euo pipefail
mkdir -p "$2"; cd "$2"
upstream=$(cd / && go mod download -json "k8s.io/cloud-provider-openstack@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
go_line=$(sed -n 's/^go //p' "$upstream")
{
  echo "module openstack-ccm.example/e2e/$(basename "$PWD")"
  echo
  # `tool` needs 1.24; what is older behaves as it did then.
  if [ "$(printf '%s\n1.24.0\n' "$go_line" | sort -V | head -1)" = 1.24.0 ]; then
    echo "go $go_line"
  else
    printf 'go 1.24.0\n\ngodebug default=go%s\n' "$(cut -d. -f1,2 <<<"$go_line")"
  fi
  printf '\ntool k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager\n'
  printf '\nrequire k8s.io/cloud-provider-openstack %s\n\n' "$1"
  # A module's own replacements count for nobody else.
  sed -n '/^replace (/,/^)/p' "$upstream"
} > go.mod
go mod tidy

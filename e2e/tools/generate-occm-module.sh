#!/usr/bin/env bash
# generate-occm-module.sh VERSION DIRECTORY: go.mod and go.sum that pin the openstack-cloud-controller-manager; build with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager
set -euo pipefail
mkdir -p "$2"; cd "$2"
upstream=$(cd / && go mod download -json "k8s.io/cloud-provider-openstack@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
cat > go.mod <<MOD
module openstack-ccm.example/e2e/$(basename "$PWD")

go $(sed -n 's/^go //p' "$upstream")

tool k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager

require k8s.io/cloud-provider-openstack $1
MOD
# A module's own replacements count for nobody else.
sed -n '/^replace (/,/^)/p' "$upstream" >> go.mod
go mod tidy

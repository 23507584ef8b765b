#!/usr/bin/env bash
# generate-helm-module.sh VERSION DIRECTORY: go.mod and go.sum that pin Helm; build with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o helm helm.sh/helm/v3/cmd/helm
set -euo pipefail
mkdir -p "$2"; cd "$2"
upstream=$(cd / && go mod download -json "helm.sh/helm/v3@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
cat > go.mod <<MOD
module openstack-ccm.example/charts/helm

go $(sed -n 's/^go //p' "$upstream")

tool helm.sh/helm/v3/cmd/helm

require helm.sh/helm/v3 $1
MOD
go mod tidy

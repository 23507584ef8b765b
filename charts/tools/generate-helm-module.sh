#!/usr/bin/env bash
# generate-helm-module.sh VERSION DIRECTORY: go.mod and go.sum that pin Helm; build Helm 3 with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o helm helm.sh/helm/v3/cmd/helm
set -euo pipefail
mkdir -p "$2"; cd "$2"
module=helm.sh/helm/${1%%.*}
upstream=$(cd / && go mod download -json "$module@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
cat > go.mod <<MOD
module openstack-ccm.example/charts/$(basename "$PWD")

go $(sed -n 's/^go //p' "$upstream")

tool $module/cmd/helm

require $module $1
MOD
go mod tidy

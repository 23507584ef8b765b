#!/usr/bin/env bash
# generate-pebble-module.sh VERSION DIRECTORY: go.mod and go.sum that pin Pebble; build with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' github.com/letsencrypt/pebble/v2/cmd/pebble
set -euo pipefail
mkdir -p "$2"; cd "$2"
upstream=$(cd / && go mod download -json "github.com/letsencrypt/pebble/v2@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
cat > go.mod <<MOD
module openstack-ccm.example/e2e/pebble

go $(sed -n 's/^go //p' "$upstream")

tool github.com/letsencrypt/pebble/v2/cmd/pebble

require github.com/letsencrypt/pebble/v2 $1
MOD
go mod tidy

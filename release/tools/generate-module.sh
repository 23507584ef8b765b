#!/usr/bin/env bash
# generate-module.sh MODULE VERSION PROGRAM DIRECTORY: go.mod and go.sum that pin a Go program, for example
#   generate-module.sh github.com/google/go-containerregistry v0.22.1 github.com/google/go-containerregistry/cmd/crane crane
set -euo pipefail
mkdir -p "$4"; cd "$4"
upstream=$(cd / && go mod download -json "$1@$2" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
cat > go.mod <<MOD
module openstack-ccm.example/release/$(basename "$4")

go $(sed -n 's/^go //p' "$upstream")

tool $3

require $1 $2
MOD
go mod tidy

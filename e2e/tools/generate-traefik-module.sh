#!/usr/bin/env bash
# generate-traefik-module.sh VERSION DIRECTORY: go.mod and go.sum that pin Traefik with its own forks; build with
#   CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' github.com/traefik/traefik/v3/cmd/traefik
set -euo pipefail
mkdir -p "$2"; cd "$2"
upstream=$(cd / && go mod download -json "github.com/traefik/traefik/v3@$1" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
{
  cat <<MOD
module openstack-ccm.example/e2e/traefik

go $(sed -n 's/^go //p' "$upstream")

tool github.com/traefik/traefik/v3/cmd/traefik

require github.com/traefik/traefik/v3 $1

MOD
  sed -n '/^replace (/,/^)/p' "$upstream"
  echo "replace github.com/traefik/traefik/dynamic/ext => ./ext"
} > go.mod
go mod tidy

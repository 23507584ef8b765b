module openstack-ccm.example/e2e/traefik

go 1.26.0

tool github.com/traefik/traefik/v3/cmd/traefik

require github.com/traefik/traefik/v3 v3.7.9

replace (
	github.com/abbot/go-http-auth => github.com/containous/go-http-auth v0.4.1-0.20200324110947-a37a7636d23e
	github.com/gorilla/mux => github.com/containous/mux v0.0.0-20250523120546-41b6ec3aed59
)
replace github.com/traefik/traefik/dynamic/ext => ./ext

// Package ext has the extension points of Traefik's configuration, which are empty. Traefik's own module of this name is on no proxy: it
// is a folder of its repository.
package ext

// HTTP extends the configuration of HTTP.
type HTTP struct{}

// Router extends the configuration of a router.
type Router struct{}

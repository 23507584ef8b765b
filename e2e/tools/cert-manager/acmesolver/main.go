// The program that cert-manager runs in the pods of its HTTP-01 challenges: its package for it, with the arguments that
// cert-manager writes into these pods.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

func main() {
	it := &solver.HTTP01Solver{}
	flag.IntVar(&it.ListenPort, "listen-port", 8089, "port")
	flag.StringVar(&it.Domain, "domain", "", "name that is validated")
	flag.StringVar(&it.Token, "token", "", "token of the challenge")
	flag.StringVar(&it.Key, "key", "", "answer to the challenge")
	flag.Parse()
	logf.InitLogs()
	defer logf.FlushLogs()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { it.Close() })
	if err := it.Listen(logf.Log); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

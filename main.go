// Command hookledger turns payment webhooks into correct balances, exactly once.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"hookledger/internal/cli"
	"hookledger/internal/cli/app"
)

func main() {
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	os.Exit(cli.Run(os.Args[1:], app.Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Stop: stop, Reload: reload,
	}))
}

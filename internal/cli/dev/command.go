package dev

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/devstack"
)

// options are the flags of dev.
type options struct {
	data         string
	reset        bool
	listen       string
	admin        string
	payments     string
	kafkaPort    int
	postgresPort int
	partitions   int
	noWorker     bool
}

// Command makes `hookledger dev`.
func Command(a *app.App) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, without configuration",
		Long: `Run everything on this machine, without configuration: Kafka inside this process, a local
Postgres, migrations, the topic, receiver, worker and the door for payments. Three sources are there, stripe,
standard (Standard Webhooks) and acme (a provider declared in configuration), each with a
development secret and a signed curl to paste.

Data stays in .hookledger between runs, and .hookledger/hookledger.yaml lets every other
command work beside it. Ctrl-C once drains, twice abandons; neither loses anything.`,
		Args: cobra.NoArgs,
		Example: `  hookledger dev
  hookledger dev --reset                          # forget everything first
  hookledger dev --no-worker                      # run workers beside it: hookledger consume
  hookledger dev --listen 127.0.0.1:8090 --admin 127.0.0.1:9095 --kafka-port 19092`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(a); err != nil {
				return app.Usage(err)
			}
			return run(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.data, "data", ".hookledger", "folder of all data")
	f.BoolVar(&o.reset, "reset", false, "remove all data first (the development secrets stay)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "public address of the receiver; port 0 takes a free one")
	f.StringVar(&o.payments, "payments", "127.0.0.1:8081", "address of the door for payments; port 0 takes a free one")
	f.StringVar(&o.admin, "admin", "127.0.0.1:9090", "address of health, metrics and pprof; port 0 takes a free one")
	f.IntVar(&o.kafkaPort, "kafka-port", 9092, "port of Kafka on 127.0.0.1; 0 takes a free one")
	f.IntVar(&o.postgresPort, "postgres-port", 0, "port of Postgres on 127.0.0.1; 0 takes a free one")
	f.IntVar(&o.partitions, "partitions", 12, "partitions of a new topic")
	f.BoolVar(&o.noWorker, "no-worker", false, "leave the worker out, to run hookledger consume beside it")
	return c
}

func (o *options) check(a *app.App) error {
	if a.ConfigFile != "" {
		return errors.New("dev writes a configuration of its own and takes none: leave --config out, or run the roles `ingest` and `consume`")
	}
	for _, f := range []struct {
		name string
		addr *string
	}{{"--listen", &o.listen}, {"--payments", &o.payments}, {"--admin", &o.admin}} {
		host, port, err := net.SplitHostPort(*f.addr)
		if err != nil || !isPort(port) {
			return fmt.Errorf("%s %s: write host:port, such as 127.0.0.1:8080", f.name, *f.addr)
		}
		if port == "0" { // known before the configuration is written
			free, err := devstack.FreePort()
			if err != nil {
				return err
			}
			*f.addr = net.JoinHostPort(host, strconv.Itoa(free))
		}
	}
	if o.partitions < 1 {
		return fmt.Errorf("--partitions is %d: set at least 1", o.partitions)
	}
	abs, err := filepath.Abs(o.data)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	o.data = abs
	return nil
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n < 1<<16
}

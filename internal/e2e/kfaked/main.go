package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"hookledger/internal/devstack"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kfaked:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("got %d arguments, want folder, port and advertised address", len(args))
	}
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("read port: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	k, err := devstack.StartKafka(ctx, devstack.KafkaOptions{
		Dir: args[0], Port: port, Advertise: args[2],
		BrokerConfigs: map[string]string{"group.min.session.timeout.ms": "1000"},
		Log:           func(message string) { fmt.Fprintln(os.Stderr, message) },
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return k.Stop(context.WithoutCancel(ctx))
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"hookledger/internal/testkit"
)

// The environment of a floor: what it is, and its order as JSON.
const (
	roleEnv  = "HOOKLEDGER_BENCH_ROLE"
	orderEnv = "HOOKLEDGER_BENCH_ORDER"
)

// order tells a floor what to work on.
type order struct {
	Brokers  []string
	Topic    string
	Group    string
	Database string
	Listen   string
	Workers  int
	// Instance makes a consumer a static member.
	Instance string
}

// floors are the processes beside which the product is measured.
var floors = map[string]func(context.Context, order) error{
	"accept":   bareAccept,
	"apply":    bareApply,
	"consumer": handWritten,
	"read":     bareRead,
	"lag":      bareLag,
}

func runFloor(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var o order
	err := json.Unmarshal([]byte(os.Getenv(orderEnv)), &o)
	if err == nil {
		err = floors[role](ctx, o)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "floor %s: %v\n", role, err)
		return 1
	}
	return 0
}

func (b *bench) floorEnv(role string, o order) []string {
	b.tb.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		b.tb.Fatal(err)
	}
	return []string{roleEnv + "=" + role, orderEnv + "=" + string(text)}
}

// startFloor starts a floor that runs until it is ended.
func (b *bench) startFloor(role string, o order) *testkit.KillableProcess {
	b.tb.Helper()
	opts := testkit.ProcessOptions{Program: self(), Env: b.floorEnv(role, o)}
	if o.Listen != "" {
		opts.ReadyURL = "http://" + o.Listen + "/readyz"
	}
	return testkit.StartHookledger(b.tb, opts)
}

// self is this binary.
func self() string { return os.Args[0] }

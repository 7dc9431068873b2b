package dev

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"hookledger/internal/cli/app"
)

// checkPorts tries every address before anything is started, and names all that cannot
// be used, each with the flag that changes it. Port 0 takes a free one.
func checkPorts(o options) error {
	local := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	var errs []error
	for _, p := range []struct{ what, addr, flag string }{
		{"the receiver", o.listen, "--listen"},
		{"the door for payments", o.payments, "--payments"},
		{"health and metrics", o.admin, "--admin"},
		{"Kafka", local(o.kafkaPort), "--kafka-port"},
		{"Postgres", local(o.postgresPort), "--postgres-port"},
	} {
		ln, err := net.Listen("tcp", p.addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot listen on %s: %w: stop who uses it (another `hookledger dev`?), or choose another with %s", p.what, p.addr, err, p.flag))
			continue
		}
		_ = ln.Close()
	}
	return app.Usage(errors.Join(errs...))
}

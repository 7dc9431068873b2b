package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/cli/app"
)

// TestRun_SecondSignalAbandons holds a delivery in hand: the first signal waits for it,
// the second does not.
func TestRun_SecondSignalAbandons(t *testing.T) {
	t.Parallel()
	inHand, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inHand)
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })

	stop := make(chan os.Signal)
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		done <- Run([]string{"send", "--url", server.URL}, app.Process{
			Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &errs, Stop: stop,
			Environ: []string{
				"HOOKLEDGER_KAFKA_DURABILITY=single", "HOOKLEDGER_KAFKA_REPLICATION=1",
				"HOOKLEDGER_SOURCES=[{name: s, provider: stripe, account: a, secrets: [{value: whsec_0123456789}]}]",
			},
		})
	}()
	<-inHand
	stop <- syscall.SIGINT // unbuffered: taken when this returns
	select {
	case code := <-done:
		t.Fatalf("the first signal ended the command with %d: %s", code, errs.String())
	case stop <- syscall.SIGINT:
	}
	select {
	case code := <-done:
		if code != app.ExitFailed || !strings.Contains(errs.String(), "abandoned") {
			t.Errorf("got exit code %d and %q", code, errs.String())
		}
	case <-time.After(time.Minute):
		t.Error("the second signal did not end the command")
	}
}

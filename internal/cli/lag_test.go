package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

func TestLag_BesideWorkersAndWithoutThem(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "lag").want(t, app.ExitUsage, "hookledger topics apply")
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	in.start(t, "ingest", in.ingestAdmin)
	worker := in.start(t, "consume", in.worker)
	in.run(t, "send", "--count", "50", "--seed", "1").want(t, app.ExitOK)
	lag := func() map[string]any {
		t.Helper()
		r := in.run(t, "lag", "--json")
		r.want(t, app.ExitOK)
		return jsonOf(t, r, "lag")
	}
	testkit.Eventually(t, time.Minute, func() error {
		v := lag()
		if v["records_behind"] != 0.0 || v["seconds_behind"] != 0.0 || v["drain_seconds"] != 0.0 {
			return fmt.Errorf("got %v, want nothing behind", v)
		}
		for _, p := range v["partitions"].([]any) {
			one := p.(map[string]any)
			for _, key := range []string{"partition", "log_start", "committed", "progress", "log_end", "records_behind", "seconds_behind", "member"} {
				if one[key] == nil {
					return fmt.Errorf("%s is null in %v", key, one)
				}
			}
		}
		return nil
	})

	worker.Stop(time.Minute)
	in.run(t, "send", "--count", "20", "--seed", "2").want(t, app.ExitOK)
	v := lag()
	if behind := v["seconds_behind"].(float64); v["records_behind"] != 20.0 || behind <= 0 || behind > 60 || v["drain_seconds"] != nil {
		t.Errorf("without a worker: got %v", v)
	}
	r := in.run(t, "lag")
	r.want(t, app.ExitOK)
	if !strings.Contains(r.stdout, "20 records behind") || !strings.Contains(r.stdout, "it does not get less") || !strings.Contains(r.stdout, "hookledger consume") {
		t.Errorf("got %q", r.stdout)
	}

	// As a reader; and without Postgres, whose part is then missing.
	reader := append(envAs(in.database, "hookledger_reader"), "HOOKLEDGER_CONFIG="+in.file)
	if v := jsonOf(t, hookledger(reader, "lag", "--json"), "lag"); v["records_behind"] != 20.0 {
		t.Errorf("as a reader: got %v", v)
	}
	away := []string{"HOOKLEDGER_DATABASE_URL=postgres://nobody@127.0.0.1:1/none", "HOOKLEDGER_CONFIG=" + in.file}
	r = hookledger(away, "lag", "--json")
	r.want(t, app.ExitOK, "progress is not known")
	if v := jsonOf(t, r, "lag"); v["records_behind"] != 20.0 || v["partitions"].([]any)[0].(map[string]any)["progress"] != nil {
		t.Errorf("without Postgres: got %v", v)
	}

	watch := testkit.StartHookledger(t, testkit.ProcessOptions{Args: []string{"lag", "--watch", "--every", "300ms", "--json", "--config", in.file}, Dir: in.dir})
	testkit.Eventually(t, time.Minute, func() error {
		lines := strings.Split(watch.Output(), "\n")
		if len(lines) < 4 {
			return fmt.Errorf("%d lines", len(lines))
		}
		for _, line := range lines[:3] {
			if !json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"schema":"hookledger.lag.v1"`) {
				t.Fatalf("line %q", line)
			}
		}
		return nil
	})
	if code := watch.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("watch after SIGTERM: exit code %d, want 0", code)
	}
	hookledger(nil, "lag", "--every", "1ms").want(t, app.ExitUsage, "--every")
}

package cli

import (
	"fmt"
	"strings"
	"testing"

	"hookledger/internal/cli/app"
)

func TestDoctor_SaysWhatToMendAndExits3(t *testing.T) {
	t.Parallel()
	in := install(t)
	r := in.run(t, "doctor", "--json")
	r.want(t, app.ExitFound)
	found := map[string]map[string]any{}
	out := jsonOf(t, result{app.ExitOK, r.stdout, r.stderr}, "doctor")
	for _, f := range out["findings"].([]any) {
		f := f.(map[string]any)
		found[f["check"].(string)] = f
	}
	for check, command := range map[string]string{"topic": "hookledger topics apply", "schema": "hookledger migrate up"} {
		if f := found[check]; f == nil || f["verdict"] != "problem" || !strings.Contains(fmt.Sprint(f), command) {
			t.Errorf("%s: got %v, want a problem that names `%s`", check, f, command)
		}
	}
	if out["ok"] != false || out["problems"].(float64) < 2 {
		t.Errorf("got %v", out)
	}
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	// What durability: single gives up is a choice, so nothing is left to mend.
	in.run(t, "doctor", "--all").want(t, app.ExitOK)
}

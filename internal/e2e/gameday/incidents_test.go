package gameday

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/testkit"
)

// incident is one act of the game day.
type incident struct {
	title string
	play  func(*stack)
}

// play plays one incident on a stack, as a test of its own.
func (s *stack) play(t *testing.T, n int, i incident) {
	t.Run(strings.ReplaceAll(i.title, " ", "_"), func(t *testing.T) {
		outer := s.t
		s.t = t
		defer func() { s.t = outer }()
		say("\n%d. %s\n", n, i.title)
		i.play(s)
		if t.Failed() {
			say("\n   FAILED")
		}
	})
}

// seeds are different for each use.
func (s *stack) seed() int { s.histories++; return 1000 + s.histories }

var workerDead = incident{"The worker is dead for an hour", func(s *stack) {
	s.send(s.seed(), 20)
	s.settle()
	say("   the worker is killed, and the provider goes on delivering")
	s.worker.Kill()
	s.workerDown = true
	s.awaitAlerts(func() { s.send(s.seed(), 20) }, "HookledgerNoWorker", "HookledgerSettlingFallsBehind")
	s.look("worker-dead.md", nil)
	s.do("worker-dead.md", 0, nil)
	s.prove("worker-dead.md")
	s.awaitCalm("HookledgerNoWorker", "HookledgerSettlingFallsBehind")
}}

var wrongReset = incident{"Somebody resets the group to latest", func(s *stack) {
	s.send(s.seed(), 20)
	s.settle()
	s.systemctl("stop hookledger-consume")
	s.send(s.seed(), 30)
	say("   30 events are in the topic, unread, and Kafka's own tool moves the group behind them")
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if out, err := s.kafka.Tool(ctx, testkit.ConsumerGroupCommand, "--group", s.group, "--topic", s.topic, "--reset-offsets", "--to-latest", "--execute"); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.systemctl("start hookledger-consume")
	s.awaitAlerts(func() {}, "HookledgerMattersOpen")
	s.look("reset.md", nil)
	s.do("reset.md", 0, words{"INCIDENT": s.openIncidents("progress_behind")})
	s.prove("reset.md")
	s.awaitCalm("HookledgerMattersOpen")
}}

var restoredBackup = incident{"Postgres is restored from an older copy", func(s *stack) {
	s.send(s.seed(), 30)
	s.settle()
	folder := s.column(`show data_directory`)[0]
	s.pg.Stop()
	s.run("cp", "-a", folder, folder+".copy")
	s.pg.Start()
	s.send(s.seed(), 40)
	s.settle()
	say("   40 events after the copy was made the disk dies, and the copy is put in its place")
	s.pg.Stop()
	s.pgDown = true
	s.run("rm", "-rf", folder)
	s.run("mv", folder+".copy", folder)
	s.awaitAlerts(func() {}, "HookledgerMattersUnknown")
	s.look("postgres-restored.md", nil)
	s.do("postgres-restored.md", 0, nil)
	s.awaitAlerts(func() {}, "HookledgerMattersOpen")
	s.do("postgres-restored.md", 1, words{"INCIDENT": s.openIncidents("progress_behind")})
	s.prove("postgres-restored.md")
	s.awaitCalm("HookledgerMattersUnknown", "HookledgerMattersOpen")
}}

var otherAmount = incident{"The provider sends the same event with another amount", func(s *stack) {
	s.deliver("stripe", stripeEvent("evt_twice", "user_twice", 4200))
	s.settle()
	s.deliver("stripe", stripeEvent("evt_twice", "user_twice", 4700))
	say("   evt_twice said 42.00 EUR first, and 47.00 EUR then")
	s.awaitAlerts(func() {}, "HookledgerMattersOpen")
	conflict := s.column(`select 'c' || conflict_id from event_conflicts where event_id = 'evt_twice' and resolved_at is null`)
	w := words{"CONFLICT": conflict, "EVENT_ID": {"evt_twice"}}
	s.look("conflict.md", w)
	say("   the provider confirms the second")
	s.do("conflict.md", 0, w)
	s.owe("evt_twice", "user_twice", "EUR", 4700)
	s.prove("conflict.md")
	s.awaitCalm("HookledgerMattersOpen")
}}

var mappingBug = incident{"A mapping bug is fixed, and its events are driven again", func(s *stack) {
	s.configure("customer")
	s.systemctl("restart hookledger-consume")
	say("   a release looks for the account of acme in the wrong field")
	for i := range 30 {
		id := fmt.Sprintf("acme_%d", i)
		s.deliver("acme", acmeEvent(id, "user_acme", 100+int64(i)))
		s.owe(id, "user_acme", "EUR", 100+int64(i))
	}
	s.awaitAlerts(func() {}, "HookledgerMattersOpen")
	w := words{"SOURCE": {"acme"}, "INCIDENT": s.openIncidents("quarantine_surge")}
	s.look("quarantine.md", w)
	say("   the mapping is mended")
	s.configure("user_id")
	s.do("quarantine.md", 0, w)
	s.prove("quarantine.md")
	s.awaitCalm("HookledgerMattersOpen")
}}

var truncatedTopic = incident{"Records are removed before they were applied", func(s *stack) {
	s.send(s.seed(), 20)
	s.settle()
	s.systemctl("stop hookledger-consume")
	var export strings.Builder
	for i := range 24 {
		id := fmt.Sprintf("evt_removed_%d", i)
		body := stripeEvent(id, "user_removed", 1000+int64(i))
		s.deliver("stripe", body)
		s.owe(id, "user_removed", "EUR", 1000+int64(i))
		export.WriteString(body + "\n")
	}
	say("   24 accepted events are removed from the topic while no worker runs")
	adm := kadm.NewClient(s.kafka.Client())
	ends, err := adm.ListEndOffsets(s.t.Context(), s.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var below kadm.Offsets
	ends.Each(func(o kadm.ListedOffset) { below.AddOffset(o.Topic, o.Partition, o.Offset, -1) })
	if gone, err := adm.DeleteRecords(s.t.Context(), below); err != nil || gone.Error() != nil {
		s.t.Fatalf("%v, %v", err, gone.Error())
	}
	s.systemctl("start hookledger-consume")
	s.awaitAlerts(func() {}, "HookledgerMoneyMayBeLost")
	w := words{"FILE": {s.write("export.jsonl", export.String())}, "SOURCE": {"stripe"}, "INCIDENT": s.openIncidents("expired")}
	s.look("lost-records.md", w)
	say("   the provider's listing of that time has them")
	s.do("lost-records.md", 0, w)
	s.prove("lost-records.md")
	s.awaitCalm("HookledgerMoneyMayBeLost")
}}

var brokerLost = incident{"The broker is lost", func(s *stack) {
	s.send(s.seed(), 20)
	s.settle()
	say("   the broker is killed; deliveries are answered 503, and the provider will repeat them")
	s.kafka.Kill(0)
	s.kafkaDown = true
	again := s.seed()
	s.awaitAlerts(func() { s.send(again, 4) }, "HookledgerBrokerRefuses")
	s.look("broker-lost.md", nil)
	s.do("broker-lost.md", 0, nil)
	say("   the provider repeats what was not answered")
	s.send(again, 4)
	s.prove("broker-lost.md")
	s.awaitCalm("HookledgerBrokerRefuses")
}}

var duplicateSurge = incident{"The provider repeats itself", func(s *stack) {
	again := s.seed()
	s.send(again, 60)
	s.settle()
	say("   its load balancer loses our answers, so the provider delivers 60 events again and again")
	s.awaitAlerts(func() { s.send(again, 60) }, "HookledgerDuplicateSurge")
	s.look("duplicates.md", nil)
	s.do("duplicates.md", 0, nil)
	s.prove("duplicates.md")
	s.awaitCalm("HookledgerDuplicateSurge")
}}

// run runs a program of the machine.
func (s *stack) run(name string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %v: %v: %s", filepath.Base(name), args, err, out)
	}
}

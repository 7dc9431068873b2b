package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/ingest/payments"
	"hookledger/internal/config"
	"hookledger/internal/testkit"
	"hookledger/schema/provider"
)

// root is the top of the module, seen from here.
const root = ".."

const (
	stripeSecret = "whsec_compose_0123456789abcdef"
	shopToken    = "compose-token-0123456789abcdef"
)

// project is docker-compose.yml as the compose project's own code reads it.
func project(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: types.Mapping{
			"STRIPE_WEBHOOK_SECRET": stripeSecret, "SHOP_TOKEN": shopToken,
			"POSTGRES_PASSWORD": "postgres-canary", "CONSUME_PASSWORD": "consume-canary", "PAYMENTS_PASSWORD": "payments-canary",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isOurs(s types.ServiceConfig) bool { return s.Build != nil }

// isJob tells a service that ends from one that stays.
func isJob(p *types.Project, name string) bool {
	for _, s := range p.Services {
		if d, ok := s.DependsOn[name]; ok && d.Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// A version with all its parts, so that the same file starts the same program next year.
var pinned = regexp.MustCompile(`^[a-z/]+:\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?$`)

func TestCompose_ImagesArePinnedAndServicesWatched(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, want := range []string{"kafka", "postgres", "migrate", "roles", "topics", "ingest", "consume", "payments"} {
		if _, err := p.GetService(want); err != nil {
			t.Errorf("there is no service %s", want)
		}
	}
	for _, s := range p.Services {
		if !isOurs(s) && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s has no whole version", s.Name, s.Image)
		}
		if isOurs(s) && (!s.ReadOnly || s.User != "65532:65532" || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.SecurityOpt) == 0) {
			t.Errorf("%s: it may write to its root, is root, or has capabilities", s.Name)
		}
		if !isJob(p, s.Name) && (s.HealthCheck == nil || s.HealthCheck.Disable || len(s.HealthCheck.Test) == 0 || s.Restart != "unless-stopped") {
			t.Errorf("%s stays, and nothing checks its health or starts it again", s.Name)
		}
		for name, d := range s.DependsOn {
			if !isJob(p, name) && d.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s depends on %s, whether that is healthy or not", s.Name, name)
			}
		}
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeVolume:
				if _, ok := p.Volumes[v.Source]; !ok {
					t.Errorf("%s: volume %s is not declared", s.Name, v.Source)
				}
			case types.VolumeTypeBind:
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s: %s does not exist here, or may be written to: %v", s.Name, v.Source, err)
				}
			}
		}
		public := map[string]string{"ingest": "", "payments": "127.0.0.1"}
		if host, ok := public[s.Name]; len(s.Ports) > 0 != ok || ok && s.Ports[0].HostIP != host {
			t.Errorf("%s publishes %v; the receiver alone is public, and tokens stay on this machine", s.Name, s.Ports)
		}
	}
	for _, data := range []struct{ service, target string }{{"kafka", "/var/lib/kafka/data"}, {"postgres", "/var/lib/postgresql"}} {
		if s := p.Services[data.service]; !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Target == data.target && v.Type == types.VolumeTypeVolume
		}) {
			t.Errorf("%s does not keep %s in a volume", data.service, data.target)
		}
	}
}

// settings loads the configuration of a service as its container would.
func settings(t *testing.T, s types.ServiceConfig) *config.Loaded {
	t.Helper()
	var environ []string
	for name, value := range s.Environment {
		if name == config.EnvFile {
			at := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == *value })
			if at < 0 {
				t.Fatalf("%s: nothing is mounted at %s, which %s names", s.Name, *value, name)
			}
			value = &s.Volumes[at].Source
		}
		environ = append(environ, name+"="+*value)
	}
	// An HOOKLEDGER_ variable that is no setting is refused here.
	l, err := config.Load("", environ)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return l
}

func TestCompose_SetsWhatTheProgramReads(t *testing.T) {
	t.Parallel()
	p := project(t)
	known := []string{config.EnvFile}
	for _, k := range config.Keys() {
		known = append(known, k.Env)
	}
	for _, s := range p.Services {
		if !isOurs(s) {
			continue
		}
		l := settings(t, s)
		for name := range s.Environment {
			isSecret := slices.ContainsFunc(l.Sources, func(src provider.Config) bool { return src.Secrets[0].Env == name }) ||
				slices.ContainsFunc(l.Payments.Tokens, func(token payments.Token) bool { return token.Env == name && s.Name == "payments" })
			if !slices.Contains(known, name) && !isSecret {
				t.Errorf("%s: nothing reads %s", s.Name, name)
			}
		}
		for _, src := range l.Sources {
			for _, secret := range src.Secrets {
				if secret.Env != "" && s.Environment[secret.Env] == nil {
					t.Errorf("%s: %s, which source %s wants, is not set", s.Name, secret.Env, src.Name)
				}
			}
		}
		user := map[string]string{"migrate": "hookledger", "consume": "hookledger-consume", "payments": "hookledger-payments"}[s.Name]
		if u, err := url.Parse(l.Database.URL); err != nil || u.User.Username() != user {
			t.Errorf("%s: is %q in the database, want %q", s.Name, u.User.Username(), user)
		}
		for _, b := range l.Kafka.Brokers {
			host, port, _ := strings.Cut(b, ":")
			if advertised := p.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"]; host != "kafka" || !strings.HasSuffix(*advertised, "//kafka:"+port) {
				t.Errorf("%s: broker %s is not the one that is there: %s", s.Name, b, *advertised)
			}
		}
		for _, port := range s.Ports {
			listens := map[string]string{"ingest": l.Ingest.Listen, "payments": l.Payments.Listen}[s.Name]
			if want := fmt.Sprint(":", port.Target); listens != want || port.Published != fmt.Sprint(port.Target) {
				t.Errorf("%s publishes %s as %d and listens on %s", s.Name, port.Published, port.Target, listens)
			}
		}
	}
}

// TestCompose_CommandsOfTheImageWork runs each service's command line, and its health
// check, with the settings of the file; only addresses are those of this machine.
func TestCompose_CommandsOfTheImageWork(t *testing.T) {
	t.Parallel()
	p := project(t)
	entrypoint := instruction(t, "ENTRYPOINT")
	if entrypoint != `["/hookledger"]` {
		t.Fatalf("got ENTRYPOINT %s, want the program", entrypoint)
	}
	cluster := testkit.NewPostgres(t)
	kafka := testkit.Kafka1(t)
	listen, adminIngest, adminConsume := testkit.FreeAddr(t), testkit.FreeAddr(t), testkit.FreeAddr(t)
	listenPayments, adminPayments := testkit.FreeAddr(t), testkit.FreeAddr(t)
	// address makes a URL of the file lead to the Postgres of this machine.
	address := func(text string) string {
		ours, err := url.Parse(cluster.URL("postgres"))
		u, err2 := url.Parse(text)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		u.Host, u.RawQuery = ours.Host, ours.RawQuery
		return u.String()
	}
	administrate(t, cluster.URL("postgres"), `create role hookledger superuser login password 'postgres-canary'`, `create database hookledger owner hookledger`)
	env := func(s types.ServiceConfig) []string {
		var all []string
		for name, value := range s.Environment {
			if name == config.EnvFile {
				value = &s.Volumes[0].Source
			}
			if name == "HOOKLEDGER_DATABASE_URL" {
				here := address(*value)
				value = &here
			}
			all = append(all, name+"="+*value)
		}
		return append(all, "HOOKLEDGER_KAFKA_BROKERS="+kafka.Brokers()[0], "HOOKLEDGER_INGEST_LISTEN="+listen,
			"HOOKLEDGER_INGEST_ADMIN="+adminIngest, "HOOKLEDGER_CONSUME_ADMIN="+adminConsume,
			"HOOKLEDGER_PAYMENTS_LISTEN="+listenPayments, "HOOKLEDGER_PAYMENTS_ADMIN="+adminPayments)
	}
	program := testkit.Binary(t) // which takes its time to build
	run := func(s types.ServiceConfig, args []string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env = t.TempDir(), env(s) // nothing else, as in the container
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	for _, job := range []string{"migrate", "topics"} {
		for range 2 { // a second `up` runs them again
			if out, err := run(p.Services[job], p.Services[job].Command); err != nil {
				t.Fatalf("%s: %v\n%s", job, err, out)
			}
		}
	}
	for range 2 {
		psql(t, p.Services["roles"], cluster.URL("hookledger"))
	}
	for _, role := range []string{"ingest", "consume", "payments"} {
		s := p.Services[role]
		health := s.HealthCheck.Test
		if health[0] != "CMD" || health[1] != "/hookledger" {
			t.Fatalf("%s: the health check is %v; there is no shell in the image", role, health)
		}
		if out, err := run(s, health[2:]); err == nil {
			t.Errorf("%s is healthy before it runs: %s", role, out)
		}
		proc := testkit.StartHookledger(t, testkit.ProcessOptions{Args: s.Command, Env: env(s)})
		testkit.Eventually(t, time.Minute, func() error {
			_, err := run(s, health[2:])
			return err
		})
		defer func() {
			if code := proc.Stop(time.Duration(*s.StopGracePeriod)); code != 0 {
				t.Errorf("%s after SIGTERM: got exit code %d, want 0", role, code)
			}
		}()
	}
	if out, err := run(p.Services["ingest"], []string{"send", "--source", "stripe", "--count", "5"}); err != nil {
		t.Errorf("send: %v\n%s", err, out)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listenPayments+"/v1/payments",
		strings.NewReader(`{"from":"shop:1","to":"user_1","amount":1,"currency":"EUR","reference":"r"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Authorization": {"Bearer " + shopToken}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusPaymentRequired { // the account is empty, and the answer kept
		t.Errorf("a payment: got %d, want 402", res.StatusCode)
	}
}

// psql runs the job of that name, with the psql of this machine, on a database.
func psql(t *testing.T, s types.ServiceConfig, database string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	args := slices.Clone(s.Command)
	for i := range args {
		args[i] = strings.Replace(args[i], s.Volumes[0].Target, s.Volumes[0].Source, 1)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range s.Environment {
		v := *value
		switch name {
		case "PGHOST":
			v = u.Hostname()
		case "PGUSER":
			v = u.User.Username()
		case "PGPASSWORD":
			v = password
		}
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	cmd.Env = append(cmd.Env, "PGPORT="+u.Port())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
}

func administrate(t *testing.T, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// The image writes KAFKA_A_B into its configuration as a.b. Those must be settings of
// Kafka, and Kafka itself must take them.
func TestCompose_BrokerSettingsAreKafkas(t *testing.T) {
	t.Parallel()
	described, err := kadm.NewClient(testkit.Kafka(t).Client()).DescribeBrokerConfigs(t.Context(), 1)
	if err != nil || len(described) != 1 || described[0].Err != nil {
		t.Fatalf("describe a broker: %v", err)
	}
	var known []string
	for _, c := range described[0].Configs {
		known = append(known, c.Key)
	}
	env := project(t).Services["kafka"].Environment
	var properties strings.Builder
	for name, value := range env {
		key, ok := strings.CutPrefix(name, "KAFKA_")
		if !ok {
			continue
		}
		key = strings.ToLower(strings.ReplaceAll(key, "_", "."))
		if !slices.Contains(known, key) {
			t.Errorf("%s: Kafka has no setting %s", name, key)
		}
		if key == "log.dirs" {
			dir := t.TempDir()
			value = &dir
		}
		fmt.Fprintf(&properties, "%s=%s\n", key, *value)
	}
	file := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(file, []byte(properties.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	format := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(root, ".cache", "kafka", "*"), "kafka.tools.StorageTool", "format", "-t", *env["CLUSTER_ID"], "-c", file)
	if out, err := format.CombinedOutput(); err != nil {
		t.Errorf("Kafka does not take these settings: %v\n%s", err, out)
	}
}

// instruction returns the last of its kind in the Dockerfile.
func instruction(t *testing.T, name string) string {
	t.Helper()
	found := ""
	for line := range strings.Lines(read(t, filepath.Join(root, "Dockerfile"))) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			found = strings.TrimSpace(rest)
		}
	}
	if found == "" {
		t.Fatalf("the Dockerfile has no %s", name)
	}
	return found
}

func TestDockerfile_IsStaticAndNotRoot(t *testing.T) {
	t.Parallel()
	file := read(t, filepath.Join(root, "Dockerfile"))
	if got := instruction(t, "FROM"); got != "scratch" {
		t.Errorf("the image is made from %s, want scratch: no shell", got)
	}
	if got := instruction(t, "USER"); got != "65532:65532" {
		t.Errorf("got USER %s", got)
	}
	wanted := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))[1]
	if !strings.Contains(file, "FROM golang:"+wanted+"-") {
		t.Errorf("the image is built with another Go than go.mod's %s", wanted)
	}
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-X hookledger/internal/observe.Version="} {
		if !strings.Contains(file, flag) || !strings.Contains(read(t, filepath.Join(root, "Makefile")), flag) {
			t.Errorf("%s is not in both Dockerfile and Makefile", flag)
		}
	}
}

// What every unit must have; systemd ignores what it does not know, so names count.
var hardening = []string{
	"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes",
	"ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectControlGroups=yes", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
	"RestrictNamespaces=yes", "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "CapabilityBoundingSet=", "SystemCallFilter=@system-service",
	"RestartPreventExitStatus=2", "Restart=always",
}

func TestSystemd_UnitsAreHardenedAndRunOurCommands(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"ingest", "consume", "payments"} {
		unit := read(t, "systemd/hookledger-"+role+".service")
		lines := strings.Split(unit, "\n")
		for _, want := range append(hardening, "ExecStart=/usr/local/bin/hookledger "+role) {
			if !slices.Contains(lines, want) {
				t.Errorf("unit of %s: %s is missing", role, want)
			}
		}
		for name := range strings.FieldsFuncSeq(unit, func(r rune) bool { return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", r) }) {
			if strings.HasPrefix(name, config.EnvPrefix) && name != config.EnvFile {
				t.Errorf("unit of %s sets %s", role, name)
			}
		}
	}
}

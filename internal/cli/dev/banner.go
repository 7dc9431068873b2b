package dev

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hookledger/ingest/signature"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/schema/provider"
)

// banner is what a running dev tells, also as JSON.
type banner struct {
	Ready        bool           `json:"ready"`
	ReadySeconds float64        `json:"ready_seconds"`
	URL          string         `json:"url"`
	Admin        string         `json:"admin"`
	Brokers      []string       `json:"brokers"`
	DatabaseURL  string         `json:"database_url"`
	Config       string         `json:"config"`
	Data         string         `json:"data"`
	PostgresData string         `json:"postgres_data"`
	Sources      []bannerSource `json:"sources"`
	Payments     bannerPayments `json:"payments"`
}

type bannerPayments struct {
	URL    string `json:"url"`
	Client string `json:"client"`
	Token  string `json:"token"`
	// Curl is for a shell. Its key is new each time it is run.
	Curl string `json:"curl"`
}

// newBannerPayments makes a curl that gives 1.00 of what the webhooks' curl brought.
func newBannerPayments(f folder, url string) (bannerPayments, error) {
	text, err := os.ReadFile(f.secret(paymentsToken))
	if err != nil {
		return bannerPayments{}, fmt.Errorf("read development token: %w", err)
	}
	p := bannerPayments{URL: url + "/v1/payments", Client: "dev", Token: strings.TrimSuffix(string(text), "\n")}
	p.Curl = fmt.Sprintf(`curl -sS -i %s \
  -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
  -H "Idempotency-Key: $(date +%%s)-$$-$RANDOM" \
  -d '{"from":"user_1","to":"user_2","amount":100,"currency":"EUR","reference":"from a shell"}'
`, p.URL, p.Token)
	return p, nil
}

type bannerSource struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	URL      string `json:"url"`
	Secret   string `json:"secret"`
	// Curl is for a shell: it computes time, event ID and signature when it is run.
	Curl string `json:"curl"`
}

func printBanner(a *app.App, cfg *config.Loaded, o options, p *parts, r *running, took time.Duration) error {
	b := banner{
		Ready: true, ReadySeconds: took.Seconds(),
		URL: "http://" + r.server.Addr().String(), Admin: "http://" + r.admin.Addr().String(),
		Brokers: p.kafka.Brokers(), DatabaseURL: cfg.Database.URL, Config: cfg.File, Data: o.data, PostgresData: p.postgres.Dir(),
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return err
	}
	for _, source := range set.All() {
		s, err := newBannerSource(folder{o.data}, source, b.URL)
		if err != nil {
			return err
		}
		b.Sources = append(b.Sources, s)
	}
	if b.Payments, err = newBannerPayments(folder{o.data}, "http://"+r.door.Addr().String()); err != nil {
		return err
	}
	return a.Print("dev", b, func(w io.Writer) error { return b.write(w) })
}

// bannerFact is what each curl tells: a payment of 12.50 to user_1.
func bannerFact(now time.Time) provider.Fact {
	return provider.Fact{
		EventID: signature.IDPlaceholder, Movement: "mv_" + signature.IDPlaceholder,
		Account: "user_1", Amount: 1250, Currency: "EUR", OccurredAt: now.UTC().Truncate(time.Second), Live: false,
	}
}

func newBannerSource(f folder, source *provider.Source, url string) (bannerSource, error) {
	text, err := os.ReadFile(f.secret(source.Name()))
	if err != nil {
		return bannerSource{}, fmt.Errorf("read development secret: %w", err)
	}
	secret := strings.TrimSuffix(string(text), "\n")
	d, err := source.Compose(bannerFact(time.Now()))
	if err != nil {
		return bannerSource{}, err
	}
	s := bannerSource{Name: source.Name(), Provider: source.Provider(), URL: url + "/webhooks/" + source.Name(), Secret: secret}
	s.Curl, err = signature.Snippet(source.Signature(), provider.Secret(secret), s.URL, d.Header, d.Body)
	return s, err
}

func (b *banner) write(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "\nhookledger is ready, after %.1f s\n\n", b.ReadySeconds)
	for _, line := range [][2]string{
		{"webhooks", b.URL + "/webhooks/{source}"},
		{"payments", b.Payments.URL},
		{"health", b.Admin + "/readyz  /livez  /metrics"},
		{"Kafka", strings.Join(b.Brokers, ", ")},
		{"Postgres", b.DatabaseURL},
		{"data", b.dataPlaces()},
	} {
		fmt.Fprintf(&t, "  %-10s%s\n", line[0], line[1])
	}
	t.WriteString("\nSources, for development. Paste a command as often as you like: each run is a new event\nof 12.50 EUR to user_1, signed when it runs.\n")
	for _, s := range b.Sources {
		fmt.Fprintf(&t, "\n%s (%s), secret %s\n\n%s", s.Name, s.Provider, s.Secret, s.Curl)
	}
	fmt.Fprintf(&t, "\nPayments, as client %s: 1.00 EUR from user_1 to user_2, once for each key.\n\n%s", b.Payments.Client, b.Payments.Curl)
	t.WriteString("\nThen, in another terminal in this folder:\n\n")
	for _, line := range [][2]string{
		{"accounts list", "the balances"},
		{"verify", "the proof that they are right"},
		{"send --source stripe --count 1000 --duplicates 0.2", "a thousand payments, some twice"},
		{"events list", "what became of each"},
	} {
		fmt.Fprintf(&t, "  %-64s # %s\n", b.command(line[0]), line[1])
	}
	t.WriteString("\nCtrl-C stops in good order, twice at once; the data stays. --reset begins anew.\n")
	_, err := io.WriteString(w, t.String())
	return err
}

func (b *banner) dataPlaces() string {
	if inside := filepath.Join(b.Data, "postgres"); b.PostgresData == inside {
		return b.Data
	}
	return b.Data + ", Postgres in " + b.PostgresData + " (it does not run as root)"
}

// command is a command line that works beside this dev, from its folder.
func (b *banner) command(args string) string {
	line := os.Args[0] + " " + args
	if here, err := filepath.Abs(config.DevFile); err != nil || here != b.Config {
		line += " --config " + b.Config
	}
	return line
}

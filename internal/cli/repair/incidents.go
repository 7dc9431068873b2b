package repair

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ledger"
)

// Incidents makes `hookledger incidents`.
func Incidents(a *app.App) *cobra.Command {
	return app.Group("incidents", "List what a person must see, and say that it was seen", incidentsList(a), incidentsAck(a))
}

// incident is a row of incidents in JSON.
type incident struct {
	IncidentID         int64           `json:"incident_id"`
	Severity           string          `json:"severity"`
	Kind               string          `json:"kind"`
	Topic              *string         `json:"topic"`
	Partition          *int32          `json:"partition"`
	FromOffset         *int64          `json:"from_offset"`
	ToOffset           *int64          `json:"to_offset"`
	Detail             json.RawMessage `json:"detail"`
	RaisedAt           *string         `json:"raised_at"`
	AcknowledgedAt     *string         `json:"acknowledged_at"`
	AcknowledgedBy     *string         `json:"acknowledged_by"`
	AcknowledgedReason *string         `json:"acknowledged_reason"`
}

func newIncident(i ledger.Incident) incident {
	return incident{
		IncidentID: i.ID, Severity: string(i.Severity), Kind: i.Kind, Topic: filled(i.Topic), Partition: i.Partition,
		FromOffset: i.From, ToOffset: i.To, Detail: i.Detail, RaisedAt: console.JSONTime(i.RaisedAt),
		AcknowledgedAt: console.JSONTime(i.AcknowledgedAt), AcknowledgedBy: filled(i.AcknowledgedBy),
		AcknowledgedReason: filled(i.AcknowledgedReason),
	}
}

// filled is s, or nil, null in JSON, if it is empty.
func filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func incidentsList(a *app.App) *cobra.Command {
	var open bool
	var severity string
	c := &cobra.Command{
		Use:   "list",
		Short: "List incidents, newest first",
		Long: `List incidents, newest first: jumps of positions, losses, waiting partitions, resets.
An info tells what happened; a warning wants to be looked at, a loss to be dealt with.
Needs the rights of hookledger_reader.`,
		Args: cobra.NoArgs,
		Example: `  hookledger incidents list --open
  hookledger incidents list --open --severity loss
  hookledger incidents list --json | jq '.incidents[] | select(.acknowledged_at == null)'`,
		RunE: func(c *cobra.Command, _ []string) error {
			severities := []string{string(ledger.Info), string(ledger.Warning), string(ledger.Loss)}
			if severity != "" && !slices.Contains(severities, severity) {
				return app.Usage(fmt.Errorf("--severity %s: use one of info, warning, loss", severity))
			}
			out := struct {
				Incidents []incident `json:"incidents"`
			}{[]incident{}}
			err := withDatabase(c.Context(), a, "incidents", func(ctx context.Context, pool *pgxpool.Pool) error {
				list, err := ledger.ListIncidents(ctx, pool, open)
				for _, i := range list {
					if severity == "" || string(i.Severity) == severity {
						out.Incidents = append(out.Incidents, newIncident(i))
					}
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("incidents-list", out, func(w io.Writer) error { return printIncidents(w, out.Incidents) })
		},
	}
	c.Flags().BoolVar(&open, "open", false, "only those that nobody acknowledged")
	c.Flags().StringVar(&severity, "severity", "", "only this severity: info, warning, loss")
	return c
}

func printIncidents(w io.Writer, list []incident) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	t := console.NewTable("incident>", "severity", "kind", "where", "raised", "acknowledged", "detail")
	for _, i := range list {
		seen := "-"
		if i.AcknowledgedBy != nil {
			seen = "by " + *i.AcknowledgedBy
			if i.AcknowledgedReason != nil {
				seen += ": " + *i.AcknowledgedReason
			}
		}
		t.Row(strconv.FormatInt(i.IncidentID, 10), i.Severity, i.Kind, i.where(), console.ShortTime(i.RaisedAt), seen, i.words())
	}
	return t.Write(w)
}

// where is the topic, partition and range of offsets.
func (i *incident) where() string {
	s := ""
	if i.Topic != nil {
		s = *i.Topic
	}
	if i.Partition != nil {
		s += "/" + strconv.Itoa(int(*i.Partition))
	}
	if i.FromOffset != nil {
		s += "@" + strconv.FormatInt(*i.FromOffset, 10)
		if i.ToOffset != nil && *i.ToOffset != *i.FromOffset+1 {
			s += "…" + strconv.FormatInt(*i.ToOffset, 10)
		}
	}
	if s == "" {
		return "-"
	}
	return s
}

// maxDetail is how much of a detail a table shows; JSON has all of it.
const maxDetail = 120

func (i *incident) words() string {
	var b bytes.Buffer
	if json.Compact(&b, i.Detail) != nil || b.String() == "{}" {
		return "-"
	}
	if s := []rune(b.String()); len(s) > maxDetail {
		return string(s[:maxDetail]) + "…"
	}
	return b.String()
}

// ackAnswer is hookledger.incidents-ack.v1.
type ackAnswer struct {
	// Acknowledged are those that this command acknowledged, Before those that were.
	Acknowledged []int64 `json:"acknowledged"`
	Before       []int64 `json:"acknowledged_before"`
	DryRun       bool    `json:"dry_run"`
}

func incidentsAck(a *app.App) *cobra.Command {
	var signed app.Signed
	var dryRun bool
	c := &cobra.Command{
		Use:   "ack INCIDENT_ID...",
		Short: "Say that incidents were seen and dealt with",
		Long: `Say that incidents were seen and dealt with. Who and why stays on record; the first
acknowledgement stands. A partition that waits because its topic was created again
(topic_recreated) goes on within seconds: its worker asks. A loss that is acknowledged
no longer fails ` + "`hookledger verify`" + `. Needs the rights of hookledger_operator.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  hookledger incidents ack 7 --reason "topic was recreated on purpose, ticket 123"
  hookledger incidents ack 7 8 9 --by alice --reason "retention was too short; raised to 30 days"`,
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return app.Usage(err)
			}
			if err := signed.Complete(dryRun); err != nil {
				return err
			}
			out := ackAnswer{Acknowledged: []int64{}, Before: []int64{}, DryRun: dryRun}
			err = withDatabase(c.Context(), a, "incidents", func(ctx context.Context, pool *pgxpool.Pool) error {
				return acknowledge(ctx, pool, ids, signed, &out)
			})
			if err != nil {
				return err
			}
			return a.Print("incidents-ack", out, func(w io.Writer) error { return printAck(w, out) })
		},
	}
	signed.Flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be acknowledged, change nothing")
	return c
}

// acknowledge looks at all of ids before it writes any: a wrong one changes nothing.
func acknowledge(ctx context.Context, pool *pgxpool.Pool, ids []int64, signed app.Signed, out *ackAnswer) error {
	all, err := ledger.ListIncidents(ctx, pool, false)
	if err != nil {
		return err
	}
	known := make(map[int64]ledger.Incident, len(all))
	for _, i := range all {
		known[i.ID] = i
	}
	for _, id := range ids {
		if _, ok := known[id]; !ok {
			return fmt.Errorf("acknowledge incident %d: %w: see `hookledger incidents list`", id, ledger.ErrNoIncident)
		}
	}
	for _, id := range ids {
		first := known[id].AcknowledgedAt.IsZero()
		if !out.DryRun {
			if first, err = ledger.AcknowledgeIncident(ctx, pool, id, signed.By, signed.Reason); err != nil {
				return err
			}
		}
		if first {
			out.Acknowledged = append(out.Acknowledged, id)
		} else {
			out.Before = append(out.Before, id)
		}
	}
	return nil
}

func printAck(w io.Writer, out ackAnswer) error {
	verb := "acknowledged"
	if out.DryRun {
		verb = "would be acknowledged"
	}
	for _, id := range out.Acknowledged {
		if _, err := fmt.Fprintf(w, "incident %d %s\n", id, verb); err != nil {
			return err
		}
	}
	for _, id := range out.Before {
		if _, err := fmt.Fprintf(w, "incident %d was acknowledged before: that stands\n", id); err != nil {
			return err
		}
	}
	return nil
}

// parseIDs reads positive numbers, each once.
func parseIDs(args []string) ([]int64, error) {
	var ids []int64
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id <= 0 {
			return nil, fmt.Errorf("%s is no incident ID: `hookledger incidents list` shows them", strconv.Quote(arg))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// withDatabase runs f with a pool of command.
func withDatabase(ctx context.Context, a *app.App, command string, f func(context.Context, *pgxpool.Pool) error) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	pool, err := a.OpenDatabase(ctx, cfg, command)
	if err != nil {
		return err
	}
	defer pool.Close()
	return app.RightsError(f(ctx, pool))
}

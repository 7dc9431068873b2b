package lag

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ops"
)

func printLag(w io.Writer, cfg *config.Loaded, l ops.Lag, watch bool) error {
	if watch {
		if _, err := fmt.Fprintln(w, console.Time(time.Now())); err != nil {
			return err
		}
	}
	t := console.NewTable("partition>", "log start>", "committed>", "progress>", "log end>", "records behind>", "behind>", "member")
	for _, p := range l.Partitions {
		member := "-"
		if p.Member != nil {
			member = *p.Member
		}
		t.Row(strconv.Itoa(int(p.Partition)), number(&p.LogStart), number(p.Committed), number(p.Progress), number(&p.LogEnd),
			number(&p.RecordsBehind), age(p.SecondsBehind), member)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", summary(&l)); err != nil {
		return err
	}
	if len(l.Members) == 0 {
		_, err := fmt.Fprintf(w, "group %s has no members: nobody works; start `hookledger consume`\n", console.Safe(cfg.Kafka.Group))
		return err
	}
	members := console.NewTable("member", "client", "host", "partitions")
	for _, m := range l.Members {
		list := make([]string, len(m.Partitions))
		for i, p := range m.Partitions {
			list[i] = strconv.Itoa(int(p))
		}
		members.Row(m.MemberID, m.ClientID, m.Host, strings.Join(list, ","))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return members.Write(w)
}

// summary says the whole in a line.
func summary(l *ops.Lag) string {
	s := fmt.Sprintf("%d records behind, %s", l.RecordsBehind, age(l.SecondsBehind))
	if l.RecordsPerSecond != nil && l.ArrivingPerSecond != nil {
		s += fmt.Sprintf("; %.1f records/s applied, %.1f arriving", *l.RecordsPerSecond, *l.ArrivingPerSecond)
	}
	switch {
	case l.DrainSeconds == nil && l.RecordsPerSecond != nil:
		s += "; it does not get less"
	case l.DrainSeconds != nil && *l.DrainSeconds > 0:
		s += "; nothing behind in about " + age(l.DrainSeconds)
	}
	return s
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// age is a number of seconds as people say it.
func age(seconds *float64) string {
	if seconds == nil {
		return "?"
	}
	d := time.Duration(*seconds * float64(time.Second))
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	} else {
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}

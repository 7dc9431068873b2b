package app

import (
	"errors"
	"fmt"
	"os/user"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Operator is the name of who runs the command, as the system knows it.
func Operator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

// Signed is what every command that repairs asks for: why, and who says so.
type Signed struct {
	Reason, By string
}

// Flags adds --reason and --by to c.
func (s *Signed) Flags(c *cobra.Command) {
	c.Flags().StringVar(&s.Reason, "reason", "", "why, for whoever reads it later")
	c.Flags().StringVar(&s.By, "by", "", "who (default: the user of this system)")
}

// Complete takes the system's user for a By that is not set, and refuses an empty
// reason unless nothing will be written, and bytes that are no text.
func (s *Signed) Complete(dryRun bool) error {
	s.Reason = strings.TrimSpace(s.Reason)
	if s.Reason == "" && !dryRun {
		return Usage(errors.New("--reason is needed: it stays on record (or look first with --dry-run)"))
	}
	if s.By = strings.TrimSpace(s.By); s.By == "" {
		s.By = Operator()
	}
	if !utf8.ValidString(s.Reason + s.By) {
		return Usage(errors.New("--reason and --by are text: they are not UTF-8"))
	}
	return nil
}

// RightsError says which role is missing, if Postgres refused for want of one, or that it
// takes no writes.
func RightsError(err error) error {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.SQLState() {
	case "42501": // insufficient privilege
		return fmt.Errorf("%w: grant the user of database.url hookledger_operator to repair, hookledger_reader to look", err)
	case "25006": // read-only transaction
		return fmt.Errorf("%w: this is a standby, or set to be read alone: database.url must lead to the primary", err)
	}
	return err
}

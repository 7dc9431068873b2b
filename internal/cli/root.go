package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/books"
	"hookledger/internal/cli/console"
	"hookledger/internal/cli/dev"
	"hookledger/internal/cli/doctor"
	"hookledger/internal/cli/lag"
	"hookledger/internal/cli/repair"
	"hookledger/internal/cli/replay"
	"hookledger/internal/cli/roles"
	"hookledger/internal/cli/sender"
	"hookledger/internal/cli/setup"
	"hookledger/internal/cli/sources"
)

// Run runs the command that args name and returns the exit code. The first signal to
// stop cancels the command's work, which then drains; at the second Run returns
// without waiting, and the caller exits.
func Run(args []string, process app.Process) int {
	a := &app.App{Process: process}
	root := newRoot(a)
	root.SetArgs(args)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }() // ends with the command, or with the process
	stopping := false
	for {
		select {
		case err := <-done:
			report(a, err)
			return app.ExitCode(err)
		case <-process.Stop:
			if stopping {
				a.Say("hookledger: abandoned: work in hand was not finished; it is safe, and will be repeated")
				return app.ExitFailed
			}
			stopping = true
			cancel()
		}
	}
}

// report prints an error once, each line fit for a terminal.
func report(a *app.App, err error) {
	if err == nil || errors.Is(err, app.ErrFound) {
		return
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	if away(err) {
		text += ": is it up, and are the addresses right? `hookledger doctor` looks at brokers and database"
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = console.Safe(line)
	}
	a.Say("hookledger: %s", strings.Join(lines, "\n"))
}

// away tells whether a broker or Postgres could not be asked, or gave no answer.
func away(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op != "listen"
}

// Groups of commands in the order of a newcomer's day.
const (
	groupRun   = "run"
	groupSetup = "setup"
	groupLook  = "look"
	groupMend  = "mend"
)

func newRoot(a *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "hookledger",
		Short: "Payment webhooks in, correct balances out, exactly once",
		Long: `Payment webhooks in, correct balances out, exactly once, and able to prove it.

Start with ` + "`hookledger dev`" + `: it needs no configuration, runs everything on this machine and
says what to try next.`,
		Example: `  hookledger dev                                   # everything, on this machine
  hookledger send --source stripe --count 100      # play a provider
  hookledger accounts list                         # the balances
  hookledger verify                                # and the proof

  hookledger migrate up && hookledger topics apply # in production: prepare,
  hookledger ingest                                # then run the roles, each as often
  hookledger consume                               # as you like`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetIn(a.Stdin)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return app.Usage(fmt.Errorf("%w: see `%s --help`", err, c.CommandPath()))
	})
	f := root.PersistentFlags()
	f.StringVar(&a.ConfigFile, "config", "", "configuration file (default: $HOOKLEDGER_CONFIG, hookledger.yaml, .hookledger/hookledger.yaml)")
	f.BoolVar(&a.JSON, "json", false, "answer with one JSON object, for scripts")

	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run"},
		&cobra.Group{ID: groupSetup, Title: "Set up"},
		&cobra.Group{ID: groupLook, Title: "Look and prove"},
		&cobra.Group{ID: groupMend, Title: "Decide and repair"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, dev.Command(a), roles.Ingest(a), roles.Consume(a), roles.Payments(a), roles.Ready(a), sender.Command(a))
	add(groupSetup, setup.Config(a), sources.Command(a), setup.Migrate(a), setup.Topics(a), setup.Version(a))
	add(groupLook, books.Accounts(a), books.Events(a, repair.Amend(a), repair.Import(a)), lag.Command(a), books.Verify(a), doctor.Command(a))
	add(groupMend, repair.Incidents(a), repair.Quarantine(a), replay.Command(a))
	root.SetHelpCommandGroupID(groupSetup)
	wrapArgs(root)
	return root
}

// wrapArgs makes wrong arguments errors of usage, in every command.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	if c.HasParent() {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				if c.HasSubCommands() && len(args) > 0 {
					return unknownCommand(c, args[0])
				}
				return app.Usage(fmt.Errorf("%w: see `%s --help`", err, c.CommandPath()))
			}
			return refuseEmpty(c)
		}
	}
	for _, child := range c.Commands() {
		wrapArgs(child)
	}
}

// meaningful are the flags without which a command takes more, keeps nothing or asks
// another configuration.
var meaningful = []string{"account", "at", "config", "conflict", "currency", "event-id", "from-time", "history", "object", "out", "outcome", "severity",
	"since", "source", "to-time", "type", "until", "with-reason"}

// refuseEmpty refuses such a flag that is empty, as an unset variable of a shell leaves
// it: it would be as if it were left out, and who wrote it meant something.
func refuseEmpty(c *cobra.Command) error {
	for _, name := range meaningful {
		f := c.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		list, several := f.Value.(interface{ GetSlice() []string })
		if several && slices.Contains(list.GetSlice(), "") || f.Value.Type() == "string" && f.Value.String() == "" {
			return app.Usage(fmt.Errorf("--%s is empty: give it a value, or leave it out", name))
		}
	}
	return nil
}

// unknownCommand names the nearest command.
func unknownCommand(c *cobra.Command, word string) error {
	hint := fmt.Sprintf("see `%s --help`", c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(word); len(near) > 0 {
		hint = fmt.Sprintf("did you mean `%s %s`?", c.CommandPath(), near[0])
	}
	return app.Usage(fmt.Errorf("unknown command %q of `%s`: %s", word, c.CommandPath(), hint))
}

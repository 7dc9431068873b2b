package roles

import (
	"github.com/rs/zerolog"

	"hookledger/internal/cli/app"
)

// ReloadOnSignal calls reload at each SIGHUP, which reads the secrets again, until the
// returned function is called. Secrets that cannot be read stay as they are. With nil it
// takes the signal, so that it is no surprise, and does nothing.
func ReloadOnSignal(a *app.App, reload func() error, log zerolog.Logger) (stop func()) {
	done := make(chan struct{})
	go func() { // ends with stop
		for {
			select {
			case <-a.Reload:
			case <-done:
				return
			}
			if reload == nil {
				log.Info().Msg("nothing to reload: workers hold no secrets")
			} else if err := reload(); err != nil {
				log.Error().Err(err).Msg("reload of secrets; those that cannot be read stay as they were")
			} else {
				log.Info().Msg("secrets read again")
			}
		}
	}()
	return func() { close(done) }
}

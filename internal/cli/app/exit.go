package app

import (
	"errors"

	"hookledger/internal/config"
)

// Exit codes, a contract with scripts.
const (
	// ExitOK: done.
	ExitOK = 0
	// ExitFailed: what was asked for could not be done.
	ExitFailed = 1
	// ExitUsage: the command line, the configuration or the setup is wrong; trying
	// again changes nothing.
	ExitUsage = 2
	// ExitFound: the check worked and found something.
	ExitFound = 3
)

// usageError is an error that ends in ExitUsage.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Usage marks err as one of usage, configuration or setup.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// ErrFound says that a check found something. It was printed already.
var ErrFound = errors.New("the check found something")

// ExitCode is the exit code for the error that a command returned.
func ExitCode(err error) int {
	var usage usageError
	var cfg *config.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFound):
		return ExitFound
	case errors.As(err, &usage), errors.As(err, &cfg):
		return ExitUsage
	}
	return ExitFailed
}

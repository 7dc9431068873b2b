//go:build unix && !linux

package devstack

import "errors"

// canSwitchAccount refuses: the way through another uid is tried on Linux only.
func canSwitchAccount() error {
	return errors.New("postgres refuses to run as root: run as an ordinary user")
}

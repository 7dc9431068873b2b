//go:build unix && !linux

package process

import "syscall"

// setDeathSignal does nothing: only Linux signals children of a dead parent.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

package process

import "syscall"

// setDeathSignal asks the kernel to signal the child when its parent thread
// ends. Go sets it after changing the child's uid, which would clear it.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

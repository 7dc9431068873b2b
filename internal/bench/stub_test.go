package bench

import "context"

const shopToken = "x0123456789abcdef0123"

func measureDelay(*bench)                   {}
func measureGrowth(*bench)                  {}
func measureRecovery(*bench)                {}
func measureSignatures(*bench)              {}
func measurePayments(*bench)                {}
func measureVerify(*bench)                  {}
func measureLag(*bench)                     {}
func bareRead(context.Context, order) error { return nil }
func bareLag(context.Context, order) error  { return nil }

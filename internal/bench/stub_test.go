package bench

import "context"

const shopToken = "x0123456789abcdef0123"
const bareTables = "select 1"

func measureDelay(*bench)                      {}
func measureApply(*bench)                      {}
func measureGrowth(*bench)                     {}
func measureRecovery(*bench)                   {}
func measureSignatures(*bench)                 {}
func measurePayments(*bench)                   {}
func measureVerify(*bench)                     {}
func measureLag(*bench)                        {}
func bareApply(context.Context, order) error   { return nil }
func handWritten(context.Context, order) error { return nil }
func bareRead(context.Context, order) error    { return nil }
func bareLag(context.Context, order) error     { return nil }

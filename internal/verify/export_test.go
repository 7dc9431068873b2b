package verify

// Suspects sets how many events of which more than one entry is looked at fit into one pass.
func (o *Options) Suspects(n int) { o.suspects = n }

package source

import (
	"time"

	"hookledger/schema"
)

// Definition is what is particular to one provider. A provider is one file of package
// provider that registers one Definition; most are data alone, in the words of the
// configuration itself.
type Definition struct {
	Name string
	// Signature are the provider's own knobs. Knobs names the keys of signature: that a
	// configuration may set; Tune applies those that are more than a tolerance.
	Signature Signature
	Knobs     []string
	Tune      func(*Signature, SignatureConfig, *Problems)
	// Methods are the HTTP methods of deliveries. Nil: POST alone. The event of a
	// delivery by GET is its query, read as a form.
	Methods []string

	// Event says where identity, type and time are; what it leaves out is left to the
	// configuration. ID and Type override it where a path cannot say it: ID returns the
	// event's ID, Type its type.
	Event EventConfig
	ID    func(Delivery, *schema.Value) (string, error)
	Type  func(Delivery, *schema.Value) (string, error)
	// Read parses the bytes of an event where they are neither JSON nor a form.
	Read func(contentType string, body []byte) (*schema.Value, error)
	// ComposeType and Write are the reverse of Type and Read, for `send`: the former sets
	// what makes an event one of a type, and what its ID is made of if no path leads there, and
	// returns the query of the URL; the latter writes
	// the fields of an event.
	ComposeType func(set func(path string, value any), eventType, eventID string) (query string)
	Write       func(fields map[string]any) ([]byte, error)
	// NumericIDs says that IDs are numbers, for `send`.
	NumericIDs bool
	// Live is the flag that tells live events from test events.
	Live LiveFlag
	// Postings and Statuses are the built-in meaning. All nil, and NonEffect empty,
	// leaves it to the configuration.
	Postings []PostingConfig
	Statuses []StatusConfig
	// NonEffect says why the provider's events never move money by themselves, such as
	// "they carry an ID to fetch". They are kept, and ignored by the ledger.
	NonEffect string
	// Exponents are the currencies whose decimals differ from ISO 4217 in this provider's
	// minor units, by code in upper case; UnknownExponent where nobody knows. The ledger
	// keeps the decimals of the standard, so amounts are converted.
	Exponents map[string]int
	// Account are paths at which an account can be kept with this provider, as an example
	// for who writes a configuration. Required are the keys of signature: that it must
	// set, each with an example.
	Account []string
	// AccountNote says which events do not carry it, and what to do, in lines for a comment.
	AccountNote []string
	Required    map[string]string
	// Addresses are the queries with which the source's URL is registered, where one alone
	// will not do.
	Addresses []string
	// NoCurrency says that events do not name their currency, so that the configuration
	// has to.
	NoCurrency bool
	// Ignored are event types that move no money here on purpose, and why.
	Ignored []Note

	// Success is the answer that counts. Answer overrides it where it depends on the
	// delivery.
	Success SuccessConfig
	// Deadline is how long the provider waits for it. Zero: not known.
	Deadline time.Duration
	Answer   func(success Answer, items []Item) Answer
}

// builtin tells whether the provider says itself what its events are and mean.
func (d *Definition) builtin() bool {
	return d.Postings != nil || d.Statuses != nil || d.NonEffect != ""
}

// UnknownExponent marks a currency whose amounts in minor units cannot be told.
const UnknownExponent = -1

// Note says something of event types.
type Note struct {
	Types []string
	Why   string
}

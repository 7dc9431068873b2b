package checker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Results of a delivery.
const (
	// OK: a whole 2xx answer was read.
	OK = "ok"
	// Reject: a 4xx answer. The event must not have been taken.
	Reject = "reject"
	// Unknown: anything else, such as 5xx, a timeout, a reset, half an answer. The
	// event may have been taken or not.
	Unknown = "unknown"
)

// What an event of the generator has to become.
const (
	// ExpectMoney, the default of an amount that is not zero: its entry.
	ExpectMoney = "money"
	// ExpectNothing, the default of an amount of zero: ignored, and on record.
	ExpectNothing = "nothing"
	// ExpectQuarantine: it was made to be impossible to apply.
	ExpectQuarantine = "quarantine"
	// ExpectRefused: its signature or its clock is wrong. It must never be answered 2xx,
	// and be nowhere, whatever its answers were.
	ExpectRefused = "refused"
)

// Delivery is one HTTP attempt as its client saw it, one line of a history.
type Delivery struct {
	Seed uint64 `json:"seed"`
	// I numbers the deliveries of a run, Attempt the attempts of one.
	I       int       `json:"i"`
	Attempt int64     `json:"attempt,omitempty"`
	T0      time.Time `json:"t0"`

	Source  string `json:"source"`
	EventID string `json:"event_id"`
	Account string `json:"account"`
	// Amount is in minor units and signed, as the event has to move the account.
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	// SHA256 is the hash of the body that was sent, lower-case hex.
	SHA256 string `json:"sha256"`
	// Movement names the movement of money where several events tell of one. Empty:
	// the event's own.
	Movement string `json:"movement,omitempty"`
	// Expect is one of the Expect… words. Empty: by the amount.
	Expect string `json:"expect,omitempty"`
	// State is what the event says of the state of an object. Zero: nothing.
	State State `json:"state,omitzero"`

	Result string `json:"result"`
	// HTTP is the status that was read, 0 if none was.
	HTTP int       `json:"http"`
	T1   time.Time `json:"t1"`
}

// State is the state of an object: the one with the latest At wins, then the highest rank.
type State struct {
	Object string `json:"object"`
	Status string `json:"status"`
	Rank   int64  `json:"rank"`
	// At is when it occurred, in unix seconds.
	At int64 `json:"at"`
}

// Ref names an event.
type Ref struct{ Source, ID string }

// String returns source/ID.
func (r Ref) String() string { return r.Source + "/" + r.ID }

// Ref names the event of the delivery.
func (d *Delivery) Ref() Ref { return Ref{d.Source, d.EventID} }

func (d *Delivery) expect() string {
	switch {
	case d.Expect != "":
		return d.Expect
	case d.Amount == 0:
		return ExpectNothing
	}
	return ExpectMoney
}

func (d *Delivery) movement() Ref {
	if d.Movement != "" {
		return Ref{d.Source, "movement " + d.Movement}
	}
	return Ref{d.Source, "event " + d.EventID}
}

// ReadHistory reads deliveries, one JSON object a line. Unknown keys, unknown words
// and a last line that was cut short are errors: a history that cannot be trusted
// judges nothing.
func ReadHistory(r io.Reader) ([]Delivery, error) {
	var all []Delivery
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		var d Delivery
		if err := dec.Decode(&d); err != nil {
			return nil, fmt.Errorf("read line %d of the history: %w", n, err)
		}
		switch d.Result {
		case OK, Reject, Unknown:
		default:
			return nil, fmt.Errorf("read line %d of the history: result is %q", n, d.Result)
		}
		switch d.Expect {
		case "", ExpectMoney, ExpectNothing, ExpectQuarantine, ExpectRefused:
		default:
			return nil, fmt.Errorf("read line %d of the history: expect is %q", n, d.Expect)
		}
		all = append(all, d)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return all, nil
}

package checker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Try is one attempt of a client to have a payment made. References are of one key each.
type Try struct {
	Key       string `json:"key"`
	From      string `json:"from"`
	To        string `json:"to"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`

	T0 time.Time `json:"t0"`
	T1 time.Time `json:"t1"`
	// HTTP is the status that was read with a whole body, 0 if none was.
	HTTP int    `json:"http"`
	Body string `json:"body"`
}

// final says that the answer is for good: the payment, or that there is not enough.
func (t *Try) final() bool {
	return t.HTTP == http.StatusCreated || t.HTTP == http.StatusPaymentRequired
}

// payments is P1 to P3.
func (j *judge) payments() {
	if len(j.Tries) == 0 {
		return
	}
	asked := map[string]*Try{} // by reference
	for i := range j.Tries {
		asked[j.Tries[i].Reference] = &j.Tries[i]
	}
	booked := map[string]*Payment{} // by payment ID
	made := map[string][]string{}   // payments by key
	var foreign []string
	for i := range j.Tables.Payments {
		p := &j.Tables.Payments[i]
		booked[p.PaymentID] = p
		t := asked[p.Reference]
		if t == nil || !p.is(t) {
			foreign = append(foreign, fmt.Sprintf("%s of reference %s", p.PaymentID, p.Reference))
			continue
		}
		made[t.Key] = append(made[t.Key], p.PaymentID)
	}
	j.onePerKey(made)
	j.paid(booked)
	j.violated("P3", "a payment is in the books and nobody asked for it like that", foreign)
	j.twoEntries(booked)
}

// is says that the row is what was asked for.
func (p *Payment) is(t *Try) bool {
	return p.From == t.From && p.To == t.To && p.Amount == t.Amount && p.Currency == t.Currency && p.Reference == t.Reference
}

// onePerKey is P1.
func (j *judge) onePerKey(made map[string][]string) {
	var twice, answers, poor []string
	first := map[string]*Try{}
	for i := range j.Tries {
		t := &j.Tries[i]
		if !t.final() {
			continue
		}
		f := first[t.Key]
		if f == nil {
			first[t.Key] = t
		} else if f.HTTP != t.HTTP || f.Body != t.Body || f.Reference != t.Reference {
			answers = append(answers, fmt.Sprintf("%s (%d to %s and %d to %s)", t.Key, f.HTTP, f.Reference, t.HTTP, t.Reference))
		}
		if t.HTTP == http.StatusPaymentRequired && len(made[t.Key]) > 0 {
			poor = append(poor, t.Key)
		}
	}
	for key, ids := range made {
		if len(ids) > 1 {
			twice = append(twice, fmt.Sprintf("%s (%d payments)", key, len(ids)))
		}
	}
	j.violated("P1", "a key made several payments", twice)
	j.violated("P1", "a key has several answers", answers)
	j.violated("P1", "a key was answered that there is not enough, and made a payment", poor)
}

// paid is P2.
func (j *judge) paid(booked map[string]*Payment) {
	var lost []string
	for i := range j.Tries {
		t := &j.Tries[i]
		if t.HTTP != http.StatusCreated {
			continue
		}
		var told struct {
			ID string `json:"payment_id"`
		}
		err := json.Unmarshal([]byte(t.Body), &told)
		if p := booked[told.ID]; err != nil || p == nil || !p.is(t) {
			lost = append(lost, fmt.Sprintf("%s (payment %q)", t.Key, told.ID))
		}
	}
	j.violated("P2", "answered 201 and not in the books as asked", lost)
}

// twoEntries is P3 for the money: what is spent on one side arrives on the other.
func (j *judge) twoEntries(booked map[string]*Payment) {
	legs := map[string][]*Entry{}
	var wrong []string
	for i := range j.Tables.Entries {
		e := &j.Tables.Entries[i]
		if e.EventID != "" {
			continue
		}
		if booked[e.MovementID] == nil {
			wrong = append(wrong, e.MovementID+" has an entry and no payment")
		}
		legs[e.MovementID] = append(legs[e.MovementID], e)
	}
	for id, p := range booked {
		var from, to int
		for _, e := range legs[id] {
			switch {
			case e.Currency != p.Currency:
			case e.AccountID == p.From && e.Amount == -p.Amount:
				from++
			case e.AccountID == p.To && e.Amount == p.Amount:
				to++
			}
		}
		if from != 1 || to != 1 || len(legs[id]) != 2 {
			wrong = append(wrong, fmt.Sprintf("%s has %d entries, %d of them spend and %d receive", id, len(legs[id]), from, to))
		}
	}
	j.violated("P3", "the entries of a payment are not its two sides", wrong)
}

package vectors

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// Verdicts.
const (
	Valid   = "valid"
	Invalid = "invalid"
)

// Reasons that are not of a signature: reasonConfiguration of cases that no receiver would
// start with, reasonCase of those that are none.
const (
	reasonConfiguration = "configuration"
	reasonCase          = "unusable_case"
)

// Verdict is what the receiver makes of a case.
type Verdict struct {
	ID string `json:"id"`
	// Verdict is of the signature alone: what is valid here may still hold no event.
	Verdict string `json:"verdict"`
	// EventIDs are those of a valid delivery, as far as they can be told.
	EventIDs []string `json:"event_ids"`
	// Reason is a stable word for why a case is invalid; empty for a valid one.
	Reason string `json:"reason"`
	// Response is the body that the provider counts as success, or the answer to its
	// challenge.
	Response string `json:"response"`
}

// Judge verifies a case. The error is of the case, not of its delivery; the verdict, then
// invalid, can be printed all the same.
func Judge(c Case) (Verdict, error) {
	v := Verdict{ID: c.ID, Verdict: Invalid, EventIDs: []string{}, Reason: reasonCase}
	if c.err != nil {
		return v, c.err
	}
	if _, err := provider.Definition(c.provider()); err != nil {
		return v, fmt.Errorf("case %s: provider %w", c.ID, err)
	}
	r, err := c.request()
	if err != nil {
		return v, err
	}
	src, verifier, err := c.open()
	if err != nil {
		v.Reason = reasonConfiguration
		return v, nil //nolint:nilerr // It is the verdict.
	}
	if !src.Allows(r.Method) {
		v.Reason = "method"
		return v, nil
	}
	verified, err := verifier.Verify(r)
	if err != nil {
		v.Reason = reasonOf(err)
		return v, nil
	}
	v.Verdict, v.Reason = Valid, ""
	if v.Response = verified.Reply(); v.Response != "" {
		return v, nil
	}
	items, err := src.Identify(c.delivery(r, verified))
	for _, item := range items {
		v.EventIDs = append(v.EventIDs, item.ID)
	}
	if err != nil {
		return v, nil //nolint:nilerr // The signature holds; there is no event to name, or not of all items.
	}
	v.Response = src.Success(items).Body
	return v, nil
}

// open makes of the case what a receiver makes of its configuration.
func (c *Case) open() (*source.Source, *signature.Verifier, error) {
	src, err := provider.New(c.config())
	if err != nil {
		return nil, nil, err
	}
	keys, err := signature.NewKeyring(src, zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	verifier, err := signature.New(src.Signature(), keys, c.options()...)
	return src, verifier, err
}

// delivery is the verified request. CloudPayments tells what kind of notification it is by
// the address alone; without one in the case it is a payment.
func (c *Case) delivery(r signature.Request, verified signature.Verified) source.Delivery {
	d := source.Delivery{ID: c.ID, Method: r.Method, Query: r.Query, Header: r.Header, Body: verified.Body()}
	if c.Provider == "cloudpayments" {
		if d.Query != "" {
			d.Query += "&"
		}
		d.Query += "type=pay"
	}
	if d.Header.Get("Content-Type") == "" && r.Method != http.MethodGet && c.Provider == "cloudpayments" {
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return d
}

func reasonOf(err error) string {
	var rejection *signature.Rejection
	switch {
	case errors.As(err, &rejection):
		return string(rejection.Reason)
	case errors.Is(err, signature.ErrUnavailable):
		return "key_unavailable"
	}
	return "error"
}

package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// tbankScheme reads the field Token: SHA-256 of the values of all single fields of the
// root and the password, which counts as a field Password, in the order of their names.
// There is nothing between the values, so that digits could be moved from one field to
// its neighbour: who keeps orders compares the amount. Source: developer.tbank.ru,
// eacq/intro/developer/token, 2026-11.
type tbankScheme struct{ sig source.Signature }

const (
	tbankToken    = "Token"
	tbankPassword = "Password"
	tbankTerminal = "TerminalKey"
)

func (s tbankScheme) headers() []string { return nil }

func (s tbankScheme) lock(secret []byte) (lock, error) {
	return newHashLock("tbank-token-sha256", sha256.New, secret)
}

func (s tbankScheme) read(r Request) ([]claim, error) {
	root, err := schema.ParseJSON(r.Body, schema.Limits{})
	if err != nil {
		return nil, reject(Malformed, "%v", err)
	}
	if root.Kind() != schema.KindObject {
		return nil, reject(Malformed, "the body is not an object")
	}
	token := root.Get(tbankToken)
	if token == nil {
		return nil, reject(MissingHeader, "field %s is missing", tbankToken)
	}
	encoded, _ := token.Text()
	value, err := decode(encoded, "hex", sha256.Size)
	if err != nil {
		return nil, reject(Malformed, "field %s: %v", tbankToken, err)
	}
	if root.Get(tbankPassword) != nil {
		return nil, reject(Malformed, "a field has the name %s, which the secret has", tbankPassword)
	}
	if err := s.checkTerminal(root); err != nil {
		return nil, err
	}
	return []claim{{signatures: []signature{{value: value}}, text: tbankText(root)}}, nil
}

// checkTerminal compares the terminal with the configured one: a shop may have several
// with one password.
func (s tbankScheme) checkTerminal(root *schema.Value) error {
	if s.sig.TerminalKey == "" {
		return nil
	}
	terminal := ""
	if v := root.Get(tbankTerminal); v != nil {
		terminal, _ = v.Text()
	}
	if subtle.ConstantTimeCompare([]byte(terminal), []byte(s.sig.TerminalKey)) != 1 {
		return reject(UnknownKey, "field %s is not the configured terminal", tbankTerminal)
	}
	return nil
}

// tbankText returns the values in the order of their names, nil for the password.
// Numbers and booleans are as they stand in the body; objects, lists and null are left out.
func tbankText(root *schema.Value) [][]byte {
	type pair struct {
		name  string
		value []byte
	}
	list := []pair{{name: tbankPassword}}
	for i, name := range root.Keys() {
		if text, ok := root.Items()[i].Literal(); ok && name != tbankToken {
			list = append(list, pair{name, append([]byte{}, text...)})
		}
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	text := make([][]byte, len(list))
	for i := range list {
		text[i] = list[i].value
	}
	return text
}

func (s tbankScheme) sign(l lock, m *Message) error {
	root, err := schema.ParseJSON(m.Body, schema.Limits{})
	if err != nil {
		return err
	}
	token := hex.EncodeToString(l.(*hashLock).sum(tbankText(root)))
	m.Body = append([]byte(`{"`+tbankToken+`":"`+token+`",`), m.Body[1:]...)
	return nil
}

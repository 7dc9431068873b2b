package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Braintree signs one field of a form, which is XML in base64. It is read as an object:
// notification.kind, notification.subject.transaction.amount. There is no ID; kind, time
// and subject together are one. Before it sends anything, Braintree asks by GET whether
// the address is ours. Sources: node and Python libraries, 2026-11.
var _ = register(source.Definition{
	Name: "braintree",
	Signature: source.Signature{
		Scheme: source.SchemeBraintree,
		// bt_payload is the event, and all of it is signed.
		BodyAuthenticated: true,
	},
	Knobs: []string{"public_key"},
	Tune: func(_ *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.PublicKey == "" {
			p.Add("signature.public_key", "is missing; it is the public key that belongs to the private key in secrets")
		}
	},
	Methods: []string{http.MethodPost, http.MethodGet},
	Event: source.EventConfig{
		Body: source.BodyForm,
		Type: at("notification.kind"),
		Time: at("notification.timestamp"), TimeFormat: source.FormatRFC3339,
	},
	Read: readBraintree,
	ID:   braintreeID,
})

// braintreeID hashes kind, time and the subject's ID, or all of a subject without one.
func braintreeID(_ source.Delivery, v *schema.Value) (string, error) {
	kind, err := word(v, "notification.kind")
	if err != nil {
		return "", err
	}
	time, err := word(v, "notification.timestamp")
	if err != nil {
		return "", err
	}
	subject, ok := v.At(schema.MustPath("notification.subject"))
	if !ok {
		return "", errors.New("there is nothing at notification.subject")
	}
	what := string(subject.Raw())
	for i, name := range subject.Keys() {
		if id := subject.Items()[i].Get("id"); id != nil {
			text, _ := id.Literal()
			what = name + "\x00" + text
			break
		}
	}
	sum := sha256.Sum256([]byte(kind + "\x00" + time + "\x00" + what))
	return hex.EncodeToString(sum[:]), nil
}

func readBraintree(_ string, body []byte) (*schema.Value, error) {
	form, err := source.ReadForm(body)
	if err != nil {
		return nil, err
	}
	payload, err := word(form, "bt_payload")
	if err != nil {
		return nil, err
	}
	text, err := base64.StdEncoding.DecodeString(payload) // line feeds are skipped
	if err != nil {
		return nil, errors.New("bt_payload is not base64")
	}
	return readXML(text)
}

// maxXMLDepth bounds the nesting of elements.
const maxXMLDepth = 32

// readXML reads elements as objects: of those with attribute type="array" the children
// are a list, nil="true" is null, and the text of what has no children is a string.
func readXML(text []byte) (*schema.Value, error) {
	decoder := xml.NewDecoder(strings.NewReader(string(text)))
	root := map[string]any{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("the payload is not XML")
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil, errors.New("the payload's XML declares types, which no notification does")
		case xml.StartElement:
			if len(root) > 0 {
				return nil, errors.New("the payload's XML has two roots")
			}
			if root[t.Name.Local], err = readElement(decoder, t, 1); err != nil {
				return nil, err
			}
		}
	}
	encoded, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("read XML: %w", err)
	}
	return schema.ParseJSON(encoded, schema.Limits{})
}

func readElement(decoder *xml.Decoder, start xml.StartElement, depth int) (any, error) {
	if depth > maxXMLDepth {
		return nil, fmt.Errorf("the payload's XML is nested deeper than %d", maxXMLDepth)
	}
	isList, isNull := false, false
	for _, a := range start.Attr {
		isList = isList || a.Name.Local == "type" && a.Value == "array"
		isNull = isNull || a.Name.Local == "nil" && a.Value == "true"
	}
	var text strings.Builder
	var list []any
	fields := map[string]any{}
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("the payload is not XML")
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			value, err := readElement(decoder, t, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
			if _, twice := fields[t.Name.Local]; twice && !isList {
				return nil, errors.New("an element of the payload's XML is there twice")
			}
			fields[t.Name.Local] = value
		case xml.EndElement:
			switch {
			case isList:
				return append([]any{}, list...), nil
			case len(fields) > 0:
				return fields, nil
			case isNull:
				return nil, nil
			}
			return strings.TrimSpace(text.String()), nil
		}
	}
}

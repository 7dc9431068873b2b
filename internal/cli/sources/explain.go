package sources

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"hookledger/ingest/signature"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// captured is a delivery as somebody kept it, in files and flags.
type captured struct {
	source, headers, body string
	at                    string
	method, query, remote string
}

func (c *captured) any() bool { return c.source != "" || c.headers != "" || c.body != "" }

// step is a step of a check in JSON.
type step struct {
	Step   string `json:"step"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// Results of a step.
const (
	stepOK      = "ok"
	stepFailed  = "failed"
	stepSkipped = "not reached"
)

// checked is the answer of a check of one delivery.
type checked struct {
	Source    string   `json:"source"`
	Provider  string   `json:"provider"`
	Scheme    string   `json:"scheme"`
	Verdict   string   `json:"verdict"`
	Reason    string   `json:"reason"`
	KeyID     string   `json:"key_id"`
	SignedAt  *string  `json:"signed_at"`
	CheckedAt *string  `json:"checked_at"`
	BodyBytes int      `json:"body_bytes"`
	Steps     []step   `json:"steps"`
	Hints     []string `json:"hints"`
	EventIDs  []string `json:"event_ids"`
	Answer    string   `json:"answer"`
}

func checkDelivery(a *app.App, c captured) error {
	if c.source == "" || c.headers == "" {
		return app.Usage(errors.New("nothing to check: give --vectors F, or --source NAME --headers F --body F"))
	}
	if c.headers == "-" && c.body == "-" {
		return app.Usage(errors.New("--headers and --body cannot both be standard input"))
	}
	_, cfg, err := configured(a, c.source)
	if err != nil {
		return err
	}
	src, err := provider.New(cfg)
	if err != nil {
		return app.Usage(err)
	}
	request, err := c.request(a)
	if err != nil {
		return err
	}
	out, err := explain(a, src, request)
	if err != nil {
		return err
	}
	if err := a.Print("sources-check", out, func(w io.Writer) error { return printChecked(w, out) }); err != nil {
		return err
	}
	if out.Verdict != "valid" {
		return app.ErrFound
	}
	return nil
}

// request reads the delivery.
func (c *captured) request(a *app.App) (signature.Request, error) {
	r := signature.Request{Method: strings.ToUpper(c.method), Query: strings.TrimPrefix(c.query, "?"), At: time.Now()}
	text, err := readAll(a, c.headers)
	if err != nil {
		return r, err
	}
	if r.Header, err = readHeaders(text); err != nil {
		return r, app.Usage(fmt.Errorf("read --headers: %w", err))
	}
	if c.body != "" {
		if r.Body, err = readAll(a, c.body); err != nil {
			return r, err
		}
	}
	if c.at != "" {
		if r.At, err = readAt(c.at); err != nil {
			return r, app.Usage(err)
		}
	}
	if c.remote != "" {
		if r.Remote, err = netip.ParseAddr(c.remote); err != nil {
			return r, app.Usage(fmt.Errorf("read --remote: %w", err))
		}
	}
	return r, nil
}

func readAll(a *app.App, name string) ([]byte, error) {
	in, err := open(a, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxCaptured+1))
	switch {
	case err != nil:
		return nil, app.Usage(fmt.Errorf("read %s: %w", name, err))
	case len(text) > maxCaptured:
		return nil, app.Usage(fmt.Errorf("read %s: it is larger than %d MiB", name, maxCaptured>>20))
	}
	return text, nil
}

// maxCaptured bounds the body, and the headers, of a delivery.
const maxCaptured = 64 << 20

func readAt(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, errors.New("--at is a time such as 2026-11-29T12:00:05Z, or Unix seconds")
	}
	return at, nil
}

// readHeaders reads lines "Name: value", after a request line if there is one, up to an
// empty line; or a JSON object of texts and lists of texts.
func readHeaders(text []byte) (http.Header, error) {
	h := http.Header{}
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		var fields map[string]any
		if err := json.Unmarshal(trimmed, &fields); err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
		for name, value := range fields {
			switch value := value.(type) {
			case string:
				h.Add(name, value)
			case []any:
				for _, line := range value {
					h.Add(name, fmt.Sprint(line))
				}
			default:
				return nil, fmt.Errorf("header %.80q is neither a text nor a list of texts", name)
			}
		}
		return h, nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			if len(h) > 0 {
				break
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		switch {
		case ok && name != "" && !strings.ContainsAny(name, " \t"):
			h.Add(name, strings.Trim(value, " \t"))
		case n == 1 && strings.Contains(line, "HTTP/"):
		default:
			return nil, fmt.Errorf("line %d is not \"Name: value\"", n)
		}
	}
	return h, lines.Err()
}

// explain takes the delivery the receiver's way and says how far it comes.
func explain(a *app.App, src *source.Source, r signature.Request) (checked, error) {
	ring, err := signature.NewKeyring(src, a.Quiet())
	if err != nil {
		return checked{}, app.Usage(err)
	}
	verifier, err := signature.New(src.Signature(), ring)
	if err != nil {
		return checked{}, app.Usage(err)
	}
	out := checked{
		Source: src.Name(), Provider: src.Provider(), Scheme: src.Signature().Scheme, Verdict: "invalid",
		CheckedAt: console.JSONTime(r.At), BodyBytes: len(r.Body), Hints: []string{}, EventIDs: []string{},
	}
	if ok := out.door(src, r); !ok {
		return out, nil
	}
	e := verifier.Explain(r)
	out.steps(e)
	out.KeyID, out.Reason, out.SignedAt = e.KeyID, string(e.Reason), console.JSONTime(e.SignedAt)
	out.Hints = append(out.Hints, e.Hints...)
	if e.Scheme != "" {
		out.Scheme = e.Scheme
	}
	if e.Failed != "" {
		return out, nil
	}
	if src.Signature().Scheme == source.SchemeBraintree && r.Method == http.MethodGet {
		out.Verdict = "valid" // a challenge holds no event
		return out, nil
	}
	out.identify(src, r)
	return out, nil
}

// door judges what the receiver judges before the signature.
func (out *checked) door(src *source.Source, r signature.Request) bool {
	switch {
	case !src.Allows(r.Method):
		out.Reason = "method"
		out.add("door", stepFailed, "the source takes "+strings.Join(src.Methods(), " and ")+": see --method")
	case r.Method != http.MethodGet && !src.Accepts(r.Header.Get("Content-Type")):
		out.Reason = "content_type"
		out.add("door", stepFailed, "the content type is not one that the source sends")
	case r.Header.Get("Content-Encoding") != "" && !strings.EqualFold(r.Header.Get("Content-Encoding"), "identity"):
		out.Reason = "content_encoding"
		out.add("door", stepFailed, "the body is compressed, and signatures are made over the bytes before that")
	default:
		out.add("door", stepOK, "method, content type and encoding")
		return true
	}
	return false
}

// words say what the steps of a signature are.
var words = []struct{ step, text string }{
	{signature.StepRead, "the signature is there and can be read"},
	{signature.StepKey, "there is a key to check it with"},
	{signature.StepMatch, "a key made it over these bytes"},
	{signature.StepTime, "it was made at a time near enough"},
}

func (out *checked) steps(e signature.Explanation) {
	result := stepOK
	for _, w := range words {
		switch {
		case e.Failed == w.step:
			out.add("signature: "+w.step, stepFailed, e.Detail)
			result = stepSkipped
		case result == stepSkipped:
			out.add("signature: "+w.step, stepSkipped, "")
		default:
			out.add("signature: "+w.step, stepOK, w.text)
		}
	}
}

func (out *checked) identify(src *source.Source, r signature.Request) {
	items, err := src.Identify(source.Delivery{ID: "check", Method: r.Method, Query: r.Query, Header: r.Header, Body: r.Body})
	for _, item := range items {
		out.EventIDs = append(out.EventIDs, item.ID)
	}
	if err != nil {
		out.Reason = "event"
		out.add("event", stepFailed, err.Error())
		if len(items) > 0 {
			out.Hints = append(out.Hints, fmt.Sprintf("the other %d items of the delivery are stored, and the delivery is answered 400 until none is unusable", len(items)))
		}
		return
	}
	out.Verdict = "valid"
	out.add("event", stepOK, fmt.Sprintf("%d with an ID", len(items)))
	out.Answer = src.Success(items).Body
}

func (out *checked) add(name, result, detail string) {
	out.Steps = append(out.Steps, step{name, result, detail})
}

func printChecked(w io.Writer, out checked) error {
	t := console.NewTable("step", "result", "")
	for _, s := range out.Steps {
		t.Row(s.Step, s.Result, s.Detail)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	lines := []string{"", fmt.Sprintf("%s: %s, a body of %s, checked at %s", out.Source, out.Verdict, console.Count(int64(out.BodyBytes), "byte", "bytes"), *out.CheckedAt)}
	for _, id := range out.EventIDs {
		lines = append(lines, "event "+console.Safe(id))
	}
	if out.KeyID != "" {
		lines = append(lines, "key "+out.KeyID)
	}
	for _, h := range out.Hints {
		lines = append(lines, "hint: "+console.Safe(h))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

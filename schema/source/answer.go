package source

import "time"

// Answer is what is sent when every event of a delivery is stored.
type Answer struct {
	Status      int
	ContentType string
	Body        string
}

func newAnswer(def *Definition, c SuccessConfig, p *Problems) Answer {
	if def.builtin() {
		if c != (SuccessConfig{}) {
			p.Add("success", "provider %s knows the answer it wants; remove the key", def.Name)
		}
		c = def.Success
	}
	if c.Status == 0 {
		c.Status = 200
	}
	if c.Status < 200 || c.Status > 299 {
		p.Add("success.status", "is %d; it lies between 200 and 299", c.Status)
	}
	if c.Body != "" && (c.Status == 204 || c.Status == 205) {
		p.Add("success.body", "cannot be sent with status %d", c.Status)
	}
	if c.Body != "" && c.ContentType == "" {
		c.ContentType = "text/plain; charset=utf-8"
	}
	return Answer{Status: c.Status, ContentType: c.ContentType, Body: c.Body}
}

// Deadline is how long the provider waits for an answer; zero if that is not known.
func (s *Source) Deadline() time.Duration { return s.def.Deadline }

// Success returns the answer that the provider counts as success for a delivery of
// these events. It is for the moment when all of them are stored, not before.
func (s *Source) Success(items []Item) Answer {
	if s.def.Answer != nil {
		return s.def.Answer(s.success, items)
	}
	return s.success
}

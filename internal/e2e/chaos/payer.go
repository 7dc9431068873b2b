package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hookledger/internal/e2e/checker"
)

// payer has payments made, each key by several callers at once and some with another
// body, until each has an answer that is for good.
type payer struct {
	http  *http.Client
	url   string
	token string
	open  atomic.Int64

	mu    sync.Mutex
	tries []checker.Try
}

// payers ask at once.
const payers = 4

func newPayer(url, token string) *payer {
	return &payer{
		http: &http.Client{Timeout: attemptTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: payers}},
		url:  url, token: token,
	}
}

// payments makes what a seed asks for: about a third as many as deliveries.
func payments(p *Plan) []checker.Try {
	rnd := stream(p.Seed, streamPayments)
	var all []checker.Try
	for n := 0; len(all) < p.Deliveries/3; n++ {
		from := rnd.IntN(accounts)
		t := checker.Try{
			Key: fmt.Sprintf("key-%d-%d", p.Seed, n), From: account(from), To: account((from + 1 + rnd.IntN(accounts-1)) % accounts),
			Amount: 1 + rnd.Int64N(500), Currency: []string{"EUR", "USD"}[rnd.IntN(2)], Reference: fmt.Sprintf("ref-%d-%d", p.Seed, n),
		}
		all = append(all, t)
		for range rnd.IntN(3) {
			all = append(all, t)
		}
		if rnd.IntN(5) == 0 {
			t.Amount++
			t.Reference += "-other"
			all = append(all, t)
		}
	}
	return all
}

// run asks for all payments, perSecond together, and returns when each was answered.
func (p *payer) run(ctx context.Context, all []checker.Try, perSecond int) {
	p.open.Add(int64(len(all)))
	work := make(chan checker.Try)
	var asking sync.WaitGroup
	for range payers {
		asking.Go(func() { // ends when work is closed
			for t := range work {
				p.pay(ctx, t)
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i, t := range all {
		if i%2 == 0 { // in pairs, so that repeats of a key meet
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		select {
		case work <- t:
		case <-ctx.Done():
		}
	}
	close(work)
	asking.Wait()
}

func (p *payer) pay(ctx context.Context, t checker.Try) {
	body, err := json.Marshal(map[string]any{"from": t.From, "to": t.To, "amount": t.Amount, "currency": t.Currency, "reference": t.Reference})
	if err != nil {
		panic(err) // texts and a number cannot fail
	}
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + p.token}, "Idempotency-Key": {t.Key}}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		t.T0 = time.Now()
		t.HTTP, t.Body = post(ctx, p.http, p.url+"/v1/payments", header, body)
		t.T1 = time.Now()
		p.mu.Lock()
		p.tries = append(p.tries, t)
		p.mu.Unlock()
		switch t.HTTP {
		case http.StatusCreated, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
			p.open.Add(-1)
			return
		}
		pause(ctx, 50*time.Millisecond*time.Duration(1+min(attempt, 5)))
	}
}

func (p *payer) told() []checker.Try {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]checker.Try(nil), p.tries...)
}

package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"hookledger/schema/provider"
)

// Options say what to send. Counts must be positive, shares within 0 and 1.
type Options struct {
	// URL of the receiver, without /webhooks/….
	URL string
	// Count is the number of distinct events, Accounts that of the accounts among
	// which they fall.
	Count    int
	Accounts int
	// Duplicates is the share of events that are delivered a second time, Debits the
	// share that debits.
	Duplicates float64
	Debits     float64
	// Currencies to draw from, in upper case.
	Currencies []string
	// Rate is in deliveries a second; zero is as fast as they are answered.
	Rate float64
	// Concurrency is the number of deliveries under way at once.
	Concurrency int
	// Seed decides everything that is drawn.
	Seed uint64
	// Retry sends again what was not answered clearly, up to GiveUp after its first
	// attempt.
	Retry  bool
	GiveUp time.Duration
}

// Bounds of one run: 40 bytes are kept of each event, 8 KiB and more of each delivery
// under way. A slower rate than minRate would not send a second one in years.
const (
	maxCount       = 100_000_000
	maxConcurrency = 10_000
	minRate        = 1e-6
)

// check returns what is wrong with o.
func (o *Options) check() error {
	receiver, err := url.Parse(o.URL)
	switch {
	case err != nil || receiver.Scheme != "http" && receiver.Scheme != "https" || receiver.Host == "":
		return fmt.Errorf("--url %q is no address such as http://127.0.0.1:8080", o.URL)
	case o.Count < 1 || o.Count > maxCount:
		return fmt.Errorf("--count must be between 1 and %d", maxCount)
	case o.Accounts < 1:
		return errors.New("--accounts must be at least 1")
	case o.Concurrency < 1 || o.Concurrency > maxConcurrency:
		return fmt.Errorf("--concurrency must be between 1 and %d", maxConcurrency)
	case o.GiveUp < 0:
		return errors.New("--give-up must not be negative")
	case !(o.Duplicates >= 0 && o.Duplicates <= 1):
		return errors.New("--duplicates is a share between 0 and 1")
	case !(o.Debits >= 0 && o.Debits <= 1):
		return errors.New("--debits is a share between 0 and 1")
	case !(o.Rate == 0 || o.Rate >= minRate):
		return fmt.Errorf("--rate is in deliveries a second, %g or more; 0 is as fast as they are answered", minRate)
	case len(o.Currencies) == 0:
		return errors.New("--currencies needs at least one")
	}
	return nil
}

// event is one planned event.
type event struct {
	i        int
	fact     provider.Fact
	delivery provider.Delivery
	sha256   string
}

// firstOccurred is when the first event of every run occurred; the others follow by the
// second. It is fixed because the time is part of the bytes.
var firstOccurred = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// maxAmount keeps amounts in the range of a shop's.
const maxAmount = 50_000

// newEvent composes event i of a run.
func newEvent(source *provider.Source, o *Options, i int) (event, error) {
	r := rand.New(rand.NewPCG(o.Seed, uint64(i)))
	amount := 1 + r.Int64N(maxAmount)
	account := fmt.Sprintf("acct_%d", 1+r.IntN(o.Accounts))
	currency := o.Currencies[r.IntN(len(o.Currencies))]
	if r.Float64() < o.Debits {
		amount = -amount
	}
	id := fmt.Sprintf("send_%d_%d", o.Seed, i)
	fact := provider.Fact{
		EventID: id, Movement: "mv_" + id, Account: account, Amount: amount, Currency: currency,
		OccurredAt: firstOccurred.Add(time.Duration(i) * time.Second), Live: true,
	}
	d, err := source.Compose(fact)
	if err != nil && fact.Amount < 0 {
		fact.Amount = -fact.Amount // the source has no rule that debits
		d, err = source.Compose(fact)
	}
	if err != nil {
		return event{}, fmt.Errorf("%w: `hookledger sources events %s` lists what its events can say, and --currencies chooses the currency", err, source.Name())
	}
	// Where an ID is made of fields, it is not the fact's.
	items, err := source.Identify(d)
	if err != nil || len(items) != 1 {
		return event{}, fmt.Errorf("compose event %d for source %s: got %d events: %w", i, source.Name(), len(items), err)
	}
	fact.EventID = items[0].ID
	sum := sha256.Sum256(d.Body)
	return event{i: i, fact: fact, delivery: d, sha256: hex.EncodeToString(sum[:])}, nil
}

// maxRepeatDistance is how many deliveries later a repeat is sent at most. Near ones
// meet their first attempt in flight, far ones a settled event.
const maxRepeatDistance = 100

// schedule is the order of deliveries, as indexes of events.
func schedule(o *Options) []int {
	r := rand.New(rand.NewPCG(o.Seed, 1<<63))
	repeats := map[int][]int{} // by the index of the event behind which they are sent
	for i := range o.Count {
		if r.Float64() < o.Duplicates {
			at := min(i+r.IntN(maxRepeatDistance), o.Count-1)
			repeats[at] = append(repeats[at], i)
		}
	}
	order := make([]int, 0, o.Count+o.Count/4)
	for i := range o.Count {
		order = append(order, i)
		order = append(order, repeats[i]...)
	}
	return order
}

package ingest

import (
	"errors"
	"io"
	"sync/atomic"
)

// budget bounds the bytes of bodies held at once.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) reserve(n int) bool {
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) release(n int) { b.used.Add(-int64(n)) }

var (
	errNoRoom  = errors.New("too many bytes in flight")
	errTooLong = errors.New("the body is longer than it may be")
)

// firstPiece is what is allocated before a byte has arrived. More is reserved as bytes
// arrive, so that a sender who promises a large body and is slow holds little.
const firstPiece = 8 << 10

// readBody reads r, which fails beyond limit bytes, to its end. length is what the sender
// says, -1 if it says nothing. What was reserved of b is returned with every outcome and
// is the caller's to release. While a body grows, it is held twice.
func readBody(r io.Reader, length int64, limit int, b *budget) (body []byte, reserved int, err error) {
	most := limit
	if length >= 0 && length < int64(most) {
		most = int(length)
	}
	// One byte more than the longest body, so that its end is seen without growing.
	most++
	size := min(most, firstPiece)
	if !b.reserve(size) {
		return nil, 0, errNoRoom
	}
	reserved = size
	body = make([]byte, 0, size)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, reserved, nil
		case err != nil:
			return nil, reserved, err
		case len(body) < cap(body):
			continue
		}
		if cap(body) == most {
			// A reader that gave more than it may; http.MaxBytesReader does not.
			return nil, reserved, errTooLong
		}
		size := min(most, 2*cap(body))
		if !b.reserve(size) {
			return nil, reserved, errNoRoom
		}
		grown := make([]byte, len(body), size)
		copy(grown, body)
		// Both were held until here.
		b.release(cap(body))
		reserved += size - cap(body)
		body = grown
	}
}

package ledger

import (
	"encoding/binary"
	"time"
)

// Parameters are sent in binary with their types named, so that a statement needs no
// description by the server: parse, bind and execute travel together, nothing stays
// prepared, and a pooler in transaction mode is no obstacle. Per value this is an
// append, where the generic encoder of the driver costs a lookup and two calls.

// Object identifiers of types, from pg_type.dat of Postgres; they never change.
const (
	oidBytea       = 17
	oidInt8        = 20
	oidInt4        = 23
	oidText        = 25
	oidTimestamptz = 1184
	oidUUID        = 2950
	oidJSONB       = 3802

	oidByteaArray       = 1001
	oidInt4Array        = 1007
	oidTextArray        = 1009
	oidInt8Array        = 1016
	oidTimestamptzArray = 1185
	oidUUIDArray        = 2951
	oidJSONBArray       = 3807
)

// arg is one parameter of a statement. A nil value is null.
type arg struct {
	oid   uint32
	value []byte
}

func textArg(s string) arg   { return arg{oidText, []byte(s)} }
func uuidArg(u [16]byte) arg { return arg{oidUUID, u[:]} }
func int8Arg(n int64) arg    { return arg{oidInt8, binary.BigEndian.AppendUint64(nil, uint64(n))} }
func int4Arg(n int32) arg    { return arg{oidInt4, binary.BigEndian.AppendUint32(nil, uint32(n))} }

// column is a one-dimensional array parameter under construction.
type column struct {
	array uint32
	buf   []byte
	n     int
}

// headerBytes is the binary header of a one-dimensional array: dimensions, null
// flag, element type, length, lower bound.
const headerBytes = 5 * 4

// newColumn returns an empty array of rows elements of about width bytes.
func newColumn(array, elem uint32, rows, width int) *column {
	c := &column{array: array, buf: make([]byte, headerBytes, headerBytes+rows*(4+width))}
	binary.BigEndian.PutUint32(c.buf[0:], 1)
	binary.BigEndian.PutUint32(c.buf[4:], 1) // may hold nulls
	binary.BigEndian.PutUint32(c.buf[8:], elem)
	binary.BigEndian.PutUint32(c.buf[16:], 1)
	return c
}

func uuidColumn(rows int) *column        { return newColumn(oidUUIDArray, oidUUID, rows, 16) }
func int8Column(rows int) *column        { return newColumn(oidInt8Array, oidInt8, rows, 8) }
func int4Column(rows int) *column        { return newColumn(oidInt4Array, oidInt4, rows, 4) }
func timeColumn(rows int) *column        { return newColumn(oidTimestamptzArray, oidTimestamptz, rows, 8) }
func textColumn(rows, width int) *column { return newColumn(oidTextArray, oidText, rows, width) }
func byteaColumn(rows, width int) *column {
	return newColumn(oidByteaArray, oidBytea, rows, width)
}
func jsonbColumn(rows, width int) *column {
	return newColumn(oidJSONBArray, oidJSONB, rows, width)
}

func (c *column) length(n int) {
	c.n++
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n))
}

func (c *column) null() {
	c.n++
	c.buf = append(c.buf, 0xff, 0xff, 0xff, 0xff)
}

func (c *column) uuid(u [16]byte) {
	c.length(16)
	c.buf = append(c.buf, u[:]...)
}

func (c *column) int8(n int64) {
	c.length(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(n))
}

func (c *column) int4(n int32) {
	c.length(4)
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n))
}

// time adds t, or null if it is zero.
func (c *column) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.length(8)
	c.buf = appendTime(c.buf, t)
}

// timeOrEpoch adds t, or the Unix epoch if it is zero, for columns that are not null.
func (c *column) timeOrEpoch(t time.Time) {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	c.time(t)
}

func (c *column) text(s string) {
	c.length(len(s))
	c.buf = append(c.buf, s...)
}

// optionalText adds s, or null if it is empty.
func (c *column) optionalText(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

// bytes adds b, or null if it is nil.
func (c *column) bytes(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.length(len(b))
	c.buf = append(c.buf, b...)
}

// jsonb adds a JSON text; the format is its version, 1, and the text.
func (c *column) jsonb(text []byte) {
	c.length(1 + len(text))
	c.buf = append(append(c.buf, 1), text...)
}

// arg closes the array.
func (c *column) arg() arg {
	binary.BigEndian.PutUint32(c.buf[12:], uint32(c.n))
	return arg{c.array, c.buf}
}

// postgresEpoch is where timestamptz counts microseconds from, as Unix microseconds.
const postgresEpoch = 946_684_800_000_000

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMicro()-postgresEpoch))
}

func readInt8(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func readTime(b []byte) time.Time { return time.UnixMicro(readInt8(b) + postgresEpoch).UTC() }

func readInt4(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

func jsonbArg(text []byte) arg { return arg{oidJSONB, append([]byte{1}, text...)} }

package listener

import (
	"io"
	"net/http"
	"time"
)

// How much a sender may still send after it was answered early, and for how long. Up to
// smallBody net/http handles itself.
const (
	smallBody   = 64 << 10
	lingerBytes = 16 << 20
	lingerTime  = 2 * time.Second
)

// AnswerEarly has a request answered whose body was not read to its end, and closes the
// connection cleanly. Closing while bytes arrive would reset the connection, and a
// reset can destroy an answer before the sender reads it; so what arrives is read and
// thrown away for a while.
func AnswerEarly(w http.ResponseWriter, r *http.Request, answer func()) {
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		answer() // net/http reads the rest and keeps the connection
		return
	}
	control := http.NewResponseController(w)
	// Without it net/http would read the body before it writes the answer. Only HTTP/1
	// knows it, and only HTTP/1 is spoken here.
	_ = control.EnableFullDuplex()
	w.Header().Set("Connection", "close")
	answer()
	if control.Flush() != nil || r.Header.Get("Expect") != "" {
		return // gone, or waiting for leave to send, which it does not get
	}
	if control.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}

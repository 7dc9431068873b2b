package listener

import (
	stdlog "log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
)

// Limits of every address. A handshake of TLS has as long as a header.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 60 * time.Second
	// maxHeaderBytes bounds the request line and headers at 16 KiB: net/http reads 4 KiB
	// more than it is told.
	maxHeaderBytes = 16<<10 - 4<<10
	// writeSpare is what an answer may take to be written.
	writeSpare = 10 * time.Second
)

// New returns a server. read is how long a whole request may take to arrive, answer the
// longest time from then until h answers.
func New(h http.Handler, read, answer time.Duration, log zerolog.Logger) *http.Server {
	s := &http.Server{
		Handler:           lastOfItsConnection(h),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       read,
		WriteTimeout:      read + answer + writeSpare,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          stdlog.New(debugWriter{log}, "", 0),
		// HTTP/1 alone, with TLS too: streams and their limits are a second way in that
		// nobody needs here, and early answers rely on it.
		Protocols: new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	return s
}

// Serve answers until s is shut down, over TLS if s has a TLSConfig. Beyond the limit a
// connection waits in the kernel, where it costs next to nothing.
func Serve(s *http.Server, l net.Listener, maxConnections int) error {
	limited := netutil.LimitListener(l, maxConnections)
	if s.TLSConfig != nil {
		return s.ServeTLS(limited, "", "")
	}
	return s.Serve(limited)
}

// lastOfItsConnection closes a connection after a request whose end another parser may
// see elsewhere: one in chunks, whose Content-Length net/http has taken away if it had
// both, and one of HTTP/1.0, whose Transfer-Encoding it has. What follows on such a
// connection may be nobody's request (RFC 9112, section 6.1).
func lastOfItsConnection(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// debugWriter gives the lines of net/http, which quote what clients send, to the log
// at debug, as text that cannot forge a line.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.Debug().Str("component", "http").Msg(string(line))
	return len(line), nil
}

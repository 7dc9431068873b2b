package ingest

import (
	stdlog "log"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
)

// Limits of the public listener. A delivery of 1 MiB within 15 s needs 70 KiB/s. A
// handshake of TLS has as long as a header.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 16 << 10
)

func (s *Server) httpServer() *http.Server {
	h := &http.Server{
		Handler:           lastOfItsConnection(s.routes()),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		// The answer comes at the latest when the ack timeout is over.
		WriteTimeout:   readTimeout + s.config.AckTimeout + 10*time.Second,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       stdlog.New(debugWriter{s.log}, "", 0),
		// HTTP/1 alone, with TLS too: streams and their limits are a second way in that
		// no provider needs, and early answers rely on it.
		Protocols: new(http.Protocols),
	}
	h.Protocols.SetHTTP1(true)
	if s.certificate != nil {
		h.TLSConfig = s.certificate.config()
	}
	return h
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

// serve answers until the server is shut down.
func (s *Server) serve() error {
	// Beyond the limit a connection waits in the kernel, where it costs next to nothing.
	limited := netutil.LimitListener(s.listener, s.config.MaxConnections)
	if s.certificate != nil {
		return s.http.ServeTLS(limited, "", "")
	}
	return s.http.Serve(limited)
}

// debugWriter gives the lines of net/http, which quote what clients send, to the log
// at debug, as text that cannot forge a line.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.Debug().Str("component", "http").Msg(string(line))
	return len(line), nil
}

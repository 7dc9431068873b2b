package ingest

import (
	"net/http"
	"time"

	"hookledger/ingest/listener"
)

// readTimeout is how long a delivery may take to arrive: 1 MiB within it needs 70 KiB/s.
const readTimeout = 15 * time.Second

// httpServer makes the server. An answer comes at the latest when the ack timeout is over.
func (s *Server) httpServer() *http.Server {
	h := listener.New(s.routes(), readTimeout, s.config.AckTimeout, s.log)
	if s.certificate != nil {
		h.TLSConfig = s.certificate.config()
	}
	return h
}

// serve answers until the server is shut down.
func (s *Server) serve() error { return listener.Serve(s.http, s.listener, s.config.MaxConnections) }

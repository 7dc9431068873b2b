package ingest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// sender is the address that a delivery comes from: of who connected or, if that is a
// proxy of ours, of who connected to it, which it wrote at the end of X-Forwarded-For.
// What stands further left anybody may have written. The zero address if it cannot be
// read: nobody has that.
func (s *Server) sender(r *http.Request) netip.Addr {
	connected, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := connected.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.ownProxy(addr) {
			break
		}
		hop = strings.TrimSpace(hop)
		if hop == "" {
			break // the proxy connects for itself
		}
		next, err := netip.ParseAddr(hop)
		if err != nil {
			return netip.Addr{}
		}
		addr = next.Unmap()
	}
	return addr
}

func (s *Server) ownProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// proxies reads TrustedProxies, which Validate checked.
func (c *Config) proxies() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		if p, err := readNetwork(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// readNetwork reads an address or a network.
func readNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

package signature

import (
	"net/netip"

	"hookledger/schema"
	"hookledger/schema/source"
)

// networksScheme believes who sends from an address of the provider. It proves nothing
// about the body, and nothing at all behind a proxy that is not told apart.
type networksScheme struct{ sig source.Signature }

func (s networksScheme) headers() []string { return nil }

func (s networksScheme) lock([]byte) (lock, error) { return networkLock(s.sig.Networks), nil }

func (s networksScheme) open() (string, lock) { return "networks", networkLock(s.sig.Networks) }

func (s networksScheme) read(r Request) ([]claim, error) {
	if !r.Remote.IsValid() {
		return nil, reject(Address, "the sender's address is not known")
	}
	// A listener for both protocols sees IPv4 as ::ffff:192.0.2.1.
	remote := r.Remote.Unmap().WithZone("")
	for _, network := range s.sig.Networks {
		if network.Contains(remote) {
			return []claim{{remote: remote}}, nil
		}
	}
	return nil, reject(Address, "the sender's address is not one of the provider's")
}

func (s networksScheme) keep(r Request) []schema.Header {
	return []schema.Header{{Key: keptRemote, Value: []byte(r.Remote.Unmap().WithZone("").String())}}
}

func (s networksScheme) sign(lock, *Message) error { return nil }

// networkLock matches claims from these networks.
type networkLock []netip.Prefix

func (l networkLock) scheme() string { return "networks" }

func (l networkLock) matches(c *claim) bool {
	for _, network := range l {
		if network.Contains(c.remote) {
			return true
		}
	}
	return false
}

// noneScheme believes everybody. It is for providers that sign nothing and send nothing
// but an ID to fetch.
type noneScheme struct{}

func (noneScheme) headers() []string             { return nil }
func (noneScheme) lock([]byte) (lock, error)     { return openLock{}, nil }
func (noneScheme) open() (string, lock)          { return "none", openLock{} }
func (noneScheme) read(Request) ([]claim, error) { return []claim{{}}, nil }
func (noneScheme) sign(lock, *Message) error     { return nil }

type openLock struct{}

func (openLock) scheme() string      { return "none" }
func (openLock) matches(*claim) bool { return true }

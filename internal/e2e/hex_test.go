package e2e

import "encoding/hex"

// hexText is bytes that JSON holds as hex.
type hexText []byte

// UnmarshalText reads hex.
func (h *hexText) UnmarshalText(text []byte) error {
	*h = make([]byte, hex.DecodedLen(len(text)))
	_, err := hex.Decode(*h, text)
	return err
}

package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// bareAccept is the receiver that one writes in an afternoon: echo, an HMAC of the body,
// a record with the event's ID as key, acks=all, 200. It does not look at the time of
// signing, parses nothing, writes no headers, bounds nothing and measures nothing.
func bareAccept(ctx context.Context, o order) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.DefaultProduceTopic(o.Topic), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Ping(ctx); err != nil {
		return err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.POST("/webhooks/stripe", func(c echo.Context) error {
		text, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		signedAt, mac, ok := strings.Cut(strings.TrimPrefix(c.Request().Header.Get("Stripe-Signature"), "t="), ",v1=")
		got, err := hex.DecodeString(mac)
		if !ok || err != nil || !isBody(text) {
			return c.NoContent(http.StatusBadRequest)
		}
		h := hmac.New(sha256.New, []byte(stripeSecret))
		h.Write([]byte(signedAt + "."))
		h.Write(text)
		if !hmac.Equal(got, h.Sum(nil)) {
			return c.NoContent(http.StatusBadRequest)
		}
		r := &kgo.Record{Key: text[idAt-len("evt_") : idAt+idDigits], Value: text}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			return c.NoContent(http.StatusServiceUnavailable)
		}
		return c.NoContent(http.StatusOK)
	})
	go func() { // ends with the process
		<-ctx.Done()
		_ = e.Close()
	}()
	if err := e.Start(o.Listen); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

package config

import (
	"strings"
	"testing"

	"hookledger/internal/testkit/authority"
)

func TestDatabase_OtherMachinesNeedVerifiedTLS(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	ca := authority.New(t)
	const ok = ""
	for _, c := range []struct{ url, want, becomes string }{
		{"postgres://u:geheim@127.0.0.1:5432/db", ok, ""},
		{"postgres://u:geheim@localhost/db?sslmode=disable", ok, ""},
		{"postgres:///db?host=/run/postgresql", ok, ""},
		{"postgres://u:geheim@db/books", ok, "postgres://u:geheim@db/books?sslmode=verify-full"},
		{"postgres://u:geheim@db/books?connect_timeout=3", ok, "postgres://u:geheim@db/books?connect_timeout=3&sslmode=verify-full"},
		{"host=10.0.0.7 user=u dbname=books", ok, "host=10.0.0.7 user=u dbname=books sslmode=verify-full"},
		{"postgres://u:geheim@db/books?sslmode=verify-full&sslrootcert=" + ca.File, ok, ""},
		{"postgres://u:geheim@127.0.0.1,db2/books", ok, "postgres://u:geheim@127.0.0.1,db2/books?sslmode=verify-full"},
		{"postgres://u:geheim@db/books?sslmode=disable", "leads to db, another machine", ""},
		{"postgres://u:geheim@db/books?sslmode=prefer", "database.insecure_plaintext: true", ""},
		{"postgres://u:geheim@db/books?sslmode=require", "set sslmode=verify-full", ""},
		{"postgres://u:geheim@db/books?sslmode=verify-ca&sslrootcert=" + ca.File, "set sslmode=verify-full", ""},
		{"postgres://u:geheim@127.0.0.1,db2/books?sslmode=prefer", "leads to db2", ""},
		{"postgres://u:geheim@db/books?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "look at sslrootcert", ""},
	} {
		text := "database: { url: '" + c.url + "' }"
		l, err := Parse("c.yaml", []byte(text), nil)
		switch {
		case c.want != ok && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.url, err, c.want)
		case c.want == ok && err != nil:
			t.Errorf("%s: got %v", c.url, err)
		case c.becomes != "" && l.Database.URL != c.becomes:
			t.Errorf("%s: got %s, want %s", c.url, l.Database.URL, c.becomes)
		case c.want == ok && c.becomes == "" && l.Database.URL != c.url:
			t.Errorf("%s became %s", c.url, l.Database.URL)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("the error shows the password: %v", err)
		}
		l, err = Parse("c.yaml", []byte(text[:len(text)-1]+", insecure_plaintext: true }"), nil)
		if strings.Contains(c.url, "/nowhere/") {
			continue
		}
		if err != nil || l.Database.URL != c.url {
			t.Errorf("%s with insecure_plaintext: got %v", c.url, err)
		}
	}
}

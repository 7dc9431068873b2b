package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/broker"
)

// Database says where Postgres is.
type Database struct {
	// URL is a connection URL or keyword=value text, as libpq reads them. To another
	// machine sslmode is verify-full unless the URL says otherwise.
	URL string `yaml:"url"`
	// MaxConnections bounds the pool of one process. Zero: as many as its work needs.
	MaxConnections int `yaml:"max_connections"`
	// InsecurePlaintext accepts connections to other machines that are not encrypted, or
	// whose other end is not known to be the database.
	InsecurePlaintext bool `yaml:"insecure_plaintext"`
}

const verifyFull = "verify-full"

// encrypt completes a URL that says nothing of TLS. libpq's default, prefer, talks in
// the clear to a server that asks for it, and believes any certificate.
func (d *Database) encrypt() {
	if d.URL == "" || d.InsecurePlaintext || os.Getenv("PGSSLMODE") != "" || strings.Contains(d.URL, "sslmode") {
		return
	}
	if host, err := unverifiedHost(d.URL); err != nil || host == "" {
		return
	}
	if u, err := url.Parse(d.URL); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += "sslmode=" + verifyFull
		d.URL = u.String()
		return
	}
	d.URL += " sslmode=" + verifyFull
}

func (d *Database) validate() error {
	var errs []error
	if d.MaxConnections < 0 {
		errs = append(errs, fmt.Errorf("database.max_connections is %d: set 0 for the default or a positive number", d.MaxConnections))
	}
	if d.URL == "" { // not every command needs one
		return errors.Join(errs...)
	}
	host, err := unverifiedHost(d.URL)
	switch {
	case err != nil:
		errs = append(errs, err)
	case host != "" && !d.InsecurePlaintext:
		errs = append(errs, fmt.Errorf("database.url leads to %s, another machine, without sslmode=verify-full: whoever is on the network could read the books, or be the database: "+
			"set sslmode=verify-full (and sslrootcert=FILE for a CA of your own), or database.insecure_plaintext: true to accept that", host))
	}
	return errors.Join(errs...)
}

// unverifiedHost returns a host on another machine to which a connection may be made
// without TLS, or without knowing who answers; empty if there is none.
func unverifiedHost(connection string) (string, error) {
	c, err := pgxpool.ParseConfig(connection)
	if err != nil {
		// pgx redacts passwords it can find; an unreadable URL is not repeated at all.
		if strings.Contains(err.Error(), "CA file") || strings.Contains(err.Error(), "cert") {
			return "", errors.New("database.url names a certificate or key that cannot be read: look at sslrootcert, sslcert and sslkey")
		}
		return "", errors.New("database.url cannot be read as a connection URL: write postgres://user:password@host:5432/database")
	}
	cc := c.ConnConfig
	if far(cc.Host) && (cc.TLSConfig == nil || cc.TLSConfig.InsecureSkipVerify) {
		return cc.Host, nil
	}
	for _, f := range cc.Fallbacks {
		if far(f.Host) && (f.TLSConfig == nil || f.TLSConfig.InsecureSkipVerify) {
			return f.Host, nil
		}
	}
	return "", nil
}

// far tells whether a host is another machine. A path is a socket of this one.
func far(host string) bool {
	return !strings.HasPrefix(host, "/") && !strings.HasPrefix(host, "@") && !broker.IsLoopback(host)
}

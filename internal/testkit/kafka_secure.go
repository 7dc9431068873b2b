package testkit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/testkit/authority"
)

// SecureKafka is a broker of real Apache Kafka with TLS, SASL and its own authorizer,
// which refuses everything that no ACL allows. The listener of KafkaCluster.Brokers is
// for the test itself, which may do everything there.
type SecureKafka struct {
	*KafkaCluster
	// Authority signed the broker's certificate and must sign those of mTLS clients.
	Authority *authority.Authority
	// SASL is the address of the listener with TLS and SASL: SCRAM, and PLAIN for the
	// user PlainUser.
	SASL string
	// MTLS is the address of the listener that wants a certificate from clients, whose
	// common name is the user.
	MTLS string
}

// The user that may log in with PLAIN.
const (
	PlainUser     = "plain"
	PlainPassword = "plain-canary-password"
)

// ACLCommand is the official tool for ACLs, by class.
const ACLCommand = "org.apache.kafka.tools.AclCommand"

// NewSecureKafka starts a secured broker of the test's own.
func NewSecureKafka(tb testing.TB) *SecureKafka {
	tb.Helper()
	s := &SecureKafka{Authority: authority.New(tb)}
	s.SASL, s.MTLS = FreeAddr(tb), FreeAddr(tb)
	extra, err := s.config()
	if err != nil {
		tb.Fatal(err)
	}
	s.KafkaCluster = ownKafka(tb, 1, extra)
	return s
}

// config is what the broker has beside that of every test.
func (s *SecureKafka) config() (kafkaExtra, error) {
	own := s.Authority.Issue("broker", 24*time.Hour, "127.0.0.1", "localhost")
	store := own.KeyFile + ".store"
	var pem []byte
	for _, path := range []string{own.KeyFile, own.CertFile} {
		text, err := os.ReadFile(path)
		if err != nil {
			return kafkaExtra{}, err
		}
		pem = append(pem, text...)
	}
	if err := os.WriteFile(store, pem, 0o600); err != nil {
		return kafkaExtra{}, err
	}
	var c bytes.Buffer
	fmt.Fprintf(&c, `
ssl.keystore.type=PEM
ssl.keystore.location=%s
ssl.truststore.type=PEM
ssl.truststore.location=%s
listener.name.mtls.ssl.client.auth=required
listener.name.mtls.ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%s="%s";
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:ANONYMOUS
`, store, s.Authority.File, PlainUser, PlainPassword)
	return kafkaExtra{
		listeners: []kafkaListener{{name: "SASL", protocol: "SASL_SSL", addr: s.SASL}, {name: "MTLS", protocol: "SSL", addr: s.MTLS}},
		config:    c.String(),
	}, nil
}

// AddUser makes a user who may log in with SCRAM, in both sizes, and may do nothing yet.
func (s *SecureKafka) AddUser(name, password string) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	adm := kadm.NewClient(s.Client())
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		done, err := adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: name, Mechanism: m, Iterations: 4096, Password: password}})
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			s.tb.Fatalf("make Kafka user %s: %v", name, err)
		}
	}
}

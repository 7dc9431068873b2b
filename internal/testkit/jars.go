package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// javaFlags keep a broker small and quick to start: measured with 4.3.1, one
// listens after 2.2 s and three stay at 300 MB each.
var javaFlags = []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// kafkaInstallation is what runs brokers and tools.
type kafkaInstallation struct {
	java      string
	classPath string
}

// kafkaParts finds Java and the jars, or says how to get them.
var kafkaParts = sync.OnceValues(func() (kafkaInstallation, error) {
	root, err := moduleRoot()
	if err != nil {
		return kafkaInstallation{}, err
	}
	jars := filepath.Join(root, ".cache", "kafka")
	if _, err := os.Stat(filepath.Join(jars, ".complete")); err != nil {
		return kafkaInstallation{}, errors.New("this test needs the jars of Apache Kafka in .cache/kafka: run `make test`, or `make kafka` to fetch them alone")
	}
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	if java, err = exec.LookPath(java); err != nil {
		return kafkaInstallation{}, fmt.Errorf("this test runs Apache Kafka, which needs Java 17 or newer: install the Debian package default-jre-headless: %w", err)
	}
	return kafkaInstallation{java: java, classPath: filepath.Join(jars, "*")}, nil
})

// command prepares one of Kafka's main classes.
func (k kafkaInstallation) command(ctx context.Context, logLevel, class string, args ...string) *exec.Cmd {
	java := append([]string{}, javaFlags...)
	java = append(java, "-Dorg.apache.logging.log4j.level="+logLevel, "-cp", k.classPath, class)
	return exec.CommandContext(ctx, k.java, append(java, args...)...)
}

// run runs one of the official tools to its end and returns its output. The
// error has what it complained about.
func (k kafkaInstallation) run(ctx context.Context, class string, args ...string) (string, error) {
	cmd := k.command(ctx, "ERROR", class, args...)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s %s: %w: %s%s", class, strings.Join(args, " "), err, out.String(), complaints.String())
	}
	return out.String(), nil
}

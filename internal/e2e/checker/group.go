package checker

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Tool runs one of Kafka's own command-line tools, by class, against the cluster
// and returns what it printed.
type Tool func(ctx context.Context, class string, args ...string) (string, error)

// Group is what Kafka's own tool says of a consumer group and a topic.
type Group struct {
	// Committed has the committed offset of each partition that has one.
	Committed map[int32]int64
	// End has the end of each partition that is listed.
	End map[int32]int64
	// Members counts the partitions that a member owns now.
	Members int
}

const groupCommand = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"

// ReadGroup asks ConsumerGroupCommand for the offsets of group in topic.
func ReadGroup(ctx context.Context, tool Tool, group, topic string) (Group, error) {
	out, err := tool(ctx, groupCommand, "--describe", "--offsets", "--group", group)
	if err != nil {
		return Group{}, fmt.Errorf("describe group %s: %w", group, err)
	}
	g, err := parseGroup(out, group, topic)
	if err != nil {
		return Group{}, fmt.Errorf("describe group %s: %w in:\n%s", group, err, out)
	}
	return g, nil
}

// ResetToEarliest moves the group, which must be empty, to the beginning of topic.
func ResetToEarliest(ctx context.Context, tool Tool, group, topic string) error {
	out, err := tool(ctx, groupCommand, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
	if err != nil {
		return fmt.Errorf("reset offsets of group %s: %w", group, err)
	}
	// The tool prints "Error: …" and ends with 0 when the group is not empty.
	if strings.Contains(out, "Error") || !strings.Contains(out, topic) {
		return fmt.Errorf("reset offsets of group %s: the tool says: %s", group, out)
	}
	return nil
}

// parseGroup reads the table: GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET
// LAG CONSUMER-ID HOST CLIENT-ID, as printed by Kafka 4.3.1. A dash is no value.
func parseGroup(out, group, topic string) (Group, error) {
	g := Group{Committed: map[int32]int64{}, End: map[int32]int64{}}
	columns := map[string]int{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) > 0 && f[0] == "GROUP":
			for i, name := range f {
				columns[name] = i
			}
			continue
		case len(columns) == 0 || len(f) < len(columns) || f[0] != group || f[columns["TOPIC"]] != topic:
			continue
		}
		partition, err := strconv.ParseInt(f[columns["PARTITION"]], 10, 32)
		if err != nil {
			return g, fmt.Errorf("read partition: %w", err)
		}
		for name, into := range map[string]map[int32]int64{"CURRENT-OFFSET": g.Committed, "LOG-END-OFFSET": g.End} {
			text := f[columns[name]]
			if text == "-" {
				continue
			}
			if into[int32(partition)], err = strconv.ParseInt(text, 10, 64); err != nil {
				return g, fmt.Errorf("read %s: %w", name, err)
			}
		}
		if f[columns["CONSUMER-ID"]] != "-" {
			g.Members++
		}
	}
	if len(columns) == 0 {
		return g, fmt.Errorf("no table")
	}
	for _, name := range []string{"TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "CONSUMER-ID"} {
		if _, ok := columns[name]; !ok {
			return g, fmt.Errorf("no column %s", name)
		}
	}
	return g, nil
}

// committedByPython prints, a line each, partition, committed offset or -1, and end.
const committedByPython = `
import sys
from confluent_kafka import Consumer, TopicPartition

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "enable.auto.commit": False})
partitions = consumer.list_topics(sys.argv[3], timeout=30).topics[sys.argv[3]].partitions
for p in consumer.committed([TopicPartition(sys.argv[3], p) for p in partitions], timeout=30):
    if p.error:
        sys.exit("partition %d: %s" % (p.partition, p.error))
    low, high = consumer.get_watermark_offsets(TopicPartition(sys.argv[3], p.partition), timeout=30)
    print(p.partition, max(p.offset, -1), high)
consumer.close()
`

// ReadGroupByPython is ReadGroup by the client confluent_kafka (librdkafka) of a Python:
// a tenth of the time. It does not tell members.
func ReadGroupByPython(ctx context.Context, python string, brokers []string, group, topic string) (Group, error) {
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", committedByPython, strings.Join(brokers, ","), group, topic)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return Group{}, fmt.Errorf("read offsets of group %s with %s: %w: %s", group, python, err, complaints.String())
	}
	g := Group{Committed: map[int32]int64{}, End: map[int32]int64{}}
	for line := range strings.Lines(out.String()) {
		var partition int32
		var committed, end int64
		if _, err := fmt.Sscan(line, &partition, &committed, &end); err != nil {
			return g, fmt.Errorf("read offsets of group %s: %w in %q", group, err, line)
		}
		g.End[partition] = end
		if committed >= 0 {
			g.Committed[partition] = committed
		}
	}
	if len(g.End) == 0 {
		return g, fmt.Errorf("read offsets of group %s: topic %s has no partition", group, topic)
	}
	return g, nil
}

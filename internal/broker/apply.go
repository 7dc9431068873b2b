package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Report tells what ApplyTopic did, or would do in a dry run.
type Report struct {
	Topic string `json:"topic"`
	// Created says that the topic did not exist.
	Created bool `json:"created"`
	// Changes are in the order in which they were made.
	Changes []Change `json:"changes"`
	// Notes tell what differs from the configuration and was left as it is.
	Notes  []string `json:"notes"`
	DryRun bool     `json:"dry_run"`
}

// Change is one setting that differed. From is empty for a new topic.
type Change struct {
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// ApplyTopic makes the topic of cfg what the configuration says: it creates the topic,
// or adds partitions and alters settings that differ. It never removes anything:
// partitions, replicas and a larger max.message.bytes or min.insync.replicas stay, with
// a note. With dryRun the brokers validate each step and change nothing.
//
// It may be called again after any error. Two calls at once are safe: the one that
// comes second finds the topic there.
func ApplyTopic(ctx context.Context, cl *kgo.Client, cfg Config, maxBodyBytes int, dryRun bool) (Report, error) {
	rep := Report{Topic: cfg.Topic, DryRun: dryRun, Changes: []Change{}, Notes: []string{}}
	if err := cfg.Validate(); err != nil {
		return rep, err
	}
	t, err := ReadTopic(ctx, cl, cfg)
	if errors.Is(err, ErrNoTopic) {
		created, err := createTopic(ctx, cl, cfg, maxBodyBytes, &rep)
		switch {
		case err != nil, created && dryRun:
			return rep, err
		case created:
			return rep, waitTopic(ctx, cl, cfg, maxBodyBytes)
		}
		t, err = ReadTopic(ctx, cl, cfg) // another process was faster
		if err != nil {
			return rep, err
		}
	} else if err != nil {
		return rep, err
	}
	if err := addPartitions(ctx, cl, cfg, t, &rep); err != nil {
		return rep, err
	}
	if t.Replication != cfg.Replication {
		rep.Notes = append(rep.Notes, fmt.Sprintf("replication is %d, configured is %d: reassign the partitions with kafka-reassign-partitions, or correct kafka.replication",
			t.Replication, cfg.Replication))
	}
	if err := alterSettings(ctx, cl, cfg, maxBodyBytes, t, &rep); err != nil || dryRun || len(rep.Changes) == 0 {
		return rep, err
	}
	return rep, waitTopic(ctx, cl, cfg, maxBodyBytes)
}

func createTopic(ctx context.Context, cl *kgo.Client, cfg Config, maxBodyBytes int, rep *Report) (bool, error) {
	adm := kadm.NewClient(cl)
	configs := make(map[string]*string)
	changes := []Change{
		{Setting: "partitions", To: fmt.Sprint(cfg.Partitions)},
		{Setting: "replication", To: fmt.Sprint(cfg.Replication)},
	}
	for _, s := range settings(cfg, maxBodyBytes) {
		configs[s.name] = kadm.StringPtr(s.value)
		changes = append(changes, Change{Setting: s.name, To: s.value})
	}
	create := adm.CreateTopics
	if rep.DryRun {
		create = adm.ValidateCreateTopics
	}
	rs, err := create(ctx, int32(cfg.Partitions), int16(cfg.Replication), configs, cfg.Topic)
	if err != nil {
		return false, fmt.Errorf("create topic %s: %w", cfg.Topic, err)
	}
	r, err := rs.On(cfg.Topic, nil)
	if err == nil {
		err = r.Err
	}
	switch {
	case errors.Is(err, kerr.TopicAlreadyExists):
		return false, nil
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return false, fmt.Errorf("create topic %s with kafka.replication %d: %w: start that many brokers, or lower kafka.replication", cfg.Topic, cfg.Replication, err)
	case err != nil:
		return false, fmt.Errorf("create topic %s: %w", cfg.Topic, explained(err, r.ErrMessage))
	}
	rep.Created, rep.Changes = true, changes
	return true, nil
}

// waitTopic waits until the brokers show what was asked for: they answer a change
// before each of them knows it (seen on Apache Kafka 4.3.1, with one broker), and
// whoever starts next must not be refused for it.
func waitTopic(ctx context.Context, cl *kgo.Client, cfg Config, maxBodyBytes int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		t, err := ReadTopic(ctx, cl, cfg)
		if err == nil && t.Partitions >= cfg.Partitions && !slices.ContainsFunc(settings(cfg, maxBodyBytes), func(s setting) bool { return !s.holds(t.Config[s.name]) }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for topic %s to be as configured: %w", cfg.Topic, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

func addPartitions(ctx context.Context, cl *kgo.Client, cfg Config, t Topic, rep *Report) error {
	switch {
	case t.Partitions == cfg.Partitions:
		return nil
	case t.Partitions > cfg.Partitions:
		rep.Notes = append(rep.Notes, fmt.Sprintf("the topic has %d partitions, kafka.partitions is %d: partitions cannot be removed, correct the configuration",
			t.Partitions, cfg.Partitions))
		return nil
	}
	adm := kadm.NewClient(cl)
	update := adm.UpdatePartitions
	if rep.DryRun {
		update = adm.ValidateUpdatePartitions
	}
	rs, err := update(ctx, cfg.Partitions, cfg.Topic)
	if err == nil {
		var r kadm.CreatePartitionsResponse
		if r, err = rs.On(cfg.Topic, nil); err == nil {
			err = r.Err
		}
	}
	if err != nil {
		return fmt.Errorf("raise partitions of topic %s from %d to %d: %w", cfg.Topic, t.Partitions, cfg.Partitions, err)
	}
	rep.Changes = append(rep.Changes, Change{"partitions", fmt.Sprint(t.Partitions), fmt.Sprint(cfg.Partitions)})
	return nil
}

func alterSettings(ctx context.Context, cl *kgo.Client, cfg Config, maxBodyBytes int, t Topic, rep *Report) error {
	var alter []kadm.AlterConfig
	var changes []Change
	for _, s := range settings(cfg, maxBodyBytes) {
		got := t.Config[s.name]
		switch {
		case !s.holds(got):
			alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: s.name, Value: kadm.StringPtr(s.value)})
			changes = append(changes, Change{s.name, got, s.value})
		case got != s.value:
			rep.Notes = append(rep.Notes, fmt.Sprintf("%s is %s, at least %s is needed: left as it is", s.name, got, s.value))
		}
	}
	if len(alter) == 0 {
		return nil
	}
	adm := kadm.NewClient(cl)
	do := adm.AlterTopicConfigs
	if rep.DryRun {
		do = adm.ValidateAlterTopicConfigs
	}
	rs, err := do(ctx, alter, cfg.Topic)
	if err != nil {
		return fmt.Errorf("alter topic %s: %w", cfg.Topic, err)
	}
	r, err := rs.On(cfg.Topic, nil)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return fmt.Errorf("alter topic %s: %w", cfg.Topic, explained(err, r.ErrMessage))
	}
	rep.Changes = append(rep.Changes, changes...)
	return nil
}

// explained adds the broker's own words to its error code.
func explained(err error, words string) error {
	if words == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, words)
}

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger"
)

const (
	// Lease is how long a runner that shows no life keeps its replay.
	Lease = 30 * time.Second
	// beatEvery leaves room for a few that are lost.
	beatEvery = 5 * time.Second
)

// Kinds of a replay.
const (
	// KindRun applies records itself, KindReset moves the group and leaves them to the
	// workers.
	KindRun   = "run"
	KindReset = "reset"
)

// States of a replay.
const (
	// StateRunning: somebody works on it, or died. StateStopped: it was stopped or failed,
	// and can go on. StateDone: it ended.
	StateRunning = "running"
	StateStopped = "stopped"
	StateDone    = "done"
)

// Errors of Store.
var (
	// ErrBusy says that another replay runs.
	ErrBusy = errors.New("another replay is running: see `hookledger replay list`, wait for its end")
	// ErrNoReplay says that no replay has the number.
	ErrNoReplay = errors.New("no such replay: see `hookledger replay list`")
)

// Row is a row of replays.
type Row struct {
	ID, Attempt int64
	Kind, State string
	Topic       string
	PlanHash    string
	// Partition and Next are where it stands; Partition is -1 before the first record.
	Partition   int32
	Next        int64
	Counts      ledger.Counts
	Moves       []Move
	Accepted    bool
	RequestedBy string
	// DatabaseUser is who wrote the row, as Postgres knows it.
	DatabaseUser string
	Reason       string
	// Detail is why it stopped before, and who went on with it and why.
	Detail            string
	StartedAt, BeatAt time.Time
	FinishedAt        *time.Time
	Plan              json.RawMessage

	sinceBeat int64 // seconds, by Postgres's clock
}

// alive tells whether its runner showed life lately, by Postgres's clock.
func (r *Row) alive() bool {
	return r.State == StateRunning && r.sinceBeat < int64(Lease/time.Second)
}

// Store is the table of replays.
type Store struct{ Pool *pgxpool.Pool }

// Identity names the database: the cluster by the identifier that it got when it was made,
// and the database by its number there. A copy made by a backup of files has the same.
func (s *Store) Identity(ctx context.Context) (string, error) {
	var id string
	err := s.Pool.QueryRow(ctx, sqlIdentity, pgx.QueryExecModeExec).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("identify database: %w", err)
	}
	return id, nil
}

// Begin is what a replay starts with.
type Begin struct {
	Kind, PlanHash string
	Position       ledger.Position
	By, Reason     string
	Accepted       bool
	Plan           any
}

// Start writes a new row, running. It fails with ErrBusy if another runs, or if somebody was
// faster with the same plan.
func (s *Store) Start(ctx context.Context, b Begin) (*ledger.Replaying, error) {
	plan, err := json.Marshal(b.Plan)
	if err != nil {
		return nil, fmt.Errorf("start replay: %w", err)
	}
	r := &ledger.Replaying{Attempt: 1}
	err = s.claim(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, sqlStart, pgx.QueryExecModeExec, b.Kind, b.Position.ClusterID, b.Position.Topic,
			pgtype.UUID{Bytes: b.Position.TopicID, Valid: true}, b.PlanHash, b.By, b.Reason, b.Accepted, string(plan)).Scan(&r.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			err = ErrBusy
		}
		return err
	})
	return r, err
}

// Resume takes the row over that stood as row says, and adds by whom and why. It fails
// with ErrBusy if that, or another, runs.
func (s *Store) Resume(ctx context.Context, row *Row, o Order) (*ledger.Replaying, error) {
	r := &ledger.Replaying{ID: row.ID, Attempt: row.Attempt + 1}
	err := s.claim(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlResume, pgx.QueryExecModeExec, row.ID, row.Attempt, o.Accept, "gone on with by "+o.By+": "+o.Reason)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrBusy // somebody was faster
		}
		return err
	})
	return r, err
}

// claim takes the one place of a running replay with take, past a runner that died.
func (s *Store) claim(ctx context.Context, take func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlBury, pgx.QueryExecModeExec, Lease.Seconds()); err != nil {
			return err
		}
		return take(tx)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.ConstraintName == "replays_one_running" {
		err = ErrBusy
	}
	if err != nil {
		return fmt.Errorf("claim replay: %w", err)
	}
	return nil
}

// Beat shows that r's runner lives. It fails with ledger.ErrReplayTaken.
func (s *Store) Beat(ctx context.Context, r *ledger.Replaying) error {
	return s.change(ctx, sqlBeat, r.ID, r.Attempt)
}

// Finish ends r: done, or stopped for detail, and then it can go on.
func (s *Store) Finish(ctx context.Context, r *ledger.Replaying, state, detail string) error {
	return s.change(ctx, sqlFinish, r.ID, r.Attempt, state, detail)
}

func (s *Store) change(ctx context.Context, sql string, args ...any) error {
	tag, err := s.Pool.Exec(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ledger.ErrReplayTaken
	}
	return nil
}

// Read returns the replay with the number. It fails with ErrNoReplay.
func (s *Store) Read(ctx context.Context, id int64) (*Row, error) {
	rows, err := s.query(ctx, sqlRows+` where replay_id = $1`, id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("replay %d: %w", id, ErrNoReplay)
	}
	return &rows[0], nil
}

// OfPlan returns the latest run of the plan with the hash, nil if there was none.
func (s *Store) OfPlan(ctx context.Context, hash string) (*Row, error) {
	rows, err := s.query(ctx, sqlRows+` where plan_hash = $1 and kind = 'run' order by replay_id desc limit 1`, hash)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Running returns the replay whose runner lives, nil if there is none.
func (s *Store) Running(ctx context.Context) (*Row, error) {
	rows, err := s.query(ctx, sqlRows+` where state = 'running'`)
	if err != nil || len(rows) == 0 || !rows[0].alive() {
		return nil, err
	}
	return &rows[0], nil
}

// List returns the latest replays, at most limit; 0 is all.
func (s *Store) List(ctx context.Context, limit int) ([]Row, error) {
	return s.query(ctx, sqlRows+` order by replay_id desc limit nullif($1::bigint, 0)`, limit)
}

func (s *Store) query(ctx context.Context, sql string, args ...any) ([]Row, error) {
	fail := func(err error) ([]Row, error) { return nil, fmt.Errorf("read replays: %w", err) }
	rows, err := s.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return fail(err)
	}
	list, err := pgx.CollectRows(rows, scanRow)
	if err != nil {
		return fail(err)
	}
	return list, nil
}

func scanRow(row pgx.CollectableRow) (Row, error) {
	var r Row
	var partition *int32
	var next *int64
	var detail *string
	var plan, moves string
	c := &r.Counts
	err := row.Scan(&r.ID, &r.Attempt, &r.Kind, &r.State, &r.Topic, &r.PlanHash, &partition, &next,
		&c[ledger.Applied], &c[ledger.Ignored], &c[ledger.SameEffect], &c[ledger.Stale], &c[ledger.Discarded],
		&c[ledger.Duplicate], &c[ledger.Conflict], &c[ledger.Quarantined],
		&r.Accepted, &r.RequestedBy, &r.DatabaseUser, &r.Reason, &detail, &r.StartedAt, &r.BeatAt, &r.FinishedAt, &plan, &r.sinceBeat, &moves)
	if err != nil {
		return r, err
	}
	r.Plan, r.Partition = json.RawMessage(plan), -1
	if partition != nil && next != nil {
		r.Partition, r.Next = *partition, *next
	}
	if detail != nil {
		r.Detail = *detail
	}
	r.Moves = []Move{}
	if err := json.Unmarshal([]byte(moves), &r.Moves); err != nil {
		return r, fmt.Errorf("moves of replay %d: %w", r.ID, err)
	}
	return r, nil
}

const sqlIdentity = `
select (select system_identifier from pg_control_system())::text || '/' || (select oid from pg_database where datname = current_database())::text`

// Index: replays_pkey; a list reads the latest.
const sqlRows = `
select replay_id, attempt, kind, state, topic, plan_hash, partition, next_offset,
       applied, ignored, same_effect, stale, discarded, duplicate, conflict, quarantined,
       accepted, requested_by, database_user, reason, detail, started_at, beat_at, finished_at, plan::text,
       extract(epoch from now() - beat_at)::bigint,
       (select coalesce(json_agg(json_build_object('currency', m.currency, 'amount', m.amount) order by m.currency), '[]')
          from replay_moves m where m.replay_id = r.replay_id)::text
  from replays r`

// sqlStart writes a row, unless somebody was faster with the same plan.
// Indexes: replays_one_running, replays_plan.
const sqlStart = `
insert into replays (attempt, started_at, beat_at, state, kind, cluster_id, topic, topic_id, plan_hash, requested_by, reason, accepted, plan)
select 1, now(), now(), 'running', $1::text, $2::text, $3::text, $4::uuid, $5::text, $6::text, $7::text, $8::boolean, $9::jsonb
 where $1::text <> 'run' or not exists (select from replays where plan_hash = $5::text and kind = 'run')
returning replay_id`

// sqlBury frees the place of a runner that showed no life for $1 seconds.
// Index: replays_one_running.
const sqlBury = `
update replays
   set state = 'stopped', detail = concat_ws('; ', detail, 'its runner died')
 where state = 'running' and beat_at < now() - make_interval(secs => $1)`

// Index: replays_pkey.
const sqlResume = `
update replays
   set state = 'running', attempt = attempt + 1, beat_at = now(), detail = concat_ws('; ', detail, $4::text), accepted = accepted or $3
 where replay_id = $1 and attempt = $2 and state = 'stopped'`

// Index: replays_pkey.
const sqlBeat = `update replays set beat_at = now() where replay_id = $1 and attempt = $2 and state = 'running'`

// Index: replays_pkey.
const sqlFinish = `
update replays
   set state = $3, detail = nullif(concat_ws('; ', detail, nullif($4, '')), ''), beat_at = now(), finished_at = case when $3 = 'done' then now() end
 where replay_id = $1 and attempt = $2 and state = 'running'`

package standby

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// patience bounds each step of attaching.
const patience = time.Minute

// Attach makes a standby of that name for the primary at url, a superuser's, until detach
// is called or the test ends. Whether COMMITs wait for it is synchronous_standby_names'.
func Attach(tb testing.TB, url, name string) (detach func()) {
	tb.Helper()
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		tb.Fatalf("read connection string: %v", err)
	}
	cfg.RuntimeParams["replication"], cfg.RuntimeParams["application_name"] = "true", name
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		tb.Fatalf("attach standby %s: %v", name, err)
	}
	if err := start(ctx, conn); err != nil {
		tb.Fatalf("attach standby %s: %v", name, err)
	}
	following, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with the primary, or when detached
		defer close(done)
		confirm(following, conn)
	}()
	detach = sync.OnceFunc(func() {
		stop()
		<-done
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = conn.Close(over)
	})
	tb.Cleanup(detach)
	return detach
}

// start asks for WAL from where the primary stands.
func start(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		return err
	}
	// systemid, timeline, xlogpos, dbname
	at := string(results[0].Rows[0][2])
	conn.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION PHYSICAL " + at})
	if err := conn.Frontend().Flush(); err != nil {
		return err
	}
	for {
		msg, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		switch m := msg.(type) {
		case *pgproto3.CopyBothResponse:
			return nil
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("start replication: %s", m.Message)
		}
	}
}

// confirm says of all that arrives that it is on disk.
func confirm(ctx context.Context, conn *pgconn.PgConn) {
	for {
		msg, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return
		}
		data, ok := msg.(*pgproto3.CopyData)
		if !ok {
			continue
		}
		var end uint64
		switch body := data.Data; body[0] {
		case 'w': // start, end of the primary, time, WAL
			end = binary.BigEndian.Uint64(body[1:]) + uint64(len(body)-25)
		case 'k': // end of what was sent, time, whether an answer is wanted
			end = binary.BigEndian.Uint64(body[1:])
		default:
			continue
		}
		// Written, on disk, applied, the time, and no answer wanted.
		answer := binary.BigEndian.AppendUint64([]byte{'r'}, end)
		answer = binary.BigEndian.AppendUint64(answer, end)
		answer = binary.BigEndian.AppendUint64(answer, end)
		answer = append(binary.BigEndian.AppendUint64(answer, 0), 0)
		conn.Frontend().Send(&pgproto3.CopyData{Data: answer})
		if conn.Frontend().Flush() != nil {
			return
		}
	}
}

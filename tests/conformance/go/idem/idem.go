// Package idem calls pyidem through database/sql and github.com/lib/pq. Everything is decided in the database.
package idem

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// Error is what a program got wrong, for errors.As, and for errors.Is with one of these. Others stay *pq.Error.
type Error struct{ SQLState, Code, Message, Hint string }

var (
	ErrKeyInvalid        = &Error{SQLState: "IK001"}
	ErrLostReservation   = &Error{SQLState: "IK002"}
	ErrNoSuchReservation = &Error{SQLState: "IK003"}
	ErrWrongMode         = &Error{SQLState: "IK004"}
	ErrNotCompleted      = &Error{SQLState: "IK005"}
	ErrNoSuchPolicy      = &Error{SQLState: "IK006"}
	ErrLimitExceeded     = &Error{SQLState: "IK007"}
)

func (e *Error) Error() string       { return "idem: " + e.Message + " (" + e.SQLState + ")" }
func (e *Error) Is(other error) bool { o, ok := other.(*Error); return ok && o.SQLState == e.SQLState }

// Request is one attempt. What is nil it does not have.
type Request struct {
	Scope, Method, Path            string
	KeyHeader, ContentType, Policy *string
	Body                           []byte
}

// Answer is what every attempt is sent. Headers and Body may be nil.
type Answer struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// DB is a *sql.DB or *sql.Conn.
type DB interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// Atomic makes reservation, work and answer one transaction, and begins it again where Postgres says so (40001).
func Atomic(ctx context.Context, db DB, r Request, work func(*sql.Tx) (Answer, error)) (Answer, error) {
	for try := 1; ; try++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return Answer{}, err
		}
		answer, err := attempt(ctx, tx, r, work)
		tx.Rollback() // does nothing after Commit
		if raised := new(pq.Error); try == 5 || !errors.As(err, &raised) || raised.Code != "40001" {
			return answer, err
		}
	}
}

func attempt(ctx context.Context, tx *sql.Tx, r Request, work func(*sql.Tx) (Answer, error)) (a Answer, err error) {
	rows, err := Call(ctx, tx, "http_reserve", map[string]any{"scope": r.Scope, "key_header": r.KeyHeader,
		"method": r.Method, "path": r.Path, "body": r.Body, "content_type": r.ContentType,
		"token": NewToken(), "policy": r.Policy})
	if err != nil {
		return a, err
	}
	if status, ok := rows[0]["status"].(int64); ok {
		headers, _ := rows[0]["headers"].(string)
		json.Unmarshal([]byte(headers), &a.Headers) // leaves nil where there are none
		body, _ := rows[0]["body"].([]byte)
		return Answer{int(status), a.Headers, body}, nil
	}
	if a, err = work(tx); err != nil {
		return a, err
	}
	headers, _ := json.Marshal(a.Headers) // strings do not fail
	rows, err = Call(ctx, tx, "http_complete", map[string]any{"scope": r.Scope, "key": rows[0]["key"],
		"token": rows[0]["token"], "status": a.Status, "body": a.Body,
		"headers": sql.NullString{String: string(headers), Valid: a.Headers != nil}})
	if err != nil || rows[0]["http_complete"] == "rollback" || rows[0]["http_complete"] == "repeated" {
		return a, err
	}
	return a, Typed(tx.Commit())
}

// NewToken makes the random UUID by which one attempt is known.
func NewToken() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Call calls a function of schema idem through a *sql.DB, *sql.Conn or *sql.Tx. Its rows have bytea as []byte, and as
// string what Go has no type for.
func Call(ctx context.Context, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, function string, args map[string]any) (found []map[string]any, err error) {
	names, values := []string{}, []any{}
	for name, value := range args {
		if bytes, ok := value.([]byte); ok && bytes == nil {
			value = nil // lib/pq would send an empty one
		}
		values = append(values, value)
		names = append(names, fmt.Sprintf("%s => $%d", name, len(values)))
	}
	rows, err := db.QueryContext(ctx, "select * from idem."+function+"("+strings.Join(names, ", ")+")", values...)
	if err != nil {
		return nil, Typed(err)
	}
	defer rows.Close()
	columns, _ := rows.ColumnTypes() // fails after Close alone
	for rows.Next() {
		row, cells := map[string]any{}, make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return nil, err
		}
		for i, column := range columns {
			row[column.Name()] = *cells[i].(*any)
			if text, ok := row[column.Name()].([]byte); ok && column.DatabaseTypeName() != "BYTEA" {
				row[column.Name()] = string(text)
			}
		}
		found = append(found, row)
	}
	return found, Typed(rows.Err())
}

// Typed makes an error of pyidem of what lib/pq has made of it, as from a COMMIT; others stay as they are.
func Typed(err error) error {
	var raised *pq.Error
	if !errors.As(err, &raised) || !strings.HasPrefix(string(raised.Code), "IK") {
		return err
	}
	var detail struct{ Code string }
	json.Unmarshal([]byte(raised.Detail), &detail)
	return &Error{string(raised.Code), detail.Code, raised.Message, raised.Hint}
}

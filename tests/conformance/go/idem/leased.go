package idem

import (
	"context"
	"database/sql"
	"encoding/json"
)

// Leased is for an effect outside the database: it happens under a key of its own, "" where nothing protects the
// request, between the commit of the reservation and the transaction that work and answer share. What fails once it may
// have happened leaves the outcome unknown, which the policy of the key decides.
func Leased[T any](ctx context.Context, db interface {
	DB
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, r Request, effect func(downstreamKey string) (T, error), work func(*sql.Tx, T) (Answer, error)) (Answer, error) {
	rows, err := Call(ctx, db, "http_reserve", map[string]any{"scope": r.Scope, "key_header": r.KeyHeader,
		"method": r.Method, "path": r.Path, "body": r.Body, "content_type": r.ContentType,
		"mode": "leased", "token": NewToken(), "policy": r.Policy})
	if err != nil {
		return Answer{}, err
	}
	if status, ok := rows[0]["status"].(int64); ok {
		answer := Answer{Status: int(status)}
		headers, _ := rows[0]["headers"].(string)
		json.Unmarshal([]byte(headers), &answer.Headers) // leaves nil where there are none
		answer.Body, _ = rows[0]["body"].([]byte)
		return answer, nil
	}
	owned := map[string]any{"scope": r.Scope, "key": rows[0]["key"], "token": rows[0]["token"]}
	key, _ := rows[0]["downstream_key"].(string)
	made, err := effect(key)
	if err == nil {
		var answer Answer
		if answer, err = record(ctx, db, owned, func(tx *sql.Tx) (Answer, error) { return work(tx, made) }); err == nil {
			return answer, nil
		}
	}
	if owned["key"] != nil {
		Call(context.Background(), db, "defer", owned) // where this fails, the lease ends by itself
	}
	return Answer{}, err
}

func record(ctx context.Context, db DB, owned map[string]any, work func(*sql.Tx) (Answer, error)) (Answer, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return Answer{}, err
	}
	defer tx.Rollback() // does nothing after Commit
	answer, err := work(tx)
	if err != nil {
		return Answer{}, err
	}
	headers, _ := json.Marshal(answer.Headers) // strings do not fail
	rows, err := Call(ctx, tx, "http_complete", map[string]any{"scope": owned["scope"], "key": owned["key"],
		"token": owned["token"], "status": answer.Status, "body": answer.Body,
		"headers": sql.NullString{String: string(headers), Valid: answer.Headers != nil}})
	if err != nil || rows[0]["http_complete"] == "repeated" {
		return answer, err
	}
	return answer, Typed(tx.Commit())
}

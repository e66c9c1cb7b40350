// Speaks the line protocol of the conformance suite: see ../README.md.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"

	"github.com/lib/pq"

	"example.com/conformance/idem"
	"example.com/conformance/refunds"
)

// octets are bytes in the protocol; nil is null.
type octets []byte

func (o octets) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	return json.Marshal(map[string]string{"bytes": hex.EncodeToString(o)})
}

func (o *octets) UnmarshalJSON(text []byte) error {
	var given *struct{ Bytes string }
	if err := json.Unmarshal(text, &given); err != nil || given == nil {
		return err
	}
	found, err := hex.DecodeString(given.Bytes)
	*o = found
	return err
}

type asked struct {
	Do, Session, User, Isolation, SQL, Function, Scope string
	Arguments                                          map[string]json.RawMessage
	KeyHeader                                          *string `json:"key_header"`
	Body                                               octets
	Request                                            struct {
		Scope, Method, Path string
		Policy              *string
		KeyHeader           *string `json:"key_header"`
		ContentType         *string `json:"content_type"`
		Body                octets
	}
	Effect struct {
		SQL  string
		Fail bool
	}
	Work struct {
		SQL     string
		Fail    bool
		Status  int
		Headers [][2]string
		Body    octets
	}
}

type answer = map[string]any

var (
	ctx      = context.Background()
	sessions = map[string]*sql.Conn{}
	errWork  = errors.New("the work fails")
)

var kinds = map[string]string{
	"IK001": "key_invalid", "IK002": "lost_reservation", "IK003": "no_such_reservation", "IK004": "wrong_mode",
	"IK005": "not_completed", "IK006": "no_such_policy", "IK007": "limit_exceeded",
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		var request asked
		if err := json.Unmarshal(line, &request); err != nil {
			log.Fatal(err)
		}
		answered, err := do(request, sessions[request.Session])
		if err != nil {
			answered = answer{"error": described(err)}
		}
		if err := out.Encode(answered); err != nil {
			log.Fatal(err)
		}
	}
}

func do(request asked, conn *sql.Conn) (answer, error) {
	switch request.Do {
	case "open":
		return open(request.Session, request.User)
	case "close":
		delete(sessions, request.Session)
		return answer{}, hangUp(conn)
	case "token":
		return answer{"token": idem.NewToken()}, nil
	case "begin":
		if request.Isolation != "" {
			return execute(conn, "begin isolation level "+request.Isolation)
		}
		return execute(conn, "begin")
	case "commit", "rollback":
		return execute(conn, request.Do)
	case "execute":
		return execute(conn, request.SQL)
	case "call":
		return call(conn, request)
	case "atomic":
		return atomic(conn, request)
	case "leased":
		return leased(conn, request)
	case "refund":
		return answered(refunds.Refund(ctx, conn, request.Scope, request.KeyHeader, request.Body))
	}
	return nil, errors.New("cannot do " + request.Do)
}

func open(name, user string) (answer, error) {
	db, err := sql.Open("postgres", "sslmode=disable user="+user)
	if err != nil {
		return nil, err
	}
	sessions[name], err = db.Conn(ctx)
	return answer{}, err
}

func execute(conn *sql.Conn, statement string) (answer, error) {
	_, err := conn.ExecContext(ctx, statement)
	return answer{}, idem.Typed(err)
}

func call(conn *sql.Conn, request asked) (answer, error) {
	args := map[string]any{}
	for name, text := range request.Arguments {
		value, err := argument(text)
		if err != nil {
			return nil, err
		}
		args[name] = value
	}
	found, err := idem.Call(ctx, conn, request.Function, args)
	rows := append([]map[string]any{}, found...) // none is an empty list, too
	for _, row := range rows {
		for name, value := range row {
			if found, ok := value.([]byte); ok {
				row[name] = octets(found)
			}
		}
	}
	return answer{"rows": rows}, err
}

func argument(text json.RawMessage) (any, error) {
	switch text[0] {
	case '{':
		var value octets
		err := json.Unmarshal(text, &value)
		return []byte(value), err
	case '[':
		var value []string
		err := json.Unmarshal(text, &value)
		return pq.Array(value), err
	case '"', 't', 'f', 'n':
		var value any
		err := json.Unmarshal(text, &value)
		return value, err
	}
	return string(text), nil // a number, with all its digits
}

func atomic(conn *sql.Conn, request asked) (answer, error) {
	return answered(idem.Atomic(ctx, conn, request.attempt(), request.work))
}

func leased(conn *sql.Conn, request asked) (answer, error) {
	return answered(idem.Leased(ctx, conn, request.attempt(), func(key string) (any, error) {
		statement := strings.ReplaceAll(request.Effect.SQL, "{key}", key)
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
		if request.Effect.Fail {
			return nil, errWork
		}
		return nil, nil
	}, func(tx *sql.Tx, _ any) (idem.Answer, error) { return request.work(tx) }))
}

func (a asked) attempt() idem.Request {
	given := a.Request
	return idem.Request{Scope: given.Scope, Method: given.Method, Path: given.Path, Policy: given.Policy,
		KeyHeader: given.KeyHeader, ContentType: given.ContentType, Body: given.Body}
}

func (a asked) work(tx *sql.Tx) (idem.Answer, error) {
	if _, err := tx.ExecContext(ctx, a.Work.SQL); err != nil {
		return idem.Answer{}, err
	}
	if a.Work.Fail {
		return idem.Answer{}, errWork
	}
	return idem.Answer{Status: a.Work.Status, Headers: a.Work.Headers, Body: a.Work.Body}, nil
}

func answered(given idem.Answer, err error) (answer, error) {
	if errors.Is(err, errWork) {
		return answer{"failed": true}, nil
	}
	return answer{"status": given.Status, "headers": given.Headers, "body": octets(given.Body)}, err
}

func described(err error) answer {
	var ours *idem.Error
	if errors.As(err, &ours) {
		return answer{"sqlstate": ours.SQLState, "code": ours.Code, "kind": kinds[ours.SQLState]}
	}
	var raised *pq.Error
	if !errors.As(err, &raised) {
		log.Fatal(err)
	}
	return answer{"sqlstate": raised.Code, "code": nil, "kind": nil}
}

// hangUp ends a session even inside a transaction: given back to its pool it would stay open.
func hangUp(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}

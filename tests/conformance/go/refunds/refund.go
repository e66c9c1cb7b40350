// Package refunds has an endpoint whose requests take effect once.
package refunds

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"example.com/conformance/idem"
)

type refund struct {
	ID     int64   `json:"id"`
	Order  string  `json:"order"`
	Amount float64 `json:"amount"` // 5e2 is 500, too
}

const insert = `insert into refunds ("order", amount) values ($1, $2) returning id`

// Refund answers POST /refunds. The scope is the client that asks, as the server knows it.
func Refund(ctx context.Context, db idem.DB, scope string, key *string, body []byte) (idem.Answer, error) {
	mediaType := "application/json"
	request := idem.Request{Scope: scope, KeyHeader: key, Method: "POST", Path: "/refunds", Body: body,
		ContentType: &mediaType}
	// ten lines:
	return idem.Atomic(ctx, db, request, func(tx *sql.Tx) (idem.Answer, error) {
		var made refund
		if err := json.Unmarshal(body, &made); err != nil || made.Amount <= 0 {
			return idem.Answer{Status: 422, Body: []byte(`{"error": "amount"}`)}, err
		}
		err := tx.QueryRowContext(ctx, insert, made.Order, made.Amount).Scan(&made.ID)
		headers := [][2]string{{"Location", fmt.Sprint("/refunds/", made.ID)}, {"Content-Type", mediaType}}
		answer, _ := json.Marshal(made)
		return idem.Answer{Status: 201, Headers: headers, Body: answer}, err
	})
	// end of ten lines
}

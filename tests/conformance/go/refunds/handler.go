package refunds

import (
	"database/sql"
	"io"
	"log"
	"net/http"
	"strings"
)

const maxBody = 1 << 20

// Handler serves the endpoint. clientOf says whose request it is: never let the caller name a scope freely.
func Handler(db *sql.DB, clientOf func(*http.Request) string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/refunds", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST only", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "no such body", http.StatusBadRequest)
			return
		}
		answer, err := Refund(r.Context(), db, clientOf(r), keyOf(r), body)
		if err != nil {
			log.Print(err)
			http.Error(w, "try again, with the same key", http.StatusInternalServerError)
			return
		}
		w.Header()["Content-Type"] = nil // none is guessed from the body
		for _, header := range answer.Headers {
			w.Header().Add(header[0], header[1])
		}
		w.WriteHeader(answer.Status)
		w.Write(answer.Body)
	})
	return mux
}

// keyOf returns the header as it was received, or nil. Several are one list, as HTTP has it.
func keyOf(r *http.Request) *string {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return nil
	}
	key := strings.Join(values, ", ")
	return &key
}

// Serves the endpoint for the tests, and prints the port once it listens.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"net"
	"net/http"

	_ "github.com/lib/pq"

	"example.com/conformance/refunds"
)

func main() {
	db, err := sql.Open("postgres", "sslmode=disable")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	clientOf := func(r *http.Request) string { return "shop:" + r.Header.Get("X-Client") }
	log.Fatal(http.Serve(listener, refunds.Handler(db, clientOf)))
}

module example.com/conformance

go 1.19

require github.com/lib/pq v1.10.7

replace github.com/lib/pq => /usr/share/gocode/src/github.com/lib/pq

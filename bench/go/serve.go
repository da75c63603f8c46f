package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// backend behaves like an apiserver in the respects that matter to a proxy: 100 streams on each session, watches that
// stay open, and upgrades that echo. Its bodies are constant. It also serves HTTP/1.1, for the peer that cannot use
// HTTP/2 to its backend.
type backend struct {
	small, list []byte
	version     atomic.Int64

	mu       sync.Mutex
	watchers map[chan []byte]struct{}
}

// serve runs the backend on the address -tls and its control port on -control. POST /fanout?size=N to the control port
// sends one event to every watch.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	address := flags.String("tls", "127.0.0.1:0", "where the proxies dial")
	control := flags.String("control", "127.0.0.1:0", "where the harness asks for events")
	dir := flags.String("pki", ".", "folder of tls.crt and tls.key")
	flags.Parse(args)

	b := &backend{
		small:    bytes.Repeat([]byte("{\"a\":1}\n"), 256),
		list:     bytes.Repeat([]byte("{\"kind\":\"Pod\"}\n"), 20<<20/15),
		watchers: map[chan []byte]struct{}{},
	}
	// The clients' watches start at version 100. An older event would count as an anomaly.
	b.version.Store(1000)
	go http.ListenAndServe(*control, http.HandlerFunc(b.fanOut))
	server := &http.Server{
		Addr: *address, Handler: b,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 8 << 20, MaxReceiveBufferPerStream: 1 << 20},
	}
	return server.ListenAndServeTLS(*dir+"/tls.crt", *dir+"/tls.key")
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.Header.Get("Upgrade"), "SPDY"):
		echo(w)
	case r.URL.Query().Has("watch"):
		b.watch(w, r)
	case r.Method != http.MethodGet:
		io.Copy(io.Discard, r.Body)
		answer(w, b.small)
	case r.URL.Path == "/api/v1/pods":
		answer(w, b.list)
	default:
		answer(w, b.small)
	}
}

func answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func (b *backend) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 64)
	b.mu.Lock()
	b.watchers[events] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.watchers, events)
		b.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			w.Write(event)
			flusher.Flush()
		}
	}
}

// fanOut sends one MODIFIED event of about `size` bytes to every open watch, and answers with the number of watches.
func (b *backend) fanOut(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("size"))
	event := fmt.Appendf(nil, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default","resourceVersion":"%d"},"spec":{"pad":"%s"}}}`+"\n",
		b.version.Add(1), strings.Repeat("x", max(0, size-150)))
	b.mu.Lock()
	defer b.mu.Unlock()
	for events := range b.watchers {
		events <- event
	}
	fmt.Fprintln(w, len(b.watchers))
}

// echo accepts an upgrade and sends back what it receives, as an exec of `cat` would.
func echo(w http.ResponseWriter) {
	socket, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer socket.Close()
	io.WriteString(socket, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	io.Copy(socket, buffered)
}

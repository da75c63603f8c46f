package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// target is where a client connects and which CA it trusts.
type target struct {
	address string
	config  *tls.Config
}

func targetOf(address, dir string) (target, error) {
	pem, err := os.ReadFile(dir + "/ca.crt")
	if err != nil {
		return target{}, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return target{address, &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{"h2"}}}, nil
}

// client is one HTTP/2 session that costs almost no CPU: it has no goroutine for each stream and no header map.
type client struct {
	socket *tls.Conn
	framer *http2.Framer

	mu     sync.Mutex // guards the writing side: block, encoder, nextID
	block  bytes.Buffer
	hpack  *hpack.Encoder
	nextID uint32
}

const window = 1 << 24

func dial(t target) (*client, error) {
	socket, err := tls.Dial("tcp", t.address, t.config)
	if err != nil {
		return nil, err
	}
	if _, err := socket.Write([]byte(http2.ClientPreface)); err != nil {
		return nil, err
	}
	c := &client{socket: socket, framer: http2.NewFramer(socket, socket), nextID: 1}
	c.hpack = hpack.NewEncoder(&c.block)
	c.framer.SetReuseFrames()
	if err := c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: window},
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
	); err != nil {
		return nil, err
	}
	return c, c.framer.WriteWindowUpdate(0, 1<<30)
}

// get sends a GET with the header fields that client-go sends, a short bearer token included. It returns the stream's
// id.
func (c *client) get(path string) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.block.Reset()
	for _, field := range [...][2]string{
		{":authority", "localhost"}, {":method", "GET"}, {":path", path}, {":scheme", "https"},
		{"accept", "application/json"}, {"accept-encoding", "gzip"},
		{"user-agent", "kubelet/v1.36.1 (linux/amd64) kubernetes/bench"}, {"authorization", "Bearer " + token},
	} {
		c.hpack.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	id := c.nextID
	c.nextID += 2
	return id, c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block.Bytes(), EndStream: true, EndHeaders: true,
	})
}

// token has the length and form of a bootstrap token. All load programs of the benchmark send the same one.
const token = "bench1.0123456789abcdef0123456789abcdef"

const smallPath = "/api/v1/namespaces/default/pods/small"

// heard has the callbacks for the frames of a stream.
type heard struct {
	onHead func(id uint32, ok bool)
	onData func(id uint32, bytes []byte)
	onEnd  func(id uint32, ok bool)
}

// read reads frames until the socket ends. It answers PING and SETTINGS itself, and reports the other frames.
func (c *client) read(h heard) error {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.locked(func() error { return c.framer.WriteSettingsAck() })
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				c.locked(func() error { return c.framer.WritePing(true, f.Data) })
			}
		case *http2.HeadersFrame:
			if h.onHead != nil {
				h.onHead(f.StreamID, isOK(f.HeaderBlockFragment()))
			}
			if f.StreamEnded() && h.onEnd != nil {
				h.onEnd(f.StreamID, true)
			}
		case *http2.DataFrame:
			if n := len(f.Data()); n > 0 {
				c.locked(func() error { return c.framer.WriteWindowUpdate(0, uint32(n)) })
				if h.onData != nil {
					h.onData(f.StreamID, f.Data())
				}
			}
			if f.StreamEnded() && h.onEnd != nil {
				h.onEnd(f.StreamID, true)
			}
		case *http2.RSTStreamFrame:
			if h.onEnd != nil {
				h.onEnd(f.StreamID, false)
			}
		}
	}
}

func (c *client) locked(write func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return write()
}

// isOK is true if the block begins with `:status: 200` (index 8 of the static table of RFC 7541). It skips table size
// updates. Decoding the whole block would cost more CPU than the request.
func isOK(block []byte) bool {
	for len(block) > 0 && block[0]&0xe0 == 0x20 {
		block = block[1:]
	}
	return len(block) > 0 && block[0] == 0x88
}

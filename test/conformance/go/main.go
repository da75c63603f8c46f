// This program is a second implementation of HPACK and frames, for comparison. It reads one JSON request per line, and
// writes one JSON answer per line (see peers.ts).
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"

	"golang.org/x/net/http2/hpack"
)

// word is a byte string. In JSON, each byte is the character with the byte's value as its code point.
type word string

func (w word) MarshalJSON() ([]byte, error) {
	runes := make([]rune, len(w))
	for i := range len(w) {
		runes[i] = rune(w[i])
	}
	return json.Marshal(string(runes))
}

func (w *word) UnmarshalJSON(text []byte) error {
	var s string
	err := json.Unmarshal(text, &s)
	octets := make([]byte, 0, len(s))
	for _, r := range s {
		octets = append(octets, byte(r))
	}
	*w = word(octets)
	return err
}

type field struct {
	Name  word `json:"name"`
	Value word `json:"value"`
	Never bool `json:"never"`
}

type block struct {
	Limits []uint32 `json:"limits"`
	Fields []field  `json:"fields"`
	Hex    string   `json:"hex"`
}

type request struct {
	Do     string  `json:"do"`
	Blocks []block `json:"blocks"`
	Frames []frame `json:"frames"`
	Octets string  `json:"octets"`
}

type answer struct {
	Blocks []string  `json:"blocks,omitempty"`
	Lists  [][]field `json:"lists,omitempty"`
	Frames []frame   `json:"frames,omitempty"`
	Octets string    `json:"octets,omitempty"`
	Error  string    `json:"error,omitempty"`
}

func encode(blocks []block) answer {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	said := answer{}
	for _, block := range blocks {
		for _, limit := range block.Limits {
			encoder.SetMaxDynamicTableSize(limit)
		}
		out.Reset()
		for _, f := range block.Fields {
			must(encoder.WriteField(hpack.HeaderField{Name: string(f.Name), Value: string(f.Value), Sensitive: f.Never}))
		}
		said.Blocks = append(said.Blocks, hex.EncodeToString(out.Bytes()))
	}
	return said
}

func decode(blocks []block) answer {
	decoder := hpack.NewDecoder(4096, nil)
	said := answer{}
	for _, block := range blocks {
		for _, limit := range block.Limits {
			decoder.SetAllowedMaxDynamicTableSize(limit)
		}
		octets, err := hex.DecodeString(block.Hex)
		must(err)
		list, err := decoder.DecodeFull(octets)
		if err != nil {
			said.Error = err.Error()
			return said
		}
		fields := make([]field, len(list))
		for i, f := range list {
			fields[i] = field{word(f.Name), word(f.Value), f.Sensitive}
		}
		said.Lists = append(said.Lists, fields)
	}
	return said
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked request
		must(json.Unmarshal(in.Bytes(), &asked))
		switch asked.Do {
		case "encode":
			must(out.Encode(encode(asked.Blocks)))
		case "decode":
			must(out.Encode(decode(asked.Blocks)))
		case "write":
			must(out.Encode(answer{Octets: write(asked.Frames)}))
		case "read":
			must(out.Encode(answer{Frames: read(asked.Octets)}))
		}
	}
	must(in.Err())
}

package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"

	"golang.org/x/net/http2"
)

type priority struct {
	DependsOn uint32 `json:"dependsOn"`
	Weight    uint8  `json:"weight"`
	Exclusive bool   `json:"exclusive"`
}

func (p *priority) param() http2.PriorityParam {
	if p == nil {
		return http2.PriorityParam{}
	}
	return http2.PriorityParam{StreamDep: p.DependsOn, Exclusive: p.Exclusive, Weight: p.Weight}
}

// frame is one frame of any kind. Fields that this kind does not have stay zero.
type frame struct {
	Kind       string      `json:"kind"`
	ID         uint32      `json:"id"`
	Octets     string      `json:"octets"`
	End        bool        `json:"end"`
	EndHeaders bool        `json:"endHeaders"`
	Pad        *int        `json:"pad,omitempty"`
	Priority   *priority   `json:"priority,omitempty"`
	Code       uint32      `json:"code"`
	Ack        bool        `json:"ack"`
	Entries    [][2]uint32 `json:"entries"`
	LastID     uint32      `json:"lastId"`
	Increment  uint32      `json:"increment"`
	Type       uint8       `json:"type"`
	Flags      uint8       `json:"flags"`
}

func write(frames []frame) string {
	var out bytes.Buffer
	framer := http2.NewFramer(&out, nil)
	// A frame that is marked as padded but has a padding of 0 bytes is written by hand, because the framer does not
	// write it.
	framer.AllowIllegalWrites = true
	for _, f := range frames {
		octets, err := hex.DecodeString(f.Octets)
		must(err)
		must(writeOne(framer, f, octets))
	}
	return hex.EncodeToString(out.Bytes())
}

func writeOne(framer *http2.Framer, f frame, octets []byte) error {
	switch f.Kind {
	case "data":
		if f.Pad == nil {
			return framer.WriteData(f.ID, f.End, octets)
		}
		return framer.WriteDataPadded(f.ID, f.End, octets, make([]byte, *f.Pad))
	case "headers":
		param := http2.HeadersFrameParam{StreamID: f.ID, BlockFragment: octets, EndStream: f.End, EndHeaders: f.EndHeaders, Priority: f.Priority.param()}
		if f.Pad != nil {
			param.PadLength = uint8(*f.Pad)
		}
		return framer.WriteHeaders(param)
	case "continuation":
		return framer.WriteContinuation(f.ID, f.EndHeaders, octets)
	case "priority":
		return framer.WritePriority(f.ID, f.Priority.param())
	case "reset":
		return framer.WriteRSTStream(f.ID, http2.ErrCode(f.Code))
	case "settings":
		if f.Ack {
			return framer.WriteSettingsAck()
		}
		entries := make([]http2.Setting, len(f.Entries))
		for i, entry := range f.Entries {
			entries[i] = http2.Setting{ID: http2.SettingID(entry[0]), Val: entry[1]}
		}
		return framer.WriteSettings(entries...)
	case "ping":
		return framer.WritePing(f.Ack, [8]byte(octets))
	case "goAway":
		return framer.WriteGoAway(f.LastID, http2.ErrCode(f.Code), octets)
	case "window":
		return framer.WriteWindowUpdate(f.ID, f.Increment)
	default:
		return framer.WriteRawFrame(http2.FrameType(f.Type), http2.Flags(f.Flags), f.ID, octets)
	}
}

func read(octets string) []frame {
	in, err := hex.DecodeString(octets)
	must(err)
	framer := http2.NewFramer(nil, bytes.NewReader(in))
	frames := []frame{}
	for {
		got, err := framer.ReadFrame()
		if errors.Is(err, io.EOF) {
			return frames
		}
		must(err)
		f := specOf(got)
		f.ID = got.Header().StreamID
		frames = append(frames, f)
	}
}

func specOf(got http2.Frame) frame {
	switch f := got.(type) {
	case *http2.DataFrame:
		return frame{Kind: "data", Octets: hex.EncodeToString(f.Data()), End: f.StreamEnded()}
	case *http2.HeadersFrame:
		return frame{Kind: "headers", Octets: hex.EncodeToString(f.HeaderBlockFragment()), End: f.StreamEnded(), EndHeaders: f.HeadersEnded()}
	case *http2.ContinuationFrame:
		return frame{Kind: "continuation", Octets: hex.EncodeToString(f.HeaderBlockFragment()), EndHeaders: f.HeadersEnded()}
	case *http2.RSTStreamFrame:
		return frame{Kind: "reset", Code: uint32(f.ErrCode)}
	case *http2.SettingsFrame:
		entries := make([][2]uint32, f.NumSettings())
		for i := range entries {
			entries[i] = [2]uint32{uint32(f.Setting(i).ID), f.Setting(i).Val}
		}
		return frame{Kind: "settings", Ack: f.IsAck(), Entries: entries}
	case *http2.PingFrame:
		return frame{Kind: "ping", Ack: f.IsAck(), Octets: hex.EncodeToString(f.Data[:])}
	case *http2.GoAwayFrame:
		return frame{Kind: "goAway", LastID: f.LastStreamID, Code: uint32(f.ErrCode), Octets: hex.EncodeToString(f.DebugData())}
	case *http2.WindowUpdateFrame:
		return frame{Kind: "window", Increment: f.Increment}
	default:
		return frame{Kind: "unknown"}
	}
}

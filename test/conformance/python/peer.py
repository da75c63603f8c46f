"""Another opinion on HPACK and frames: one JSON request a line in, one JSON answer a line out (see peers.ts)."""
import json
import sys

from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple
from hyperframe import frame as h2


def field_of(words):
    """Octets travel as latin-1 text: each is the character of its number."""
    kind = NeverIndexedHeaderTuple if words["never"] else HeaderTuple
    return kind(words["name"].encode("latin-1"), words["value"].encode("latin-1"))


def words_of(field):
    name, value = field
    return {"name": name.decode("latin-1"), "value": value.decode("latin-1"), "never": not field.indexable}


def encode(blocks):
    encoder = Encoder()
    coded = []
    for block in blocks:
        for limit in block["limits"]:
            encoder.header_table_size = limit
        fields = [field_of(words) for words in block["fields"]]
        coded.append(encoder.encode(fields, huffman=block["huffman"]).hex())
    return {"blocks": coded}


def decode(blocks):
    decoder = Decoder(max_header_list_size=1 << 30)
    lists = []
    for block in blocks:
        for limit in block["limits"]:
            decoder.max_allowed_table_size = limit
        try:
            lists.append([words_of(field) for field in decoder.decode(bytes.fromhex(block["hex"]), raw=True)])
        except Exception as error:  # which kind is part of the opinion
            return {"lists": lists, "error": f"{type(error).__name__}: {error}"}
    return {"lists": lists}


def flags_of(spec, names):
    return [name for key, name in names.items() if spec.get(key) not in (None, False)]


def priority_of(spec):
    """A frame without a priority serializes none, so these are not looked at then."""
    said = spec.get("priority") or {"dependsOn": 0, "weight": 0, "exclusive": False}
    return {"depends_on": said["dependsOn"], "stream_weight": said["weight"], "exclusive": said["exclusive"]}


def data_frame(spec, octets):
    flags = flags_of(spec, {"end": "END_STREAM", "pad": "PADDED"})
    return h2.DataFrame(spec["id"], octets, flags=flags, pad_length=spec["pad"] or 0)


def headers_frame(spec, octets):
    names = {"end": "END_STREAM", "endHeaders": "END_HEADERS", "pad": "PADDED", "priority": "PRIORITY"}
    flags = flags_of(spec, names)
    return h2.HeadersFrame(spec["id"], octets, flags=flags, pad_length=spec["pad"] or 0, **priority_of(spec))


def unknown_frame(spec, octets):
    made = h2.ExtensionFrame(type=spec["type"], stream_id=spec["id"], flag_byte=spec["flags"], body=octets)
    made.body_len = len(octets)  # set by its reader alone
    return made


written = {
    "data": data_frame,
    "headers": headers_frame,
    "continuation": lambda spec, octets: h2.ContinuationFrame(
        spec["id"], octets, flags=flags_of(spec, {"endHeaders": "END_HEADERS"})
    ),
    "priority": lambda spec, octets: h2.PriorityFrame(spec["id"], **priority_of(spec)),
    "reset": lambda spec, octets: h2.RstStreamFrame(spec["id"], spec["code"]),
    "settings": lambda spec, octets: h2.SettingsFrame(
        0, settings=dict(spec["entries"]), flags=flags_of(spec, {"ack": "ACK"})
    ),
    "ping": lambda spec, octets: h2.PingFrame(0, octets, flags=flags_of(spec, {"ack": "ACK"})),
    "goAway": lambda spec, octets: h2.GoAwayFrame(0, spec["lastId"], spec["code"], octets),
    "window": lambda spec, octets: h2.WindowUpdateFrame(spec["id"], spec["increment"]),
    "unknown": unknown_frame,
}


def write(frames):
    octets = b"".join(written[spec["kind"]](spec, bytes.fromhex(spec.get("octets", ""))).serialize() for spec in frames)
    return {"octets": octets.hex()}


def headers_spec(frame):
    flags = {"end": "END_STREAM" in frame.flags, "endHeaders": "END_HEADERS" in frame.flags}
    return {"kind": "headers", "octets": frame.data.hex(), **flags}


read_back = {
    h2.DataFrame: lambda frame: {"kind": "data", "octets": frame.data.hex(), "end": "END_STREAM" in frame.flags},
    h2.HeadersFrame: headers_spec,
    h2.ContinuationFrame: lambda frame: {
        "kind": "continuation",
        "octets": frame.data.hex(),
        "endHeaders": "END_HEADERS" in frame.flags,
    },
    h2.RstStreamFrame: lambda frame: {"kind": "reset", "code": frame.error_code},
    h2.SettingsFrame: lambda frame: {
        "kind": "settings",
        "entries": [list(entry) for entry in frame.settings.items()],
        "ack": "ACK" in frame.flags,
    },
    h2.PingFrame: lambda frame: {"kind": "ping", "octets": frame.opaque_data.hex(), "ack": "ACK" in frame.flags},
    h2.GoAwayFrame: lambda frame: {
        "kind": "goAway",
        "lastId": frame.last_stream_id,
        "code": frame.error_code,
        "octets": frame.additional_data.hex(),
    },
    h2.WindowUpdateFrame: lambda frame: {"kind": "window", "increment": frame.window_increment},
}


def read(octets):
    left = memoryview(bytes.fromhex(octets))
    frames = []
    while left:
        frame, length = h2.Frame.parse_frame_header(left[:9])
        frame.parse_body(left[9 : 9 + length])
        frames.append({"id": frame.stream_id, **read_back[type(frame)](frame)})
        left = left[9 + length :]
    return {"frames": frames}


parts = {
    "encode": lambda request: encode(request["blocks"]),
    "decode": lambda request: decode(request["blocks"]),
    "write": lambda request: write(request["frames"]),
    "read": lambda request: read(request["octets"]),
}
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(parts[request["do"]](request)))

"""Another opinion on HPACK: one JSON request a line in, one JSON answer a line out (see peers.ts)."""
import json
import sys

from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple


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


parts = {"encode": encode, "decode": decode}
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(parts[request["do"]](request["blocks"])))

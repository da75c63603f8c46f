/**
 * Faults that other proxies, versions of Node and Go, and apiservers had since November 2025. Each has tests of ours: a
 * file below test/ and a part of a title. test/attack-rows.test.ts checks that they exist.
 */
export type FaultOfOthers = {
  readonly fault: string;
  readonly tests: readonly (readonly [string, string])[];
};

export const faultsOfOthers: readonly FaultOfOthers[] = [
  {
    fault: "the window of a connection is refunded twice: by a reset, and when the buffered bytes are read",
    tests: [
      ["attacks/advisories", "refunded once"],
      ["h2/session/flow-in", "gives nothing twice"],
    ],
  },
  {
    fault: "malformed framing fields in an HTTP/2 response to an HTTP/1.1 client",
    tests: [
      ["h2/core/fields", "connection-specific fields are refused in requests, answers and trailers"],
      ["h2/session/answers", "is not passed on: the stream is reset on both sides"],
    ],
  },
  {
    fault: "`Trailer` with thousands of names",
    tests: [["attacks/advisories", "a Trailer field with thousands of names"]],
  },
  {
    fault: "the HPACK encoder, while the peer toggles its table size",
    tests: [
      ["attacks/advisories", "toggles the table"],
      ["h2/hpack/hpack-encoder", "through random fields and table sizes"],
    ],
  },
  {
    fault: "more than 10,000 query parameters before or after `watch=1`",
    tests: [["attacks/advisories", "20,000 query parameters"]],
  },
  {
    fault: "requests after a refused CONNECT",
    tests: [
      ["attacks/advisories", "after a refused CONNECT"],
      ["attacks/h1", "A32: CONNECT"],
    ],
  },
  {
    fault: "a port without a deadline before the ClientHello, the preface or the head",
    tests: [
      ["attacks/whole/slow-peers", "makes no progress is closed"],
      ["attacks/whole/passthrough", "a slow hello gets its ten seconds"],
      ["ops/admin/server/connection-limits", "stays silent"],
    ],
  },
  {
    fault: "cache keys that join strings",
    tests: [["attacks/advisories", "two users whose groups read alike"]],
  },
  {
    fault: "endless answers of the servers that the proxy asks",
    tests: [
      ["ops/discovery/answers", "cut off, endless, huge, slow"],
      ["health/probes/ready", "of an endless answer only so much is read"],
    ],
  },
  {
    fault: "answers of these servers with fields of another type",
    tests: [["ops/discovery/answers", "with any field of any type"]],
  },
  {
    fault: "a write of zero bytes from inside the callback of an HTTPS parser",
    tests: [["attacks/advisories", "from inside the callback"]],
  },
  {
    fault: "path parameters (`/secrets;a=b`, `%3b`) in limits",
    tests: [["attacks/advisories", "path parameters"]],
  },
  {
    fault: "a read that is asked again mixes two answers",
    tests: [
      ["proxy/request/hedge", "the client is given one answer of one of them"],
      ["proxy/request/hedge", "an answer that has begun is not asked for again"],
    ],
  },
  {
    fault: "a body that ends with trailers is not held to its length",
    tests: [["h2/session/message", "the body they end is as long as promised"]],
  },
  {
    fault: "a comma in `:authority`, which is part of one name, as for net/http",
    tests: [["attacks/advisories", "a comma in :authority"]],
  },
  {
    fault: "endless TLS 1.3 KeyUpdates",
    tests: [["attacks/whole/tls", "endless KeyUpdates close the connection"]],
  },
  {
    fault: "a TLS session is resumed after the CA of its client was removed",
    tests: [["attacks/whole/identity", "after its CA was removed by a reload"]],
  },
  {
    fault: "50,000 names in a certificate, with or without name constraints",
    tests: [
      ["x509/hostile-certificates", "50,000 names"],
      ["x509/trust", "the error about thousands of names"],
    ],
  },
  {
    fault: "a wildcard for part of a label (`v*.example.com`)",
    tests: [
      ["x509/trust", "a server has a name if Go finds it"],
      ["proxy/tls/serving-pair", "no part of a label is a wildcard"],
    ],
  },
  {
    fault: "a status of more than three digits",
    tests: [["attacks/advisories", "a status of more or fewer than three digits"]],
  },
  {
    fault: "the reserved bit of GOAWAY and WINDOW_UPDATE",
    tests: [["attacks/advisories", "the reserved bit"]],
  },
  {
    fault: "padding of DATA that is an error is not refunded",
    tests: [["attacks/advisories", "padding of DATA"]],
  },
  {
    fault: "`:protocol` without extended CONNECT",
    tests: [["h2/core/fields", "CONNECT and extended CONNECT are not served"]],
  },
  {
    fault: "HPACK index 0",
    tests: [["h2/hpack/hpack-decoder", "an index of no entry is refused: 0"]],
  },
  {
    fault: "methods of thousands of characters",
    tests: [["attacks/advisories", "a method of 60,000 characters"]],
  },
  {
    fault: "a response that ends with its head but promises a body",
    tests: [["attacks/advisories", "promises a body"]],
  },
];

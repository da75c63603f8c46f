import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { RequestReader, readRequest, readResponse, trailersFault } from "../../../src/h2/core/fields.ts";
import { fastestMs } from "../../support/fastest.ts";
import { fields } from "../../support/hpack.ts";

const test = suite("h2/core/fields");

const request = [":method: GET", ":scheme: https", ":authority: 10.0.0.1:6443", ":path: /api/v1/pods"];

/** Returns the valid request with one line replaced by `line`, which has the same name. "NAME: -" removes the line. */
function changed(line: string): string[] {
  const name = line.slice(0, line.indexOf(":", 1));
  const value = line.slice(name.length + 2);
  return request.flatMap((old) => (old.startsWith(`${name}:`) ? (value === "-" ? [] : [line]) : [old]));
}

function requestFault(...texts: readonly string[]): string | undefined {
  const head = readRequest(fields(...texts));
  return typeof head === "string" ? head : undefined;
}

function responseFault(...texts: readonly string[]): string | undefined {
  const head = readResponse(fields(...texts));
  return typeof head === "string" ? head : undefined;
}

test("a request is read in one pass, and its fields are the very same list", () => {
  const list = fields(...request, "content-length: 12", "accept: application/json");
  assert.equal(readRequest(list), {
    method: "GET",
    scheme: "https",
    path: "/api/v1/pods",
    authority: "10.0.0.1:6443",
    contentLength: 12,
    fields: list,
  });
  const head = readRequest(list);
  assert.is(typeof head === "string" ? undefined : head.fields, list);
});

test("a request that differs from the one before in its path only is read as any other", () => {
  const texts = [...request, "authorization: Bearer x", "content-length: 0"];
  const list = fields(...texts);
  const withPath = (path: string): Field[] =>
    list.map((field) => (field.name === ":path" ? new Field(":path", path) : field));
  const reader = new RequestReader();
  for (const path of ["/a", "/b", "no-path", "/c", "/c d", "/d", "*", "/e", `/${"e".repeat(5000)}`, "/f"]) {
    const next = withPath(path);
    assert.equal(reader.read(next), readRequest(next), path.slice(0, 20));
  }
});

test("a request whose other fields differ from the one before is checked as a whole", () => {
  const list = fields(...request, "host: 10.0.0.1:6443");
  const others = [
    ...list.map((_, at) => list.toSpliced(at, 1)),
    ...list.map((field, at) => list.toSpliced(at, 0, field)),
    list.with(0, new Field(":method", "CONNECT")),
    list.with(2, new Field(":authority", "10.0.0.2:6443")),
    list.with(3, new Field(":status", "200")),
    list.with(4, new Field("host", "a@b")),
    list.toReversed(),
  ];
  for (const other of others) {
    const reader = new RequestReader();
    assert.equal(reader.read([...list]), readRequest([...list]));
    assert.equal(reader.read([...other]), readRequest([...other]));
    assert.equal(reader.read([...list]), readRequest([...list]));
  }
});

test("a heavy honest user passes byte-identical: 400 groups in order, a 12 KiB token, 30 cookies (A8)", () => {
  const list = [
    ...fields(...request),
    new Field("authorization", `Bearer ${"t".repeat(12 * 1024)}`),
    ...Array.from({ length: 400 }, (_, at) => new Field("impersonate-group", `team,${at}`)),
    ...Array.from({ length: 30 }, (_, at) => new Field("cookie", `c${at}=v`)),
  ];
  const head = readRequest(list);
  assert.type(head, "object");
  assert.is(typeof head === "object" ? head.fields : [], list);
});

test("methods are case-sensitive tokens; CONNECT and extended CONNECT are not served (A32)", () => {
  for (const method of ["GET", "get", "PATCH", "TRACE", "PRI", "M".repeat(10_240), "!#$%&'*+-.^_`|~9"])
    assert.is(requestFault(...changed(`:method: ${method}`)), undefined, method.slice(0, 20));
  for (const method of ["", "GET /x", "G(T", "G\xe9T", "GET,"])
    assert.is(requestFault(...changed(`:method: ${method}`)), ":method is not a token", method);
  assert.is(requestFault(":method: CONNECT", ":authority: a:1"), "CONNECT is not served");
  assert.is(requestFault(...request, ":protocol: websocket"), "unknown pseudo-field");
});

test("a path goes through as it is, or not at all (A30)", () => {
  const good = [
    "/",
    "//",
    "/api/../x",
    "/%2e%2e/%2F",
    "/a?b=c&d=/?#".slice(0, -1),
    '/"<>\\^`{|}',
    "/caf\xe9?q=\xc3\xa9",
    `/${"x".repeat(65_536)}`,
  ];
  for (const path of good)
    assert.is(requestFault(...changed(`:path: ${path}`)), undefined, path.slice(0, 20));
  const bad = ["", "api", "https://10.0.0.1/api", "*", "/a b", "/a#b", "?a", " /", "/a\t"];
  for (const path of bad) assert.type(requestFault(...changed(`:path: ${path}`)), "string", path);
});

test("a star is a path for OPTIONS only", () => {
  const lines = changed(":path: *");
  assert.is(requestFault(...lines.map((line) => line.replace("GET", "OPTIONS"))), undefined);
  assert.match(requestFault(...lines) ?? "", ":path");
});

test("a 64 KiB path, authority or length costs less than five milliseconds, good or bad to its last byte (A59)", () => {
  for (const text of [
    `/${"a%2f".repeat(16_384)}`,
    `/${"a%2f".repeat(16_384)}#`,
    "1".repeat(65_536),
    "a:".repeat(32_768),
  ]) {
    for (const name of [":path", ":authority", ":method", ":scheme", "content-length", "host"]) {
      const list = fields(...request.filter((line) => !line.startsWith(`${name}:`)));
      list.splice(name.startsWith(":") ? 0 : list.length, 0, new Field(name, text));
      const tookMs = fastestMs(() => readRequest(list));
      assert.ok(tookMs < 5, `${name} ${text.slice(0, 4)} ${tookMs} ms`);
    }
  }
});

test("the scheme is http or https", () => {
  for (const scheme of ["http", "https"])
    assert.is(requestFault(...changed(`:scheme: ${scheme}`)), undefined);
  for (const scheme of ["", "HTTPS", "ftp", "https:"])
    assert.match(requestFault(...changed(`:scheme: ${scheme}`)) ?? "", ":scheme");
});

test("an authority is a host and perhaps a port, without userinfo (A31)", () => {
  for (const authority of [
    "a",
    "A.b:443",
    "[::1]",
    "[fe80::1%25eth0]:6443",
    "10.0.0.1:",
    "a_b.c~d",
    "::1",
    "::1:6443",
    "2001:db8:1:2:3:4:5:6:65535",
    "kubernetes.default.svc",
  ])
    assert.is(requestFault(...changed(`:authority: ${authority}`)), undefined, authority);
  for (const authority of [
    "",
    "u@a",
    "u:p@a:1",
    "a b",
    "a/b",
    "a:b",
    "[::1",
    "a:1:2",
    "::1:x",
    "::1:",
    `::1:${"0".repeat(50)}`,
    "a?b",
    "a#b",
    "\xe9",
    ":1",
    "a,b@c",
  ])
    assert.match(requestFault(...changed(`:authority: ${authority}`)) ?? "", "authority", authority);
});

test("host equals :authority, occurs once, or takes its place (A31)", () => {
  assert.is(requestFault(...request, "host: 10.0.0.1:6443"), undefined);
  assert.is(requestFault(...changed(":authority: Api.Example:1"), "host: aPI.eXample:1"), undefined);
  assert.is(requestFault(...request, "host: 10.0.0.1"), "host differs from :authority");
  assert.is(requestFault(...request, "host: "), "host differs from :authority");
  assert.match(requestFault(...request, "host: 10.0.0.1:6443", "host: 10.0.0.1:6443") ?? "", "repeated");
  const without = changed(":authority: -");
  const head = readRequest(fields(...without, "host: b:1"));
  assert.is(typeof head === "object" ? head.authority : head, "b:1");
  assert.match(requestFault(...without, "host: u@b") ?? "", "authority");
  assert.match(requestFault(...without) ?? "", "neither");
});

test("pseudo-fields come first, once, all of them, and no others (A11)", () => {
  const [method = "", ...rest] = request;
  assert.is(requestFault(...rest), "no :method");
  assert.is(requestFault(...changed(":scheme: -")), "no :scheme");
  assert.is(requestFault(...changed(":path: -")), "no :path");
  assert.match(requestFault(...request, method) ?? "", "repeated");
  assert.is(requestFault(...rest, "accept: x", method), "pseudo-field after a regular field");
  assert.is(requestFault(...request, ":status: 200"), "pseudo-field of a response");
  assert.is(requestFault(...request, ":foo: x"), "unknown pseudo-field");
  assert.is(requestFault(), "no :method");
});

test("connection-specific fields are refused in requests, answers and trailers; a request may have te: trailers (A28)", () => {
  for (const name of ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]) {
    assert.is(requestFault(...request, `${name}: x`), "connection-specific field", name);
    assert.is(responseFault(":status: 200", `${name}: x`), "connection-specific field", name);
    assert.is(trailersFault(fields(`${name}: x`)), "connection-specific field", name);
  }
  assert.is(requestFault(...request, "te: trailers"), undefined);
  assert.is(responseFault(":status: 200", "te: trailers"), "connection-specific field");
  for (const te of ["gzip", "trailers, gzip", "", "Trailers"])
    assert.is(requestFault(...request, `te: ${te}`), "te is not trailers", te);
});

test("content-length is digits, once (A29)", () => {
  for (const [text, length] of [
    ["0", 0],
    ["0012", 12],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ] as const) {
    const head = readRequest(fields(...request, `content-length: ${text}`));
    assert.is(typeof head === "object" ? head.contentLength : head, length);
  }
  for (const text of [
    "",
    "+5",
    "-1",
    "0x5",
    "5 5",
    "5,5",
    "1e3",
    "9007199254740992",
    "18446744073709551616",
    "\xb2",
  ])
    assert.match(requestFault(...request, `content-length: ${text}`) ?? "", "content-length", text);
  assert.match(requestFault(...request, "content-length: 5", "content-length: 5") ?? "", "repeated");
  assert.match(requestFault(...request, "content-length: 5", "content-length: 6") ?? "", "repeated");
  assert.match(responseFault(":status: 200", "content-length: 5", "content-length: 5") ?? "", "repeated");
});

test("a field malformed by itself spoils its message, and no value is repeated in the reason (A27)", () => {
  for (const text of ["x-a: secret\n", "x-a: sec\0ret", "X-A: secret", "x a: secret"]) {
    for (const fault of [
      requestFault(...request, text),
      responseFault(":status: 200", text),
      trailersFault(fields(text)),
    ]) {
      assert.type(fault, "string", text);
      assert.not.match(fault ?? "", "secret");
    }
  }
});

test("blanks around the value of a regular field are removed, and those of a pseudo-field are a fault", () => {
  const head = readRequest(fields(...request, "x-a:  a b\t", "content-length:  5 "));
  assert.type(head, "object");
  if (typeof head === "string") return;
  assert.equal([head.fields.at(-2)?.value, head.contentLength], ["a b", 5]);
  for (const line of [":path:  /", ":method: GET ", ":authority: b "])
    assert.type(requestFault(...changed(line)), "string", line);
});

test("no reason repeats a value", () => {
  for (const line of [":method: se cret", ":scheme: secret", ":path: secret", ":authority: secret@x"])
    assert.not.match(requestFault(...changed(line)) ?? "secret", "secret");
  assert.not.match(requestFault(...request, "host: secret") ?? "secret", "secret");
  assert.not.match(requestFault(...request, "content-length: secret") ?? "secret", "secret");
  assert.not.match(responseFault(":status: secret") ?? "secret", "secret");
});

test("an answer has one status of three digits, and nothing of a request", () => {
  for (const status of ["100", "103", "200", "304", "599"])
    assert.is(responseFault(`:status: ${status}`), undefined);
  for (const status of ["", "99", "099", "600", "999", "2000", "20x", "+20", "101", "2 0"])
    assert.match(responseFault(`:status: ${status}`) ?? "", ":status", status);
  assert.is(responseFault("date: x"), "no :status");
  assert.is(responseFault("date: x", ":status: 200"), "pseudo-field after a regular field");
  assert.match(responseFault(":status: 200", ":status: 200") ?? "", "repeated");
  assert.is(responseFault(":status: 200", ":path: /"), "pseudo-field of a request");
  assert.is(responseFault(":status: 200", ":foo: x"), "unknown pseudo-field");
});

test("an answer's length is read, and refused where no content can be (A37)", () => {
  const head = readResponse(fields(":status: 200", "content-length: 7"));
  assert.equal(typeof head === "object" ? [head.status, head.contentLength] : head, [200, 7]);
  assert.is(responseFault(":status: 204", "content-length: 0"), undefined);
  assert.is(responseFault(":status: 304", "content-length: 7"), undefined);
  assert.match(responseFault(":status: 204", "content-length: 7") ?? "", "content-length");
  assert.match(responseFault(":status: 103", "content-length: 0") ?? "", "content-length");
});

test("an answer may repeat what a request may not", () => {
  assert.is(responseFault(":status: 200", "host: a", "host: b", "set-cookie: a", "set-cookie: b"), undefined);
});

test("trailers hold no pseudo-field and nothing that a receiver could take for the head's (A38)", () => {
  assert.is(trailersFault([]), undefined);
  assert.is(trailersFault(fields("grpc-status: 0", "x-checksum: 1")), undefined);
  for (const name of [":status", ":path", ":method", ":foo"])
    assert.is(trailersFault(fields("x-a: b", `${name}: x`)), "pseudo-field in trailers", name);
  for (const name of [
    "content-length",
    "host",
    "authorization",
    "cookie",
    "x-remote-user",
    "impersonate-group",
    "expect",
  ])
    assert.match(trailersFault(fields(`${name}: 1`)) ?? "", "belongs in the head", name);
  assert.is(trailersFault(fields("te: trailers")), "connection-specific field");
});

test.run();

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type ScriptedExchange, type ScriptedH1, startH1, until } from "../support/h1.ts";

/**
 * Rows A27 to A38 of the attack table, as far as an HTTP/1.1 client can attempt them. Each has a similar honest request
 * that must succeed.
 */
const test = suite("attacks/h1");

let h1: ScriptedH1;
test.before.each(async () => {
  h1 = await startH1();
});
test.after.each(() => h1.close());

const host = "Host: api\r\n";
const get = (fields: string, target = "/api"): string => `GET ${target} HTTP/1.1\r\n${host}${fields}\r\n`;
const post = (fields: string, body = ""): string => `POST /api HTTP/1.1\r\n${host}${fields}\r\n${body}`;
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: api\r\n\r\n";
const chunked = "Transfer-Encoding: chunked\r\n";

/**
 * Asserts that the request gets a Status response and a close, and that no exchange has received a complete request.
 */
async function refuses(request: string, code = 400): Promise<void> {
  const client = await h1.connect();
  client.send(request);
  const answer = await client.ended();
  assert.match(
    answer,
    new RegExp(`^HTTP/1.1 ${code} .*connection: close\r\n\r\n\\{"kind":"Status".*\\}\n$`, "s"),
  );
  assert.not(h1.exchanges.some((exchange) => exchange.isEnded && exchange.resetCode === undefined));
}

/** Asserts that the request is forwarded and answered. Returns its fields. */
async function serves(request: string): Promise<readonly string[]> {
  const { length: before } = h1.exchanges;
  const client = await h1.connect();
  client.send(request);
  await until("a request", () => h1.exchanges.length > before);
  const exchange = h1.exchanges[before] as ScriptedExchange;
  await exchange.until("the whole request", () => exchange.isEnded);
  exchange.answer([":status 200", "content-length 2"]);
  exchange.write("ok", true);
  await client.expect("\r\n\r\nok");
  client.socket.destroy();
  return exchange.lines.slice(4);
}

/** [title, attacks, a similar honest request, the status of the refusal] */
const rows: readonly (readonly [string, readonly string[], string, number?])[] = [
  [
    "A27: control characters and odd names in fields",
    [
      get("X-A: b\0c\r\n"),
      get("X-A: b\x01c\r\n"),
      get("X-A: b\x7fc\r\n"),
      get("X-A: b\rX-B: c\r\n"),
      get("X-A : b\r\n"),
      get("X A: b\r\n"),
      get("X\0A: b\r\n"),
      get(": b\r\n"),
      get(":path: /b\r\n"),
      get("no colon\r\n"),
    ],
    get("X-A:\t b \xe9 \t\r\nX_a!#$%&'*+-.^`|~: 1\r\n__proto__: x\r\nconstructor: y\r\n"),
  ],
  [
    "A29: lengths that lie",
    [
      post("Content-Length: 1\r\nContent-Length: 1\r\n", "G"),
      post("Content-Length: 1\r\nContent-Length: 2\r\n", "GG"),
      post("Content-Length: +5\r\n", "GGGGG"),
      post("Content-Length: 0x5\r\n", "GGGGG"),
      post("Content-Length: 5 5\r\n", "GGGGG"),
      post("Content-Length: 5,5\r\n", "GGGGG"),
      post("Content-Length:\r\n"),
      post("Content-Length: 18446744073709551616\r\n"),
    ],
    post("Content-Length: 05\r\n", "GGGGG"),
  ],
  [
    "A30: targets that are none",
    [
      get("", "api"),
      get("", "/a#b"),
      get("", "/a\xe9b"),
      get("", "*"),
      get("", "/a b"),
      get("", "/a\tb"),
      get("", "/a\x01b"),
      get("", "/a\r\nX: y"),
      get("", ""),
    ],
    get("", "//a/%2e%2e/../%2f?x=/../?&y=%00"),
  ],
  [
    "A31: two authorities",
    [
      `GET / HTTP/1.1\r\n${host}${host}\r\n`,
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: user@a\r\n\r\n",
      "GET http://user@a/ HTTP/1.1\r\nHost: user@a\r\n\r\n",
      `GET http://other/ HTTP/1.1\r\n${host}\r\n`,
    ],
    `GET http://API/ HTTP/1.1\r\n${host}\r\n`,
  ],
  ["A32: CONNECT", ["CONNECT api:443 HTTP/1.1\r\nHost: api:443\r\n\r\n"], get(""), 405],
  [
    "A32: methods that are none",
    [
      "get / HTTP/1.1\r\nHost: a\r\n\r\n",
      `${"G".repeat(10_000)} / HTTP/1.1\r\n${host}\r\n`,
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
  ],
  [
    "A33: bodies framed twice",
    [
      post(`Content-Length: 6\r\n${chunked}`, `0\r\n\r\n${smuggled}`),
      post(`${chunked}Content-Length: 6\r\n`, `0\r\n\r\n${smuggled}`),
      post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
      post(chunked + chunked, "0\r\n\r\n"),
      post(chunked, "0\r\n\r\n").replace("HTTP/1.1", "HTTP/1.0"),
    ],
    post("Transfer-Encoding:\tChunked \r\n", "0\r\n\r\n"),
  ],
  [
    "A33: lines that other parsers read otherwise",
    [
      get("X-A: b\r\n c\r\n"),
      get(" Content-Length: 5\r\n"),
      "GET / HTTP/1.1\r\n Host: api\r\n\r\n",
      get("X-A: b\n"),
      "GET / HTTP/1.1\nHost: api\n\n",
      ` ${get("")}`,
      get("").replace("HTTP/1.1", "HTTP/1.2"),
      get("").replace("HTTP/1.1", "HTTP/2.0"),
      "GET /\r\n\r\n",
    ],
    `\r\n${get("X-A:\r\n")}`,
  ],
  [
    "A33: chunks that are none",
    [
      post(chunked, "FFFFFFFFFFFFFFFFF\r\na\r\n"),
      post(chunked, "-1\r\na\r\n"),
      post(chunked, "1\na\r\n0\r\n\r\n"),
      post(chunked, "1\r\nab0\r\n\r\n"),
      post(chunked, "1 \r\na\r\n0\r\n\r\n"),
      post(chunked, "1;a\nb\r\na\r\n0\r\n\r\n"),
    ],
    post(chunked, "1;a=b;c\r\na\r\n00\r\n\r\n"),
  ],
  [
    "A33: a chunk line without end",
    [post(chunked, `1;${"a".repeat(70_000)}`)],
    post(chunked, "1;a\r\na\r\n0\r\n\r\n"),
    413,
  ],
  [
    "A38: trailers that say who asks",
    ["Authorization: x", "X-Remote-User: root", "Impersonate-User: root", "Content-Length: 5", "Host: b"].map(
      (line) => post(chunked, `1\r\na\r\n0\r\n${line}\r\n\r\n`),
    ),
    post(chunked, "1\r\na\r\n0\r\nX-Checksum: 1\r\n\r\n"),
  ],
  [
    "A38: trailers without end",
    [post(chunked, `0\r\n${"a:\r\n".repeat(17_000)}\r\n`)],
    post(chunked, `0\r\n${"a:\r\n".repeat(1000)}\r\n`),
  ],
  [
    "A40: Connection takes an identity away",
    [
      get("X-Remote-User: nobody\r\nConnection: close, X-REMOTE-user\r\n"),
      get("Authorization: Bearer x\r\nConnection: authorization\r\n"),
      get("Impersonate-Group: a\r\nConnection: x\r\nConnection: impersonate-group\r\n"),
    ],
    get("X-Hop: 1\r\nConnection: keep-alive, X-Hop\r\n"),
  ],
  [
    "A7: a head beyond its bound",
    [get(`X-A: ${"a".repeat(140_000)}\r\n`)],
    get(`X-A: ${"a".repeat(50_000)}\r\nX-B: ${"b".repeat(50_000)}\r\n`),
    431,
  ],
  [
    "A7: a field beyond its bound",
    [get(`X-A: ${"a".repeat(66_000)}\r\n`)],
    get(`X-A: ${"a".repeat(65_000)}\r\n`),
    431,
  ],
  ["A7: fields beyond their bound", [get("a:\r\n".repeat(16_385))], get("a:\r\n".repeat(16_000)), 431],
];

for (const [title, attacks, twin, code] of rows) {
  test(`${title} are refused, the honest twin is served`, async () => {
    for (const attack of attacks) await refuses(attack, code);
    await serves(twin);
  });
}

test("A8: four hundred groups, a long token and thirty cookies pass, each as its own field", async () => {
  const groups = Array.from({ length: 400 }, (_, at) => `Impersonate-Group: group ${at},x\r\n`);
  const cookies = Array.from({ length: 30 }, (_, at) => `Cookie: c${at}=1\r\n`);
  const fields = await serves(
    get(`${groups.join("")}Authorization: Bearer ${"t".repeat(12_288)}\r\n${cookies.join("")}`),
  );
  assert.is(fields.length, 431);
  assert.is(fields[399], "impersonate-group group 399,x");
});

test("A33: nothing is served behind a refusal", async () => {
  const client = await h1.connect();
  client.send(`${get("X A: b\r\n")}${smuggled}`);
  await client.ended();
  assert.is(h1.exchanges.length, 0);
});

test("A33: a request behind an Upgrade's predecessor never reaches the tunnel", async () => {
  const client = await h1.connect();
  client.send(get("") + get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  const exchange = await h1.exchange();
  await client.closed();
  assert.is(h1.upgrades.length, 0);
  await exchange.until("the reset", () => exchange.resetCode === 8);
});

test("A33: answers stay in the order of their requests, and a flood of them ends the socket", async () => {
  const client = await h1.connect();
  client.send(get("", "/1") + get("", "/2"));
  const first = await h1.exchange();
  assert.is(h1.exchanges.length, 1);
  first.answer([":status 200", "content-length 1"]);
  first.write("1", true);
  const second = await h1.exchange();
  second.answer([":status 200", "content-length 1"]);
  second.write("2", true);
  await client.expect(/\r\n\r\n1HTTP.*\r\n\r\n2$/s);
  client.send(get("").repeat(1000));
  await client.closed();
  assert.is(h1.exchanges.length, 3);
});

test("A37: an unsolicited 101 does not open a tunnel", async () => {
  const client = await h1.connect();
  client.send(get(""));
  const exchange = await h1.exchange();
  exchange.answer([":status 101", "x-a b"]);
  exchange.answer([":status 200", "content-length 0"], true);
  assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 200/);
});

test("A37: a body on an answer to HEAD, on 204 and on 304 does not become the next answer", async () => {
  const client = await h1.connect();
  for (const [method, status] of [
    ["HEAD", 200],
    ["GET", 204],
    ["GET", 304],
  ] as const) {
    client.send(get("").replace("GET", method));
    const exchange = await h1.exchange();
    exchange.answer([`:status ${status}`]);
    exchange.write("HTTP/1.1 200 Evil\r\n\r\n");
    exchange.write("", true);
    const head = await client.expect("\r\n\r\n");
    assert.match(head, `HTTP/1.1 ${status} `);
  }
  client.send(get(""));
  (await h1.exchange()).answer([":status 200", "content-length 0"], true);
  assert.not.match(await client.expect("\r\n\r\n"), "Evil");
});

test.run();

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { get, post, type ScriptedH1, startH1 } from "../../support/h1.ts";

const test = suite("proxy/downstream/h1-stream-writer");

let h1: ScriptedH1;
test.before.each(async () => {
  h1 = await startH1();
});
test.after.each(() => h1.close());

test("an answer with a length keeps it, and the socket takes the next request", async () => {
  const client = await h1.connect();
  for (const text of ["one", "two"]) {
    client.send(get("/"));
    const exchange = await h1.exchange();
    exchange.answer([":status 200", "content-length 3", "audit-id a", "audit-id b"]);
    exchange.write(text, true);
    const head = await client.expect(`\r\n\r\n${text}`);
    assert.match(head, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\naudit-id: a\r\naudit-id: b\r\n");
    assert.not.match(head, /transfer-encoding|date/i);
    await exchange.until("3 bytes sent", () => exchange.sentCount === 3);
  }
});

test("a watch's head goes at once and each event in its own chunk, as it comes", async () => {
  const client = await h1.connect();
  client.send(get("/api/v1/pods?watch=1"));
  const exchange = await h1.exchange();
  exchange.answer([":status 200", "content-type application/json"]);
  await client.expect("Transfer-Encoding: chunked\r\n\r\n");
  exchange.write('{"a":1}\n');
  await client.expect('8\r\n{"a":1}\n\r\n');
  exchange.write('{"b":2}\n');
  await client.expect('8\r\n{"b":2}\n\r\n');
  exchange.write("", true);
  assert.is(await client.expect("0\r\n\r\n"), "0\r\n\r\n");
});

test("a value beyond ASCII goes out byte for byte", async () => {
  const client = await h1.connect();
  client.send(get("/", "X-Name: \xe4\xff"));
  const exchange = await h1.exchange();
  assert.ok(exchange.lines.includes("x-name \xe4\xff"));
  exchange.answer([":status 200", "x-name \xe4\xff"]);
  assert.match(await client.expect("\r\n\r\n"), "x-name: \xe4\xff\r\n");
});

test("trailers end a chunked answer", async () => {
  const client = await h1.connect();
  client.send(get("/"));
  const exchange = await h1.exchange();
  exchange.answer([":status 200", "trailer x-sum"]);
  exchange.write("abc");
  exchange.answer(["x-sum 1", "x-sum 2"], true);
  await client.expect("3\r\nabc\r\n0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n");
});

test("trailers after a length are dropped, for HTTP/1.1 has no place for them", async () => {
  const client = await h1.connect();
  client.send(get("/") + get("/next"));
  const exchange = await h1.exchange();
  exchange.answer([":status 200", "trailer x-sum", "content-length 3"]);
  exchange.write("abc");
  exchange.answer(["x-sum 1"], true);
  await client.expect("\r\n\r\nabc");
  (await h1.exchange()).answer([":status 204"], true);
  assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 204/);
});

test("HEAD, 204 and 304 have no body, and the next answer follows at once", async () => {
  const client = await h1.connect();
  client.send(get("/").replace("GET", "HEAD") + get("/b") + get("/c") + get("/d"));
  (await h1.exchange()).answer([":status 200", "content-length 700"], true);
  assert.match(await client.expect("\r\n\r\n"), "content-length: 700\r\n");
  (await h1.exchange()).answer([":status 204"], true);
  assert.not.match(await client.expect("\r\n\r\n"), /chunked/i);
  (await h1.exchange()).answer([":status 304", 'etag "x"'], true);
  assert.not.match(await client.expect("\r\n\r\n"), /chunked/i);
  (await h1.exchange()).answer([":status 200", "content-length 0"], true);
  assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 200/);
});

test("a chunked upload arrives whole, with its trailers", async () => {
  const client = await h1.connect();
  client.send(post("Transfer-Encoding: chunked", "TE: trailers", "Connection: TE"));
  const exchange = await h1.exchange();
  assert.not(exchange.end);
  assert.ok(exchange.lines.includes("te trailers"));
  assert.not(exchange.lines.some((line) => /^(transfer-encoding|connection)/.test(line)));
  client.send("3\r\nabc\r\n");
  await exchange.until("the first chunk", () => exchange.body === "abc");
  client.send("2;ext=1\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n");
  await exchange.until("the end", () => exchange.isEnded);
  assert.equal([exchange.body, exchange.trailers], ["abcde", ["x-sum 5"]]);
});

test("an upload is read no faster than it is granted", async () => {
  const client = await h1.connect();
  const total = 4 << 20;
  client.send(post(`Content-Length: ${total}`));
  client.send(Buffer.alloc(total));
  const exchange = await h1.exchange();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(exchange.body.length > 0 && exchange.body.length <= 96 << 10, `${exchange.body.length} bytes`);
  let granted = 0;
  while (!exchange.isEnded) {
    const more = exchange.body.length - granted;
    granted += more;
    if (more > 0) exchange.side.grant(more);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.is(exchange.body.length, total);
});

test("a slow reader holds back what it has not read, and only its own", async () => {
  const slow = await h1.connect();
  slow.socket.pause();
  slow.send(get("/slow"));
  const stalled = await h1.exchange();
  stalled.answer([":status 200"]);
  const total = 32 << 20;
  stalled.write("x".repeat(total));
  const quick = await h1.connect();
  quick.send(get("/quick"));
  const lively = await h1.exchange();
  lively.answer([":status 200", "content-length 2"]);
  lively.write("ok", true);
  await quick.expect("ok");
  assert.is(stalled.sentCount, 0);
  slow.socket.resume();
  await stalled.until("all of it sent", () => stalled.sentCount === total);
});

test("a final answer instead of 100 closes, for the body may follow or not", async () => {
  const client = await h1.connect();
  client.send(post("Content-Length: 2", "Expect: 100-continue"));
  const exchange = await h1.exchange();
  exchange.answer([":status 403", "content-length 2"]);
  exchange.write("no", true);
  assert.match(await client.ended(), /^HTTP\/1.1 403 Forbidden\r\n.*Connection: close\r\n\r\nno$/s);
});

test("other interim heads pass with their fields", async () => {
  const client = await h1.connect();
  client.send(get("/"));
  const exchange = await h1.exchange();
  exchange.answer([":status 103", "link </a>"]);
  exchange.answer([":status 200", "content-length 0"], true);
  assert.match(
    await client.expect("content-length: 0"),
    /^HTTP\/1.1 103 Early Hints\r\nlink: <\/a>\r\n\r\nHTTP\/1.1 200/,
  );
});

test("an HTTP/1.0 client gets its body until the end, and no interim head", async () => {
  const client = await h1.connect();
  client.send("GET /version HTTP/1.0\r\nHost: api\r\n\r\n");
  const exchange = await h1.exchange();
  exchange.answer([":status 103", "link </a>"]);
  exchange.answer([":status 200"]);
  exchange.write("abc");
  exchange.write("", true);
  assert.match(await client.ended(), /^HTTP\/1.1 200 OK\r\nConnection: close\r\n\r\nabc$/);
});

test("an answer cut short never looks whole", async () => {
  for (const head of ["GET / HTTP/1.1\r\nHost: api\r\n\r\n", "GET / HTTP/1.0\r\nHost: api\r\n\r\n"]) {
    const client = await h1.connect();
    client.send(head);
    const exchange = await h1.exchange();
    exchange.answer([":status 200"]);
    exchange.write("half");
    await client.expect("half");
    exchange.side.reset(2);
    assert.not.match(await client.closed(), "0\r\n\r\n");
    assert.not(client.isEnded, "a reset, not an orderly end");
  }
});

test("a request that the backend's parser resets is answered with 400, any other one with a Status (D17)", async () => {
  const answered = await h1.connect();
  answered.send(get("/api/v1/%zz"));
  (await h1.exchange()).side.reset(1);
  assert.match(await answered.ended(), /^HTTP\/1.1 400 .*"reason":"BadRequest"/s);
  const client = await h1.connect();
  for (const [code, status] of [
    [2, /^HTTP\/1.1 504 (?!.*retry-after)/is],
    [7, /^HTTP\/1.1 503 .*retry-after: 1\r\n/is],
  ] as const) {
    client.send(post("Content-Length: 8"));
    (await h1.exchange()).side.reset(code);
    client.send("the body");
    assert.match(await client.expect(`"code":50${code === 2 ? 4 : 3}}\n`), status);
  }
  client.send("HEAD / HTTP/1.1\r\nHost: api\r\n\r\n");
  (await h1.exchange()).side.reset(2);
  assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 502 /);
});

test("an upload that breaks off is reset, never ended", async () => {
  const client = await h1.connect();
  client.send(`${post("Content-Length: 10")}abc`);
  const exchange = await h1.exchange();
  client.socket.end();
  await exchange.until("the reset", () => exchange.resetCode === 8);
  assert.not(exchange.isEnded);
});

test("an early answer passes, and the unwanted rest of the upload is thrown away", async () => {
  const client = await h1.connect();
  client.send(`${post("Content-Length: 8")}abc`);
  const exchange = await h1.exchange();
  exchange.answer([":status 413", "content-length 0"], true);
  exchange.side.reset(0);
  await client.expect("\r\n\r\n");
  client.send(`defgh${get("/next")}`);
  (await h1.exchange()).answer([":status 200", "content-length 0"], true);
  assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 200/);
});

test.run();

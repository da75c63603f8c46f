import { setTimeout as pause } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { get, post, type ScriptedH1, startH1, until } from "../../support/h1.ts";

const test = suite("proxy/downstream/h1");

let h1: ScriptedH1;
test.before.each(async () => {
  h1 = await startH1();
});
test.after.each(() => h1.close());

test("a request becomes an exchange with every field as it came, in order", async () => {
  const client = await h1.connect();
  client.send(
    get("/api//v1/%2e?watch=1", "Impersonate-Group: a", "X-Odd:  two  words ", "Impersonate-Group: b,c"),
  );
  const exchange = await h1.exchange();
  assert.equal(exchange.lines, [
    ":method GET",
    ":scheme http",
    ":authority api",
    ":path /api//v1/%2e?watch=1",
    "impersonate-group a",
    "x-odd two  words",
    "impersonate-group b,c",
  ]);
  assert.ok(exchange.end);
});

test("100 Continue comes from the backend, never from the proxy", async () => {
  const client = await h1.connect();
  client.send(post("Content-Length: 2", "Expect: 100-continue"));
  const exchange = await h1.exchange();
  assert.ok(exchange.lines.includes("expect 100-continue"));
  assert.is(client.text, "");
  exchange.answer([":status 100"]);
  await client.expect("HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  await exchange.until("the body", () => exchange.isEnded);
  exchange.answer([":status 201", "content-length 0"], true);
  assert.match(await client.expect("\r\n\r\n"), "Connection: keep-alive");
});

test("an Upgrade is handed over with the bytes that came early; h2c is not one", async () => {
  const client = await h1.connect();
  client.send(get("/exec", "Connection: Upgrade", "Upgrade: WebSocket", "Upgrade: h2c"));
  await until("the upgrade", () => h1.upgrades.length === 1);
  const plain = await h1.connect();
  plain.send(get("/api", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"));
  const exchange = await h1.exchange();
  assert.is(exchange.lines.length, 4);
  const early = await h1.connect();
  early.send(`${get("/exec", "Connection: upgrade", "Upgrade: SPDY/3.1").replace("GET", "POST")}early`);
  await until("the upgrade", () => h1.upgrades.length === 2);
  assert.is(h1.upgrades[1]?.head.toString(), "early");
});

test("a client that has closed its half still gets the answers to its requests, and then the end", async () => {
  const client = await h1.connect();
  client.socket.end(get("/one") + get("/two"));
  const first = await h1.exchange();
  await pause(50);
  first.answer([":status 200", "content-length 2"]);
  first.write("ok", true);
  const second = await h1.exchange();
  second.answer([":status 200", "content-length 3"]);
  h1.clock.advance(1100);
  second.write("too", true);
  assert.match(await client.ended(), /^HTTP\/1.1 200 OK\r\n.*\r\n\r\nokHTTP\/1.1 200 OK\r\n.*\r\n\r\ntoo$/s);
});

test("a watch, and a request without an answer, end when their client closes its half", async () => {
  for (const target of ["/api/v1/pods?watch=1", "/api/v1/pods"]) {
    const client = await h1.connect();
    client.socket.end(get(target));
    const exchange = await h1.exchange();
    await pause(50);
    assert.is(exchange.resetCode === undefined, target === "/api/v1/pods");
    h1.clock.advance(100);
    await exchange.until("the reset", () => exchange.resetCode !== undefined);
    client.socket.destroy();
  }
});

test("an idle client that closes its half is let go of", async () => {
  const client = await h1.connect();
  client.socket.end();
  assert.is(await client.ended(), "");
});

test.run();

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h1Waiting } from "../../../src/proxy/downstream/h1-connection.ts";
import { get, post, type ScriptedH1, startH1, until } from "../../support/h1.ts";

const test = suite("proxy/downstream/h1-connection");

let h1: ScriptedH1;
test.before.each(async () => {
  h1 = await startH1();
});
test.after.each(() => h1.close());

test("a client that leaves cancels its exchange, by closing or by half-closing", async () => {
  for (const leave of ["destroy", "end"] as const) {
    const client = await h1.connect();
    client.send(get("/api/v1/pods?watch=1"));
    const exchange = await h1.exchange();
    exchange.answer([":status 200"]);
    client.socket[leave]();
    await exchange.until("the reset", () => exchange.resetCode === 8);
    await until("the close", () => h1.clients.at(-1)?.client.connection.isOpen === false);
  }
});

test("behind a request that is not answered a few may wait, and 16 KiB of heads; more ends the socket (A26)", async () => {
  const few = await h1.connect();
  few.send(get("/slow") + get("/next", `X-Long: ${"x".repeat(15_000)}`));
  const exchange = await h1.exchange();
  exchange.answer([":status 204"], true);
  await few.expect("\r\n\r\n");
  (await h1.exchange()).answer([":status 204"], true);
  await few.expect("\r\n\r\n");
  const many = get("/next").repeat(17);
  for (const behind of [many, get("/next", `X-Long: ${"x".repeat(17_000)}`), get(`/${"x".repeat(17_000)}`)]) {
    const client = await h1.connect();
    client.send(get("/slow") + behind);
    await client.closed();
  }
});

test("of what a socket has said that was ended for it no more is parsed, however much one read has brought (A26)", async () => {
  let parsed = 0;
  const count = (): void => {
    parsed += 1;
  };
  subscribe("http.server.request.start", count);
  const client = await h1.connect();
  client.send(get("/slow") + get("/next").repeat(1000));
  await client.closed();
  unsubscribe("http.server.request.start", count);
  assert.ok(parsed > h1Waiting && parsed < h1Waiting + 5, `${parsed} were parsed`);
});

test("an upload that outlives its answer has an end", async () => {
  const client = await h1.connect();
  client.send(`${post("Content-Length: 8")}abc`);
  (await h1.exchange()).answer([":status 413", "content-length 0"], true);
  await client.expect("\r\n\r\n");
  await until("the finish", () => {
    h1.clock.advance(10_000);
    return client.isClosed;
  });
});

test("a socket that sends nothing, or half a head, is closed after ten seconds", async () => {
  const silent = await h1.connect();
  const slow = await h1.connect();
  slow.send("GET / HTTP/1.1\r\nHo");
  await until("both accepted", () => h1.drains.length === 2);
  h1.clock.advance(9999);
  assert.not(silent.isClosed);
  h1.clock.advance(1);
  await silent.closed();
  await slow.closed();
  assert.is(h1.entries.filter(({ kind }) => kind === "request.refused").length, 2);
});

test("a socket idle between requests lives five minutes, a slow second head ten to twenty seconds", async () => {
  const [idle, slow] = [await h1.connect(), await h1.connect()];
  for (const client of [idle, slow]) {
    client.send(get("/"));
    (await h1.exchange()).answer([":status 204"], true);
    await client.expect("\r\n\r\n");
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  slow.send("GET / HT");
  await new Promise((resolve) => setTimeout(resolve, 20));
  h1.clock.advance(20_000);
  await slow.closed();
  h1.clock.advance(279_999);
  assert.not(idle.isClosed);
  h1.clock.advance(1);
  await idle.ended();
});

test("an exchange that is open has no deadline", async () => {
  const client = await h1.connect();
  client.send(get("/api/v1/pods?watch=1"));
  const exchange = await h1.exchange();
  exchange.answer([":status 200"]);
  h1.clock.advance(4 * 3_600_000);
  exchange.write("still here");
  await client.expect("still here");
});

test("draining lets the idle go and the busy finish", async () => {
  const [idle, busy, fresh] = [await h1.connect(), await h1.connect(), await h1.connect()];
  idle.send(get("/"));
  (await h1.exchange()).answer([":status 204"], true);
  await idle.expect("204");
  busy.send(get("/"));
  const exchange = await h1.exchange();
  for (const drain of h1.drains) drain();
  await idle.ended();
  // A new connection's first request may be on its way already. It is answered with `Connection: close`.
  fresh.send(get("/"));
  (await h1.exchange()).answer([":status 204"], true);
  assert.match(await fresh.ended(), /connection: close/i);
  exchange.answer([":status 200"]);
  exchange.write("abc", true);
  assert.match(await busy.ended(), /abc\r\n0\r\n\r\n$/);
});

test("a client is idle between its requests: not before the first, not during one, not once it was sent away (A26)", async () => {
  const client = await h1.connect();
  await until("it to be accepted", () => h1.clients.length === 1);
  const [one] = h1.clients;
  assert.not(one?.isIdle);
  client.send(get("/"));
  const exchange = await h1.exchange();
  assert.not(one?.isIdle);
  h1.clock.advance(1000);
  exchange.answer([":status 204"], true);
  await client.expect("204");
  await until("it to be idle", () => one?.isIdle === true);
  assert.is(one?.idleSince, h1.clock.now());
  client.send(get("/"));
  const second = await h1.exchange();
  assert.not(one?.isIdle);
  second.answer([":status 204"], true);
  await until("it to be idle", () => one?.isIdle === true);
  one?.drain();
  assert.not(one?.isIdle);
  await client.ended();
});

test("a fault of the proxy costs its client, not the process", async () => {
  const client = await h1.connect();
  client.send(post("Content-Length: 3"));
  const exchange = await h1.exchange();
  exchange.data = () => {
    throw new Error("bug");
  };
  client.send("abc");
  // If the connection ended without a response, some clients would send the request again (D17).
  assert.match(await client.expect('"code":504}\n'), /^HTTP\/1.1 504 .*connection: close\r\n/s);
  assert.is(exchange.resetCode, 8);
  assert.ok(h1.entries.some((entry) => entry.kind === "internal.error" && entry.message === "bug"));
});

test("a request that crosses the end of an idle socket is not executed: its client sends it again elsewhere (D17)", async () => {
  let parsed = 0;
  const count = (): void => {
    parsed += 1;
  };
  for (const crossing of [post("Content-Length: 0"), post("Connection: Upgrade", "Upgrade: SPDY/3.1")]) {
    const client = await h1.connect();
    client.send(get("/api"));
    (await h1.exchange()).answer([":status 204"], true);
    await client.expect("\r\n\r\n");
    const { length } = h1.exchanges;
    for (const drain of h1.drains.splice(0)) drain();
    const before = client.socket.bytesWritten;
    subscribe("http.server.request.start", count);
    client.send(crossing);
    await client.ended();
    await until("the crossing", () => parsed > 0 || client.socket.bytesWritten > before);
    await new Promise<void>((resolve) => setTimeout(resolve, 20));
    unsubscribe("http.server.request.start", count);
    assert.equal([h1.exchanges.length, h1.upgrades.length], [length, 0]);
  }
});

test.run();

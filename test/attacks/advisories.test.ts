/**
 * Faults that other proxies, versions of Node and Go, and apiservers had. test/support/faults-of-others.ts lists them all,
 * and names the tests of the others.
 */
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { readRequest, readResponse } from "../../src/h2/core/fields.ts";
import { h2Limits } from "../../src/h2/core/limits.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";
import { classify } from "../../src/kube/request-info.ts";
import { verbLabel } from "../../src/kube/verb-label.ts";
import { Authorization } from "../../src/ops/admin/authorization/authorization.ts";
import { createH1 } from "../../src/proxy/downstream/h1-connection.ts";
import { manualClock } from "../support/clock.ts";
import { fastestMs } from "../support/fastest.ts";
import { anyone, get, ScriptedExchange, startH1 } from "../support/h1.ts";
import { data, headers, padded, raw, reset } from "../support/h2-frames.ts";
import { clientRig, Ear, fieldsOf, lastLine, serverRig } from "../support/h2-session.ts";
import { testPki } from "../support/pki.ts";
import { within } from "../support/within.ts";

const test = suite("attacks/advisories");

test("bytes that are read after their stream was reset are refunded once", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  const before = rig.peer.granted(0);
  for (let sent = 0; sent < h2Limits.streamWindowBytes; sent += 16_384)
    rig.peer.sends(data(1, Buffer.alloc(16_384)));
  const { stream } = rig.last;
  rig.peer.sends(reset(1, "CANCEL"));
  for (let sent = 0; sent < h2Limits.streamWindowBytes; sent += 16_384) stream.grant(16_384);
  rig.clock.turn();
  assert.is(rig.peer.granted(0) - before, h2Limits.streamWindowBytes);
});

test("padding of DATA that is an error of its stream is refunded, too", () => {
  const rig = serverRig();
  for (let id = 1; id < 200; id += 2)
    rig.peer.sends(
      headers(id).post("/", ["content-length", "1"]),
      padded(data(id, Buffer.alloc(16_000)), 255),
    );
  assert.not(rig.session.isOver, lastLine(rig));
  assert.ok(rig.peer.granted(0) > 100 * 16_000 - h2Limits.downstreamWindowBytes);
});

test("the reserved bit of WINDOW_UPDATE and GOAWAY is ignored", () => {
  const server = serverRig();
  server.peer.sends(headers(1).get("/"), raw(8, 0, 0, Buffer.from([0x80, 0, 0, 1])));
  server.peer.sends(raw(8, 0, 1, Buffer.from([0x80, 0, 0, 1])));
  server.peer.expectsNothing();
  const client = clientRig();
  const request = [":method", ":scheme", ":path", ":authority"].map((name, at): [string, string] => [
    name,
    ["GET", "https", "/", "api"][at] ?? "",
  ]);
  const ear = new Ear();
  client.session.open(fieldsOf(request), true, ear);
  client.clock.turn();
  client.peer.heard();
  client.peer.sends(raw(7, 0, 0, Buffer.from([0x80, 0, 0, 1, 0, 0, 0, 0])), headers(1).statusOnly(200));
  assert.equal(ear.lines, ["headers :status=200 end"]);
});

test("a decoder reads every block while its owner toggles the table between 0, 4,096 and 65,536 bytes", () => {
  const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder(65_536)];
  for (let turn = 0; turn < 3000; turn += 1) {
    const sizes = [0, 4096, 65_536];
    for (let count = 0; count <= turn % 4; count += 1)
      encoder.setPeerTableLimit(sizes[(turn * 7 + count) % 3] ?? 0);
    const fields = Array.from(
      { length: 5 },
      (_, at) => new Field(`x-${(turn + at) % 90}`, "v".repeat(turn % 200)),
    );
    const out = Buffer.alloc(encoder.bound(fields));
    const read = decoder.decode(out, 0, encoder.encode(fields, out, 0));
    assert.equal(
      read.map(({ name, value }) => [name, value]),
      fields.map(({ name, value }) => [name, value]),
    );
  }
});

test("a comma in :authority makes no list: the authority is one name, as Go's net/http takes it", () => {
  const pseudo = (authority: string): Field[] => [
    new Field(":method", "GET"),
    new Field(":scheme", "https"),
    new Field(":authority", authority),
    new Field(":path", "/"),
  ];
  for (const right of ["a.test,b.test", ","]) {
    const request = readRequest(pseudo(right));
    assert.is(typeof request === "object" && request.authority, right);
  }
  for (const wrong of ["a.test, b.test", "a.test,b.test:1:2"])
    assert.type(readRequest(pseudo(wrong)), "string", wrong);
});

test("a status of more or fewer than three digits, or with a sign, is malformed", () => {
  for (const status of ["2000", "20", "0200", "+20", "200 ", "2e2", "600", "099", "200,200"])
    assert.type(readResponse([new Field(":status", status)]), "string", status);
});

test("20,000 query parameters before or after watch=1 make a request that is neither hedged nor moved, in linear time", () => {
  const many = Array.from({ length: 20_000 }, (_, at) => `a${at}=1`).join("&");
  for (const query of [`watch=1&${many}`, `${many}&watch=1`, many]) {
    assert.is(classify("GET", `/api/v1/pods?${query}`).kind, "long-running");
    assert.ok(fastestMs(() => classify("GET", `/api/v1/pods?${query}`)) < 50);
  }
  const few = Array.from({ length: 9999 }, () => "a").join("&");
  assert.is(classify("GET", `/api/v1/pods?${few}&watch=1`).kind, "watch");
  assert.is(classify("GET", `/api/v1/pods?${few}&a&watch=1`).kind, "long-running");
});

test("path parameters are part of the resource's name, as for an apiserver, so a limit of secrets is not about them", () => {
  const resourceIn = (path: string): string => classify("GET", path).resource;
  assert.is(resourceIn("/api/v1/secrets;a=b"), "secrets;a=b");
  assert.is(resourceIn("/api/v1/namespaces/x/secrets%3ba=b/y"), "secrets;a=b");
  assert.is(resourceIn("/api/v1/namespaces;a=b/x/secrets"), "namespaces;a=b");
  assert.is(resourceIn("/api/v1/namespaces/x/%73ecrets"), "secrets");
});

test("a method of 60,000 characters has no verb, and one label for all of its kind", () => {
  const method = "A".repeat(60_000);
  assert.is(classify(method, "/api/v1/pods").verb, "");
  assert.ok(verbLabel(classify(method, "/api/v1/pods").verb).length < 20);
});

test("after a refused CONNECT the rest of the connection is not read as requests", async () => {
  const h1 = await startH1();
  const client = await h1.connect();
  client.send(`CONNECT api:443 HTTP/1.1\r\nHost: api:443\r\n\r\n${get("/smuggled")}`);
  const answer = await client.ended();
  assert.match(answer, /^HTTP\/1.1 405 /);
  assert.is(answer.split("HTTP/1.1").length, 2);
  assert.equal([h1.exchanges.length, h1.upgrades.length], [0, 0]);
  h1.close();
});

test("a Trailer field with thousands of names costs nothing, in a request and in a response", async () => {
  const h1 = await startH1();
  const names = Array.from({ length: 5000 }, (_, at) => `x-${at}`).join(", ");
  const client = await h1.connect();
  client.send(
    `POST / HTTP/1.1\r\nHost: api\r\nTransfer-Encoding: chunked\r\nTrailer: ${names}\r\n\r\n0\r\n\r\n`,
  );
  const exchange = await h1.exchange();
  exchange.answer([":status 200", `trailer ${names}`]);
  exchange.write("ok", true);
  assert.match(await client.expect("0\r\n\r\n"), "x-4999");
  h1.close();
});

test("a head that is written from inside the callback of an upload's bytes over TLS reaches the client", async () => {
  const { authority, serving } = await testPki();
  const clock = manualClock();
  const serve = createH1({
    clock,
    journal: new Journal(clock),
    upgrade() {},
    handle: (head, end, side) => {
      const exchange = new ScriptedExchange(head.fields, end, side);
      const receive = exchange.data.bind(exchange);
      exchange.data = (bytes, start, to, isEnd) => {
        if (exchange.body === "") exchange.answer([":status 200"]);
        receive(bytes, start, to, isEnd);
        side.grant(to - start);
        if (isEnd) exchange.write(exchange.body, true);
      };
      return exchange;
    },
  });
  const server = tls.createServer({ cert: serving.certificate, key: serving.key }, (socket) =>
    serve(socket, anyone()),
  );
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const socket = tls.connect({ port, host: "127.0.0.1", ca: authority.certificate, servername: "localhost" });
  let text = "";
  const whole = new Promise<void>((resolve) => {
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      if (text.split("0\r\n\r\n").length === 11) resolve();
    });
  });
  for (let count = 0; count < 10; count += 1)
    socket.write(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
    );
  await within(20_000, "all answers", whole);
  assert.is(text.match(/abcdef/g)?.length, 10);
  socket.destroy();
  server.close();
});

test("two users whose groups read alike when they are joined have an access review each", async () => {
  const clock = manualClock();
  const groupsOf: Readonly<Record<string, readonly string[]>> = {
    one: ["b", "c"],
    other: ["b,c"],
    third: ["b", 'c","d'],
  };
  let reviews = 0;
  const authorization = new Authorization({
    clock,
    journal: new Journal(clock),
    audiences: [],
    reviewer: {
      ask: ({ kind, body }) => {
        const text = JSON.stringify(body);
        const token = Object.keys(groupsOf).find((name) => text.includes(`"token":"${name}"`)) ?? "";
        const user = { username: "a", groups: groupsOf[token] };
        if (kind === "SubjectAccessReview") reviews += 1;
        const isAllowed = text.includes('"groups":["b","c"]');
        const status = kind === "TokenReview" ? { authenticated: true, user } : { allowed: isAllowed };
        return Promise.resolve({ answer: { status } });
      },
    },
  });
  const codes: unknown[] = [];
  for (const token of Object.keys(groupsOf)) {
    const asked = {
      verb: "get",
      path: "/api/v1/watches",
      authorization: `Bearer ${token}`,
      address: "::1",
    } as const;
    // oxlint-disable-next-line no-await-in-loop
    const outcome = await authorization.admit(asked);
    codes.push("status" in outcome ? outcome.status : outcome.username);
  }
  assert.equal([codes, reviews], [["a", 403, 403], 3]);
});

test("an answer that ends with its head but promises a body is an error of its stream, and nothing of it passes", () => {
  const rig = clientRig();
  const ear = new Ear();
  const stream = rig.session.open(
    fieldsOf([
      [":method", "GET"],
      [":scheme", "https"],
      [":path", "/"],
      [":authority", "api"],
    ]),
    true,
    ear,
  );
  rig.peer.sends(headers(1).statusOnly(200, ["content-length", "5"]));
  assert.is(stream.isClosed, true);
  assert.equal(ear.lines, [`reset ${errorCode.PROTOCOL_ERROR}`]);
});

test.run();

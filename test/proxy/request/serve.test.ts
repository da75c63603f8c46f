import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { identityOf } from "../../../src/upstream/identity/asserted-identity.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/request/serve");

test("a watch is requested without compression, and any other request as its client sent it", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  const compressed = [bearer("t"), new Field("accept-encoding", "gzip")];
  for (const target of ["/api/v1/pods?watch=true&resourceVersion=0", "/api/v1/pods"])
    client.ask("GET", target, compressed);
  path.settle();
  const asked = ["a", "b"].flatMap((name) => path.backend(name).asked);
  assert.equal(
    asked.map(({ request }) => request.fields.find(({ name }) => name === "accept-encoding")?.value),
    ["identity", "gzip"],
  );
});

test("a client stays with one backend, and clients spread over all", () => {
  const path = new PlayedPath(["a", "b"]);
  const clients = [path.client(), path.client(), path.client(), path.client()];
  for (const [index, client] of clients.entries()) {
    client.ask("GET", "/api/v1/pods?watch=true", [bearer(`t-${index}`)]);
    path.settle();
  }
  for (const [index, client] of clients.entries()) client.ask("GET", "/one", [bearer(`t-${index}`)]);
  path.settle();
  assert.equal([path.backend("a").asked.length, path.backend("b").asked.length], [4, 4]);
});

test("a backend that cannot be dialled costs its requests nothing: they are unsent and go to the next", () => {
  const path = new PlayedPath(["a", "b"], { down: ["a"] });
  const ears = ["/one", "/two"].map((target) => path.client().ask("POST", target, [bearer("t")]));
  path.settle();
  assert.is(path.backend("b").asked.length, 2);
  for (const asked of path.backend("b").asked) asked.answer(201);
  path.settle();
  assert.equal(
    ears.map((ear) => ear.status),
    ["201", "201"],
  );
});

test("when no backend is left, and none comes back in time, a request gets a Status with Retry-After", () => {
  const path = new PlayedPath(["a"], { down: ["a"] });
  path.settle();
  const read = path.client().ask("GET", "/api");
  const write = path.client().ask("POST", "/api");
  path.clock.advance(requestLimits.pendingMs - 100);
  assert.equal([read.status, write.status], ["", ""]);
  path.clock.advance(100);
  const retryAfter = (fields: (typeof read.heads)[0] | undefined): string | undefined =>
    fields?.find((field) => field.name === "retry-after")?.value;
  assert.equal([read.status, retryAfter(read.heads[0])], ["503", "1"]);
  assert.equal([write.status, retryAfter(write.heads[0])], ["503", "1"]);
  assert.equal(JSON.parse(read.body).kind, "Status");
});

test("a GET of a log that was lost before its response is sent to another backend; a GET of exec is not", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  const log = client.ask("GET", "/api/v1/namespaces/n/pods/p/log?follow=true", [bearer("t")]);
  const exec = client.ask("GET", "/api/v1/namespaces/n/pods/p/exec?command=ls", [bearer("t")]);
  path.settle();
  const [first, second] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  first?.kill();
  path.settle();
  assert.equal([second?.asked.length, exec.status], [1, "504"]);
  second?.last.answer(200, "line");
  path.settle();
  assert.equal([log.status, log.body], ["200", "line"]);
});

test("a GET that was lost with its backend is asked again elsewhere; a write of unknown outcome is not", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  const read = client.ask("GET", "/read", [bearer("t")]);
  const write = client.ask("POST", "/write", [bearer("t")]);
  path.settle();
  const [first, second] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  first?.kill();
  path.settle();
  assert.is(second?.asked.length, 1);
  second?.last.answer(200, "found");
  path.settle();
  assert.equal([read.status, read.body], ["200", "found"]);
  assert.is(write.status, "504");
  assert.is(
    write.heads[0]?.find((field) => field.name === "retry-after"),
    undefined,
  );
});

test("a stream above GOAWAY's last id was never processed, so even a write goes elsewhere", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  const write = client.ask("POST", "/write", [bearer("t")]);
  path.settle();
  const [first, second] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  first?.last.side?.reset(errorCode.REFUSED_STREAM);
  path.settle();
  second?.last.answer(201);
  path.settle();
  assert.is(write.status, "201");
});

test("requests that no backend can take go as soon as the first backend is back, in their order, a write too (F14)", () => {
  const path = new PlayedPath(["a", "b"], { down: ["a", "b"] });
  path.settle();
  const targets = ["/one", "/two", "/three"];
  for (const target of targets) path.client().ask("POST", target);
  path.clock.advance(1300);
  path.backend("a").isDown = false;
  path.clock.advance(1000);
  assert.equal(
    path.backend("a").asked.map(({ request }) => request.path),
    targets,
  );
  assert.is(path.pending.size, 0);
});

test("a client that hangs up while no backend can take its request is forgotten", () => {
  const path = new PlayedPath(["a"], { down: ["a"] });
  path.settle();
  const ear = path.client().ask("GET", "/api");
  path.settle();
  assert.is(path.pending.size, 1);
  ear.stream.reset(errorCode.CANCEL);
  path.settle();
  assert.equal([path.pending.size, path.exchanges.size], [0, 0]);
});

test("a GET that three backends lost is told 503 with Retry-After, so that a watch is not relisted (watch.md §5.1)", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const ear = path.client().ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  for (let attempt = 0; attempt < limits.attempts; attempt += 1) {
    path.settle();
    [...path.played.values()].find(({ asked, isDown }) => !isDown && asked.length > 0)?.kill();
  }
  path.settle();
  assert.is(ear.status, "503");
  assert.ok(ear.heads[0]?.some(({ name, value }) => name === "retry-after" && value === "1"));
  assert.match(ear.body, "All attempts failed");
});

test("the journal says which request failed at which backend, without the query", () => {
  const path = new PlayedPath(["a"]);
  path.client().ask("DELETE", "/api/v1/namespaces/x/pods/p?dryRun=All", [bearer("t")]);
  path.settle();
  path.backend("a").kill();
  path.settle();
  const failed = path.entries.filter((entry) => entry.kind === "request.failed");
  assert.equal(
    failed.map(({ code, verb, path: target, backend }) => [code, verb, target, backend]),
    [["outcome-unknown", "DELETE", "/api/v1/namespaces/x/pods/p", "a"]],
  );
});

/** The fields of a response by which an apiserver refuses a request before any handler has seen it. */
const refusing = (type: string): Field[] => [
  new Field("retry-after", "5"),
  new Field("content-type", type),
  new Field("x-content-type-options", "nosniff"),
];

test("a shutting down apiserver's refusal is replaced by another one's answer, for a write too (watch.md §10)", () => {
  for (const [status, type, isGoing] of [
    [429, "text/plain; charset=utf-8", true],
    [503, "application/json", false],
  ] as const) {
    const path = new PlayedPath(["a", "b"]);
    const write = path.client().ask("POST", "/write", [bearer("t")], false);
    write.say("body", true);
    path.settle();
    const [going, other] = [path.backend("a"), path.backend("b")].toSorted(
      (x, y) => y.asked.length - x.asked.length,
    );
    if (isGoing) going?.sessions.find(({ session }) => session.openCount > 0)?.session.goAway();
    path.settle();
    going?.last.answer(status, "The apiserver is shutting down", refusing(type));
    path.settle();
    assert.is(other?.last.body, "body");
    other?.last.answer(201);
    path.settle();
    assert.is(write.status, "201");
  }
});

test("the refusal of a backend that is overloaded, or that stands alone, is the client's to read", () => {
  for (const [names, status, type] of [
    [["a", "b"], 429, "text/plain; charset=utf-8"],
    [["a"], 503, "application/json"],
  ] as const) {
    const path = new PlayedPath(names);
    const read = path.client().ask("GET", "/read", [bearer("t")]);
    path.settle();
    const [asked] = [...path.played.values()].filter(({ asked: all }) => all.length > 0);
    asked?.last.answer(status, "later", refusing(type));
    path.settle();
    assert.equal([read.status, read.body], [String(status), "later"]);
  }
});

test("a stream that the only backend refused is sent to it again, on the upstream connection that follows", () => {
  const path = new PlayedPath(["a"]);
  const read = path.client().ask("GET", "/read", [bearer("t")]);
  path.settle();
  path.backend("a").last.side?.reset(errorCode.REFUSED_STREAM);
  path.settle();
  path.backend("a").last.answer(200, "found");
  path.settle();
  assert.equal([read.status, read.body], ["200", "found"]);
});

test("a short body whose stream was refused is sent again, whole and once, and what follows goes behind it", () => {
  const path = new PlayedPath(["a", "b"]);
  const write = path.client().ask("POST", "/write", [bearer("t")], false);
  write.say("first half, ");
  path.settle();
  const [refused] = [...path.backend("a").asked, ...path.backend("b").asked];
  refused?.side?.reset(errorCode.REFUSED_STREAM);
  path.settle();
  write.say("second half", true);
  path.settle();
  const [taken] = [...path.backend("a").asked, ...path.backend("b").asked].filter(
    (asked) => asked !== refused,
  );
  assert.equal([taken?.body, taken?.isEnded], ["first half, second half", true]);
  taken?.answer(201);
  path.settle();
  assert.is(write.status, "201");
  assert.is(path.buffered.bytes, 0);
});

test("a long body that began to go is not sent twice: the client is told that it may repeat it", () => {
  const path = new PlayedPath(["a", "b"]);
  const write = path.client().ask("POST", "/write", [bearer("t")], false);
  for (let sent = 0; sent <= requestLimits.repeatableBodyBytes; sent += 10_000) {
    write.say(Buffer.alloc(10_000));
    path.settle();
  }
  const asked = [...path.backend("a").asked, ...path.backend("b").asked];
  asked[0]?.side?.reset(errorCode.REFUSED_STREAM);
  path.settle();
  assert.is(write.resetCode, errorCode.REFUSED_STREAM);
  assert.is(path.backend("a").asked.length + path.backend("b").asked.length, 1);
  assert.is(path.buffered.bytes, 0);
});

const refusedByName = identityOf(
  { attributes: [], fingerprint: "", notAfter: 0, problem: undefined },
  { clientCerts: "Reject" },
);

test("a client certificate is refused by name", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client({ identity: refusedByName }).ask("GET", "/api");
  path.settle();
  assert.is(ear.status, "403");
  assert.match(JSON.parse(ear.body).message, "takes no client certificates");
  assert.is(path.backend("a").asked.length, 0);
});

test("HEAD is refused without a body", () => {
  const path = new PlayedPath(["a"], { down: ["a"] });
  path.settle();
  const ear = path.client().ask("HEAD", "/api");
  path.clock.advance(requestLimits.pendingMs);
  assert.equal([ear.status, ear.body, ear.isEnded], ["503", "", true]);
});

test.run();

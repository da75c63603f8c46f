/** A malformed response, or one with a head that is too long, ends its own request and no other. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { type Asked, bearer, type PlayedBackend, PlayedPath } from "../support/path.ts";

const test = suite("flows/malformed-responses");

const proxied = "/api/v1/namespaces/a/pods/web/proxy/huge";
const ok = new Field(":status", "200");
/** A head of 240 kB. */
const huge = Array.from({ length: 40 }, (_, at) => new Field(`x-h${at}`, "v".repeat(6000)));

function find({ asked }: PlayedBackend, part: string): Asked {
  const one = asked.find(({ request }) => request.path.includes(part));
  if (one === undefined) throw new Error(`No request contains ${part}`);
  return one;
}

test("a response head of 240 kB is a 502 that names the size, and no other request ends", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.clock.advance(1000);
  path.settle();
  const backend = path.backend("a");
  const [bob, eve] = [path.client(), path.client()];
  for (const [name, client] of Object.entries({ bob, eve })) {
    client.ask("GET", `/api/v1/first-${name}`, [bearer(name)]);
    path.settle();
    backend.last.answer(200, "{}");
    path.settle();
  }
  const slow = Array.from({ length: 5 }, (_, at) => bob.ask("GET", `/api/v1/slow${at}`, [bearer("bob")]));
  const log = bob.ask("GET", "/api/v1/namespaces/a/pods/p/log?follow=true", [bearer("bob")]);
  path.settle();
  const follow = find(backend, "/log");
  follow.side?.sendHeaders([ok], false);
  for (let times = 1; times <= 20; times += 1) {
    const own = eve.ask("GET", `${proxied}${times}`, [bearer("eve")]);
    path.settle();
    find(backend, `huge${times}`).side?.sendHeaders([ok, ...huge], true);
    path.settle();
    assert.equal([own.status, own.isEnded], ["502", true]);
    assert.match(
      own.body,
      /Backend a sent a malformed response: header list of 24\d{4} bytes and 41 fields: at most 131072/,
    );
    assert.not.match(own.body, "retryAfter");
  }
  follow.say("line\n");
  for (const at of slow.keys()) find(backend, `slow${at}`).answer(200, "{}");
  path.settle();
  assert.equal(
    slow.map(({ status }) => status),
    Array.from({ length: 5 }, () => "200"),
  );
  assert.equal([log.body, log.resetCode], ["line\n", undefined]);
  assert.not(backend.sessions.some(({ session }) => session.isOver));
  assert.equal(
    path.changes.filter(({ to }) => to !== "ready"),
    [],
  );
  const [told] = path.entries.filter((entry) => entry.kind === "request.failed");
  assert.equal(
    [told?.path, told?.client, told?.code, told?.origin, told?.backend],
    [`${proxied}1`, eve.downstream.client.address, "backend-protocol", "proxy", "a"],
  );
});

test("trailers of 240 kB reset the request's stream, are named in the journal, and end no other request", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const log = client.ask("GET", "/api/v1/namespaces/a/pods/p/log?follow=true", [bearer("t")]);
  const other = client.ask("GET", "/api/v1/slow", [bearer("t")]);
  path.settle();
  const follow = find(path.backend("a"), "/log");
  follow.side?.sendHeaders([ok], false);
  follow.say("line\n");
  path.settle();
  follow.side?.sendHeaders(huge, true);
  find(path.backend("a"), "/slow").answer(200, "{}");
  path.settle();
  assert.equal([log.body, log.resetCode], ["line\n", errorCode.ENHANCE_YOUR_CALM]);
  assert.is(other.status, "200");
  const [told] = path.entries.filter((entry) => entry.kind === "request.failed");
  assert.equal([told?.path, told?.origin], ["/api/v1/namespaces/a/pods/p/log", "proxy"]);
});

test("a watch whose resumed stream begins with a head of 240 kB goes on with the next backend", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const client = path.client();
  const watch = client.ask("GET", "/api/v1/configmaps?watch=true&resourceVersion=7", [bearer("t")]);
  path.settle();
  const [from] = [...path.played].filter(([, { asked }]) => asked.length > 0);
  const head = [ok, new Field("content-type", "application/json")];
  from?.[1].last.side?.sendHeaders(head, false);
  path.settle();
  from?.[1].kill();
  path.clock.advance(20);
  path.settle();
  const others = [...path.played.values()].filter((backend) => backend !== from?.[1]);
  const asked = (): Asked[] => others.flatMap(({ asked: list }) => list);
  asked()[0]?.side?.sendHeaders([...head, ...huge], false);
  for (let waits = 0; waits < 40 && asked().length < 2; waits += 1) {
    path.clock.advance(100);
    path.settle();
  }
  asked()[1]?.side?.sendHeaders(head, false);
  asked()[1]?.say(
    '{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","uid":"u","resourceVersion":"8"}}}\n',
  );
  path.settle();
  assert.equal([watch.resetCode, watch.isEnded], [undefined, false]);
  assert.match(watch.body, '"resourceVersion":"8"');
});

test.run();

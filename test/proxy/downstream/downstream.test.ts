import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { goAwayGraceMs } from "../../../src/proxy/downstream/downstream.ts";
import { type Frame, ping, priority, raw, reset, windowUpdate, wire } from "../../support/h2-frames.ts";
import { type PlayedClient, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/downstream/downstream");

test("a session without a stream is sent away after five minutes, one with a watch never (A25)", () => {
  const path = new PlayedPath(["a"]);
  const [idle, watching] = [path.client(), path.client()];
  watching.ask("GET", "/api/v1/pods?watch=1");
  for (let second = 0; second < limits.idleSessionMs / 1000 + 10; second += 1) {
    path.clock.advance(1000);
    idle.downstream.check();
    watching.downstream.check();
  }
  assert.equal([idle.isGone, watching.isGone], [true, false]);
  const isOpen = [idle, watching].map(({ downstream }) => downstream.client.connection.isOpen);
  assert.equal(isOpen, [false, true]);
});

test("a malformed request is journaled with the client and the rule that it breaks", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api", [new Field("x-a", "b\nsecret")]);
  path.settle();
  const refused = path.entries.filter(({ kind }) => kind === "request.refused");
  assert.equal(
    refused.map((entry) => (entry as { reason: string }).reason),
    ["field value has a control character"],
  );
});

test("drain is two steps: what the client opened before it received GOAWAY is still served", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  path.settle();
  client.downstream.drain();
  const crossing = client.ask("GET", "/crossing");
  path.settle();
  path.backend("a").last.answer(200, "served");
  path.settle();
  assert.is(crossing.body, "served");
  assert.ok(client.isGone);
});

test("what follows the PONG at once is served as well, what comes later is not", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.drain();
  path.settle();
  path.clock.advance(goAwayGraceMs - 1);
  // Node's HTTP/2 client may still send a request after GOAWAY if the request was queued before the connection was
  // open.
  client.ask("GET", "/queued");
  path.settle();
  assert.is(path.backend("a").last.request.path, "/queued");
  path.clock.advance(1);
  client.ask("GET", "/late");
  path.settle();
  assert.is(path.backend("a").last.request.path, "/queued");
});

test("a client that breaks the protocol is named, and its exchanges end", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.receive(Buffer.from([0, 0, 7, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]));
  path.settle();
  assert.is(path.exchanges.size, 0);
  assert.ok(
    path.entries.some(
      (entry) => entry.kind === "downstream_connection.refused" && entry.client === "10.0.0.9",
    ),
  );
  assert.ok(client.isGone);
});

/** Sends these frames unchanged on the client's connection. */
function sends(client: PlayedClient, ...frames: readonly Frame[]): void {
  client.downstream.receive(wire(...frames));
}

const habits: Record<string, (id: number) => readonly Frame[]> = {
  "a PRIORITY and a WINDOW_UPDATE": (id) => [priority(id, 0), windowUpdate(id, 1000)],
  "four PINGs": (id) => [ping(id), ping(id), ping(id), ping(id)],
  "four WINDOW_UPDATEs": (id) => Array.from({ length: 4 }, () => windowUpdate(id, 1)),
  "an unknown frame, PING, PRIORITY and WINDOW_UPDATE": (id) => [
    raw(0xfa, 0, 0),
    ping(id),
    priority(id, 0),
    windowUpdate(0, 1),
  ],
  "four frames of unknown type": (id) => Array.from({ length: 4 }, () => raw(0xfa, 0, id, Buffer.alloc(100))),
};

for (const [habit, frames] of Object.entries(habits)) {
  test(`${habit} with each of 3,000 requests end no session (D16)`, () => {
    const path = new PlayedPath(["a"]);
    const client = path.client();
    for (let request = 0; request < 3000; request += 1) {
      const answer = client.ask("HEAD", "/api/v1/pods");
      path.settle();
      sends(client, ...frames(answer.stream.id));
      path.backend("a").last.answer(404);
      path.settle();
      assert.is(answer.status, "404", `request ${request}`);
    }
    assert.not(client.isGone);
  });
}

test("a reset behind each of 3,000 whole answers, as Go's client sends them, ends no session (D16)", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  for (let request = 0; request < 3000; request += 1) {
    const answer = client.ask("GET", "/api/v1/pods");
    path.settle();
    path.backend("a").last.answer(200, "all of it");
    path.settle();
    sends(client, reset(answer.stream.id, "CANCEL"));
    assert.is(answer.status, "200", `request ${request}`);
  }
  assert.not(client.isGone);
});

test("requests that are answered here, or refused, pay for nothing (A4)", () => {
  // The proxy forwards none of these requests: either the client may not ask this host, or the cluster has no backend.
  for (const isElsewhere of [true, false]) {
    const path = new PlayedPath(isElsewhere ? ["a"] : []);
    const client = path.client({ mayAsk: () => !isElsewhere });
    for (let request = 0; request < 200 && !client.isGone; request += 1) {
      const { stream } = client.ask("GET", "/api/v1/pods");
      path.clock.advance(1);
      path.settle();
      sends(client, priority(stream.id, 0), priority(stream.id, 0));
      client.session.streams.find(({ id }) => id === stream.id)?.reset(8);
      path.settle();
    }
    assert.ok(client.isGone);
    assert.ok(
      path.entries.some(
        (entry) => entry.kind === "downstream_connection.refused" && /priority/.test(entry.reason),
      ),
    );
  }
});

test("cut ends a session whatever is open", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.cut();
  path.settle();
  assert.equal([client.isGone, path.exchanges.size], [true, 0]);
});

test.run();

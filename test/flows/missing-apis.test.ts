/**
 * One backend does not serve an API that another one serves, as in the middle of an upgrade (enhancements#4020). It
 * answers 404, although the API exists in the cluster.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { classify } from "../../src/kube/request-info.ts";
import { requestLimits } from "../../src/proxy/request/limits.ts";
import { Answering } from "../support/answering.ts";
import { type Asked, bearer, type Ear, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/missing-apis");

/** The responses of a real apiserver for an unknown API group, and for an unknown resource of a known group. */
const unknown = {
  group: answerOf("text/plain; charset=utf-8", "404 page not found\n"),
  resource: answerOf(
    "application/json",
    '{"kind":"Status","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}\n',
  ),
};

function answerOf(type: string, body: string): { readonly head: Field[]; readonly body: string } {
  const head = [new Field("content-type", type), new Field("content-length", String(body.length))];
  return { head, body };
}

const json = new Field("content-type", "application/json");
const lengthOf = (body: string): Field[] => [json, new Field("content-length", String(body.length))];
const path = "/apis/resource.k8s.io/v1/deviceclasses";
const pods = "/api/v1/namespaces/default/pods/p";

/** Returns whether the backend serves the request; "left": the test answers it. */
type Serves = (backend: string, asked: Asked) => boolean | "left";

const noObject =
  '{"kind":"Status","status":"Failure","message":"deviceclasses.resource.k8s.io \\"absent\\" not found","reason":"NotFound","details":{"name":"absent","group":"resource.k8s.io","kind":"deviceclasses"},"code":404}\n';
let unknownAnswer: ReturnType<typeof answerOf> | undefined;

/** Two backends, and a client that an earlier request has bound to `bound`. */
class Upgrade {
  readonly path = new PlayedPath(["a", "b"], { isProbed: true });
  readonly bound: string;
  readonly other: string;
  readonly #answering = new Answering(this.path, (name, asked) => this.#answer(name, asked));
  readonly ask: (
    method: string,
    url: string,
    body?: string,
    isWhole?: boolean,
  ) => ReturnType<PlayedClient["ask"]>;
  serves: Serves = (backend, { request }) =>
    backend === this.other || !request.path.includes("resource.k8s.io");

  constructor() {
    this.#run(2000);
    const client = this.path.client();
    this.ask = (method, url, body, isWhole = true) => {
      const ear = client.ask(method, url, [bearer("x")], body === undefined);
      if (body !== undefined) ear.say(body, isWhole);
      return ear;
    };
    this.other = "";
    this.get(pods);
    this.bound = this.backendsAsked(pods)[0] ?? "";
    this.other = this.bound === "a" ? "b" : "a";
  }

  /** The backends that received a request for this path, in the order of their names. */
  backendsAsked(url: string): string[] {
    return [...this.path.played].flatMap(([name, { asked }]) =>
      asked.filter(({ request }) => request.path === url).map(() => name),
    );
  }

  get(url: string): Ear {
    return this.send("GET", url);
  }

  send(method: string, url: string, body?: string): Ear {
    const ear = this.ask(method, url, body);
    this.#run(100);
    return ear;
  }

  wait(ms: number): void {
    this.#run(ms);
  }

  missing(): Entry[] {
    return this.path.entries.filter(({ kind }) => kind === "backend.api_missing");
  }

  #answer(name: string, asked: Asked): void {
    if (asked.resetCode !== undefined) return;
    const serves = this.serves(name, asked);
    if (serves === "left") return;
    if (serves && asked.request.path.endsWith("/absent")) asked.answer(404, noObject, lengthOf(noObject));
    else if (serves) asked.answer(200, `{"from":"${name}"}`, [json]);
    else if (unknownAnswer !== undefined) asked.answer(404, unknownAnswer.body, unknownAnswer.head);
    else if (asked.request.path.includes("none")) asked.answer(404, unknown.group.body, unknown.group.head);
    else asked.answer(404, unknown.resource.body, unknown.resource.head);
  }

  #run(ms: number): void {
    this.#answering.run(ms);
  }
}

test("a read that its backend does not know is answered by the one that does, and the client stays where it was", () => {
  const upgrade = new Upgrade();
  const read = upgrade.get(path);
  assert.equal([read.status, read.body], ["200", `{"from":"${upgrade.other}"}`]);
  assert.equal(upgrade.backendsAsked(path), ["a", "b"]);
  assert.is(upgrade.get(pods).body, `{"from":"${upgrade.bound}"}`);
});

test("later requests for it go where it is served at once, writes too, and an entry of the journal names it", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  assert.is(upgrade.get(path).status, "200");
  assert.is(upgrade.backendsAsked(path).length, 3);
  const write = upgrade.send("POST", path, "{}");
  assert.equal([write.status, upgrade.backendsAsked(path).length], ["200", 4]);
  const found = upgrade.path.entries.flatMap((entry) =>
    entry.kind === "backend.api_missing" ? [{ ...entry }] : [],
  );
  assert.equal(found, [
    {
      kind: "backend.api_missing",
      backend: upgrade.bound,
      api: "resource.k8s.io/v1",
      resource: "deviceclasses",
      servedBy: upgrade.other,
    },
  ]);
});

test("a write is never sent again because of a 404, even while the API is known to be missing", () => {
  const upgrade = new Upgrade();
  assert.is(upgrade.send("POST", path, "{}").status, "404");
  assert.is(upgrade.backendsAsked(path).length, 1);
  upgrade.get(path);
  upgrade.wait(31_000);
  const before = upgrade.backendsAsked(path).length;
  assert.is(upgrade.send("POST", path, "{}").status, "404", "no read has confirmed the gap for 30 s");
  assert.is(upgrade.backendsAsked(path).length, before + 1);
  upgrade.get(path);
  assert.is(upgrade.send("POST", path, "{}").status, "200");
  // The journal entry is repeated, so that the incident stays open as long as its cause lasts.
  assert.is(upgrade.missing().length, 2);
});

test("while reads of the API go on, they confirm the gap in time, so that no write gets the 404", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  for (let seconds = 0; seconds < 120; seconds += 5) {
    upgrade.wait(5000);
    assert.is(upgrade.send("POST", path, "{}").status, "200", `${seconds} s`);
    assert.is(upgrade.get(path).status, "200");
  }
});

test("a read of an object that does not exist shows that the other backend serves the API: a create goes there", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  upgrade.wait(31_000);
  assert.is(upgrade.get(`${path}/absent`).body, noObject);
  const write = upgrade.send("POST", path, "{}");
  assert.equal([write.status, write.body], ["200", `{"from":"${upgrade.other}"}`]);
});

test("a backend that serves the API after its upgrade gets requests again with the first read that tests it", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  upgrade.serves = () => true;
  upgrade.wait(requestLimits.missingTestMs);
  assert.is(upgrade.get(path).body, `{"from":"${upgrade.bound}"}`);
  assert.is(upgrade.send("POST", path, "{}").body, `{"from":"${upgrade.bound}"}`);
});

test("a subresource that one backend does not serve leaves requests for its resource where they are", () => {
  const upgrade = new Upgrade();
  upgrade.serves = (backend, { request }) => backend === upgrade.other || !request.path.includes("/resize");
  assert.is(upgrade.get(`${pods}/resize`).body, `{"from":"${upgrade.other}"}`);
  assert.is(upgrade.send("PATCH", `${pods}/resize`, "{}").body, `{"from":"${upgrade.other}"}`);
  for (let count = 0; count < 20; count += 1)
    assert.is(upgrade.get(`${pods}${count}`).body, `{"from":"${upgrade.bound}"}`);
});

for (const [how, second] of [
  ["cancelled by its client", undefined],
  ["answered 429", 429],
  ["answered 403", 403],
  ["answered 500", 500],
] as const)
  test(`a 404 whose read was then ${how} at the other backend shows no gap`, () => {
    const upgrade = new Upgrade();
    upgrade.serves = (backend, asked) => {
      if (!asked.request.path.includes("/bogus")) return true;
      if (backend === upgrade.bound) return false;
      if (second !== undefined) asked.answer(second, "{}", [json]);
      return "left";
    };
    const read = upgrade.ask("GET", `${pods}/bogus`);
    upgrade.wait(60);
    if (second === undefined) read.stream.reset(8);
    upgrade.wait(2000);
    assert.is(upgrade.missing().length, 0);
    assert.is(upgrade.get(`${pods}/bogus`).status, second === undefined ? "" : String(second));
    assert.is(upgrade.backendsAsked(`${pods}/bogus`).filter((name) => name === upgrade.bound).length, 2);
  });

test("a gap ends when the router of a second backend answers 404", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  upgrade.serves = (_, { request }) => !request.path.includes("resource.k8s.io");
  assert.is(upgrade.get(path).status, "404");
  assert.equal(upgrade.path.avoidedApis.avoided(classify("GET", path)), []);
});

for (const url of [
  `${pods}/proxy/hooks/fire`,
  "/api/v1/namespaces/default/services/web/proxy/fire",
  "/api/v1/proxy/namespaces/default/pods/p/fire",
  "/apis/metrics.k8s.io/v1beta1/nodes",
  "/apis/metrics.k8s.io/v1beta1",
])
  for (const method of ["GET", "POST"])
    test(`a 404 to a ${method} of ${url}, which another server may have answered, is the response, and the request is sent once`, () => {
      const upgrade = new Upgrade();
      upgrade.serves = (_, { request }) => request.path !== url;
      for (const body of [unknown.resource, unknown.group]) {
        unknownAnswer = body;
        const before = upgrade.backendsAsked(url).length;
        assert.is(upgrade.send(method, url, method === "POST" ? "{}" : undefined).status, "404");
        assert.is(upgrade.backendsAsked(url).length, before + 1);
      }
      unknownAnswer = undefined;
    });

test("an upload whose 404 begins before the upload has ended is never sent to another backend, in whole or in part", () => {
  const upgrade = new Upgrade();
  upgrade.get(path);
  upgrade.wait(31_000);
  upgrade.serves = (_, { request }) => request.method === "GET" || "left";
  const upload = upgrade.ask("POST", path, "a", false);
  upgrade.wait(20);
  const before = upgrade.backendsAsked(path).length;
  const asked = upgrade.path.backend(upgrade.bound).last;
  asked.side?.sendHeaders([new Field(":status", "404"), ...unknown.resource.head], false);
  upgrade.wait(20);
  for (let sent = 0; sent < 80; sent += 8) {
    upload.say("x".repeat(8 * 1024));
    upgrade.wait(20);
  }
  asked.say(unknown.resource.body, true);
  upgrade.wait(50);
  upload.say("end", true);
  upgrade.wait(50);
  assert.is(upload.status, "404");
  assert.is(upgrade.backendsAsked(path).length, before);
});

test("what no backend serves is 404 after both were asked, and nothing is remembered", () => {
  const upgrade = new Upgrade();
  upgrade.serves = (_, { request }) => !request.path.includes("resource.k8s.io");
  const read = upgrade.get(path);
  assert.equal([read.status, read.body], ["404", unknown.resource.body]);
  assert.equal(upgrade.backendsAsked(path), ["a", "b"]);
  assert.is(upgrade.path.entries.filter(({ kind }) => kind === "backend.api_missing").length, 0);
});

test("an object that does not exist is answered with a Status, and no other backend is asked", () => {
  const upgrade = new Upgrade();
  const asked = "/apis/resource.k8s.io/v1/deviceclasses/none";
  const status = '{"kind":"Status","code":404}';
  upgrade.serves = (_name, one) => {
    if (one.request.path !== asked) return true;
    one.answer(404, status, [json]);
    return true;
  };
  assert.equal([upgrade.get(asked).status, upgrade.backendsAsked(asked).length], ["404", 1]);
});

test("discovery of a group that only the other backend has is answered", () => {
  const upgrade = new Upgrade();
  assert.is(upgrade.get("/apis/resource.k8s.io/v1").status, "200");
  assert.is(upgrade.get(pods).body, `{"from":"${upgrade.bound}"}`);
});

test("with one backend left its 404 is the answer", () => {
  const upgrade = new Upgrade();
  upgrade.path.backend(upgrade.other).kill();
  upgrade.wait(1000);
  assert.is(upgrade.get(path).status, "404");
});

test("requests for many paths that no backend serves are asked twice only as far as their budget allows", () => {
  const upgrade = new Upgrade();
  upgrade.serves = () => false;
  const urls = Array.from({ length: 1000 }, (_, at) => `/apis/none.example.com/v1/things${at}`);
  for (const [at, url] of urls.entries()) {
    if (at % 100 === 0) upgrade.wait(10);
    upgrade.ask("GET", url);
  }
  upgrade.wait(200);
  const count = urls.reduce((sum, url) => sum + upgrade.backendsAsked(url).length, 0);
  assert.ok(count > 1000 && count <= 1000 + 150, String(count));
});

test.run();

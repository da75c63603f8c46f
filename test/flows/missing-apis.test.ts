/**
 * One backend does not serve an API that another one serves, as in the middle of an upgrade (enhancements#4020). It
 * answers 404, although the API exists in the cluster.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { Answering } from "../support/answering.ts";
import { type Asked, bearer, type Ear, PlayedPath } from "../support/path.ts";

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
const path = "/apis/resource.k8s.io/v1/deviceclasses";
const pods = "/api/v1/namespaces/default/pods/p";

type Serves = (backend: string, asked: Asked) => boolean;

/** Two backends, and a client that an earlier request has bound to `bound`. */
class Upgrade {
  readonly path = new PlayedPath(["a", "b"], { isProbed: true });
  readonly bound: string;
  readonly other: string;
  readonly #answering = new Answering(this.path, (name, asked) => this.#answer(name, asked));
  readonly ask: (method: string, url: string, body?: string) => Ear;
  serves: Serves = (backend, { request }) =>
    backend === this.other || !request.path.includes("resource.k8s.io");

  constructor() {
    this.#run(2000);
    const client = this.path.client();
    this.ask = (method, url, body) => {
      const ear = client.ask(method, url, [bearer("x")], body === undefined);
      if (body !== undefined) ear.say(body, true);
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

  #answer(name: string, asked: Asked): void {
    if (asked.resetCode !== undefined) return;
    if (this.serves(name, asked)) asked.answer(200, `{"from":"${name}"}`, [json]);
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

test("a write is not sent twice on a 404 alone; it is where the API is known to be missing, once that is looked at again", () => {
  const upgrade = new Upgrade();
  assert.is(upgrade.send("POST", path, "{}").status, "404");
  assert.is(upgrade.backendsAsked(path).length, 1);
  upgrade.get(path);
  upgrade.wait(31_000);
  assert.is(upgrade.send("POST", path, "{}").status, "200");
  assert.is(upgrade.backendsAsked(path).length, 5);
  // The journal entry is repeated, so that the incident stays open as long as its cause lasts.
  assert.is(upgrade.path.entries.filter(({ kind }) => kind === "backend.api_missing").length, 2);
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

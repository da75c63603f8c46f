/**
 * Which responses prove or disprove a bearer token. The backend answers in the order of kube-apiserver's handlers: some
 * requests before it authenticates them, and some with a status that another server has chosen.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { admissionLimits } from "../../src/proxy/admission/admission.ts";
import { Answering } from "../support/answering.ts";
import { type Asked, type Ear, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/token-proof");

const victim = "system:serviceaccount:shop:cart";
const jwt = (signature: string): string =>
  ["{}", JSON.stringify({ sub: victim }), signature]
    .map((part) => Buffer.from(part).toString("base64url"))
    .join(".");
const real = jwt("signed");
const forged = jwt("");
const pods = "/api/v1/namespaces/shop/pods/p";
const hang = "/api/v1/namespaces/shop/pods/hang";
const metrics = "/apis/metrics.k8s.io/v1beta1/nodes";

const authorization = (token: string): Field => new Field("authorization", `Bearer ${token}`);
const json = new Field("content-type", "application/json");

/** A status that another server than the apiserver has chosen; undefined: the apiserver answers itself. */
function othersStatus({ request }: Asked): number | undefined {
  const { method, path } = request;
  const isElsewhere =
    /\/proxy\/|\/log\?|\/apis\/metrics/.test(path) || (method === "POST" && path.includes("webhook"));
  return isElsewhere ? Number(/status=(\d+)/.exec(path)?.[1] ?? "200") : undefined;
}

class Scene {
  readonly path = new PlayedPath(["a"], {
    isProbed: true,
    limits: [{ name: "cart", users: [victim], rate: "5/h", burst: 5 }],
  });
  /** The tokens that the apiserver accepts. */
  readonly tokens = new Set([real]);
  readonly #answering = new Answering(this.path, (_name, asked) => this.#answer(asked));

  constructor() {
    this.run(2000);
  }

  run(ms: number): void {
    this.#answering.run(ms);
  }

  ask(client: PlayedClient, method: string, url: string, fields: readonly Field[]): Ear {
    const ear = client.ask(method, url, [...fields], method !== "POST");
    if (method === "POST") ear.say("{}", true);
    this.run(30);
    return ear;
  }

  /** The key of the upstream connections that a request with these fields gets now, without its kind. */
  trustOf(client: PlayedClient, fields: readonly Field[]): string {
    const { stream } = client.ask("GET", hang, [...fields]);
    this.run(20);
    const name = Array.from(this.path.exchanges.live, (exchange) => exchange.poolKey().name).at(-1) ?? "";
    stream.reset(8);
    this.run(20);
    return name.replace(" plain", "");
  }

  #answer(asked: Asked): void {
    const { request } = asked;
    const field = (wanted: string): string => request.fields.find(({ name }) => name === wanted)?.value ?? "";
    if (asked.resetCode !== undefined || request.path === hang) return;
    if (request.path.includes("timeout=abc")) return asked.answer(400, "{}", [json]);
    if (request.method === "OPTIONS" && field("origin") !== "") return asked.answer(204);
    const value = field("authorization").trim();
    const isAnonymous = !/^bearer [^ ]/i.test(value);
    if (!isAnonymous && !this.tokens.has(value.slice("Bearer ".length)))
      return asked.answer(401, "{}", [json]);
    if (request.path.includes("watch=1"))
      return asked.side?.sendHeaders([new Field(":status", "200"), json], false);
    asked.answer(othersStatus(asked) ?? 200, "{}", [json]);
  }
}

for (const [attack, method, url, fields] of [
  ["an invalid timeout", "GET", `${pods}?timeout=abc`, []],
  ["a CORS preflight", "OPTIONS", pods, [new Field("origin", "https://shop.example")]],
  [
    "a CORS preflight of a deprecated watch path",
    "OPTIONS",
    "/api/v1/watch/pods",
    [new Field("origin", "x")],
  ],
] as const)
  test(`an invented token whose request, ${attack}, is answered before authentication stays unproven and uses up no other client's limit (A43)`, () => {
    const scene = new Scene();
    const attacker = scene.path.client({ address: "10.6.6.6" });
    for (let count = 0; count < 20; count += 1) {
      const { status } = scene.ask(attacker, method, url, [authorization(forged), ...fields]);
      assert.ok(["400", "204"].includes(status), status);
      assert.is(scene.ask(attacker, "GET", pods, [authorization(forged)]).status, "401");
    }
    assert.is(scene.trustOf(attacker, [authorization(forged)]), "unproven");
    assert.is(scene.path.limits.own[0]?.passed, 0);
    const honest = scene.path.client({ address: "10.1.1.1" });
    for (let count = 0; count < 5; count += 1)
      assert.is(scene.ask(honest, "GET", pods, [authorization(real)]).status, "200");
    assert.is(scene.trustOf(honest, [authorization(real)]), "proven");
  });

for (const [server, method, url] of [
  ["an application behind a Service", "GET", "/api/v1/namespaces/shop/services/web/proxy/?status=401"],
  ["an application in a pod", "GET", `${pods}/proxy/?status=401`],
  ["a kubelet", "GET", `${pods}/log?status=401`],
  ["an aggregated API's server", "GET", `${metrics}?status=401`],
  ["a webhook that refuses a write", "POST", "/api/v1/namespaces/webhook/pods?status=401"],
] as const)
  test(`a 401 of ${server} leaves a proven token proven, and does not count against the client's address`, () => {
    const scene = new Scene();
    scene.path.limits.configure([]);
    const client = scene.path.client();
    const fields = [authorization(real)];
    assert.is(scene.ask(client, "GET", pods, fields).status, "200");
    for (let count = 0; count < 2 * admissionLimits.rejections; count += 1)
      assert.is(scene.ask(client, method, url, fields).status, "401");
    assert.is(scene.trustOf(client, fields), "proven");
    assert.not(scene.path.admission.isRejected(client.downstream.client.address));
  });

test("a response to a proxied or aggregated request, or from a path that a load balancer may answer, proves no token", () => {
  const scene = new Scene();
  const client = scene.path.client();
  for (const url of [
    `${pods}/proxy/`,
    `${pods}/log?follow=1`,
    metrics,
    "/apis/metrics.k8s.io/v1beta1",
    "/healthz",
  ]) {
    assert.is(scene.ask(client, "GET", url, [authorization(real)]).status, "200", url);
    assert.is(scene.trustOf(client, [authorization(real)]), "unproven", url);
  }
  assert.is(scene.ask(client, "GET", "/apis", [authorization(real)]).status, "200");
  assert.is(scene.trustOf(client, [authorization(real)]), "proven");
});

test("a value that the apiserver takes for no token is never proven, although the apiserver answers 200", () => {
  const scene = new Scene();
  const client = scene.path.client();
  for (const value of ["Bearer", "Bearer \t", "Basic dTpw"]) {
    const fields = [new Field("authorization", value)];
    assert.is(scene.ask(client, "GET", pods, fields).status, "200", value);
    assert.is(scene.trustOf(client, fields), "unproven rejected", value);
  }
});

test("a token that expires is unproven after the apiserver's own 401, and after a 401 with a GOAWAY even for an aggregated API", () => {
  for (const url of [pods, metrics]) {
    const scene = new Scene();
    scene.path.limits.configure([]);
    const client = scene.path.client();
    const fields = [authorization(real)];
    scene.ask(client, "GET", pods, fields);
    assert.is(scene.trustOf(client, fields), "proven");
    scene.tokens.delete(real);
    const ear = client.ask("GET", url, fields);
    scene.path.settle();
    for (const { session } of scene.path.backend("a").sessions) if (url === metrics) session.goAway();
    scene.run(30);
    assert.is(ear.status, "401");
    assert.is(scene.trustOf(client, fields), "unproven");
  }
});

test("watches of an aggregated API whose tokens stay unproven do not keep other new tokens waiting", () => {
  const scene = new Scene();
  const watches = Array.from({ length: admissionLimits.unprovenPerSource + 50 }, (_, at) => {
    scene.tokens.add(`agent-${at}`);
    return scene.path.client().ask("GET", `${metrics}?watch=1`, [authorization(`agent-${at}`)]);
  });
  scene.run(3000);
  assert.is(watches.filter(({ status }) => status === "200").length, watches.length);
  assert.is(scene.path.admission.open + scene.path.admission.waiting, 0);
});

test.run();

/**
 * A backend whose connection to etcd is cut still answers PINGs, and still answers requests from its caches. Other
 * backends are merely slow.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { healthLimits } from "../../src/health/limits.ts";
import { requestLimits } from "../../src/proxy/request/limits.ts";
import { type Ear, type PlayedBackend, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/slow-reads");

const object = "/api/v1/namespaces/n/configmaps/c";

type Scene = {
  readonly path: PlayedPath;
  readonly client: PlayedClient;
  /** The backend that the client is bound to, and the other one. */
  readonly own: PlayedBackend;
  readonly other: PlayedBackend;
};

/** Two ready backends, and a client that is bound to one of them. */
function start(isProbed = true): Scene {
  const path = new PlayedPath(["a", "b"], { isProbed });
  path.clock.advance(2000);
  const client = path.client();
  client.ask("GET", object);
  path.settle();
  const [own, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  if (own === undefined || other === undefined) throw new Error("Two backends are played");
  own.last.answer(200, "first");
  path.settle();
  return { path, client, own, other };
}

/** Lets `ms` pass. The backend `other` answers its requests at once. */
function pass({ path, other }: Scene, ms: number, status = 200): void {
  for (let passed = 0; passed < ms; passed += 10) {
    path.clock.advance(10);
    for (const asked of other.asked) if (asked.isEnded && !said.has(asked)) answer(asked, status);
    path.settle();
  }
}

const said = new WeakSet<Ear>();

function answer(asked: PlayedBackend["asked"][number], status: number): void {
  said.add(asked);
  asked.answer(status, "from the other");
}

const suspectAt = ({ path, own }: Scene): number | undefined =>
  path.changes.find(({ name, to }) => path.backend(name) === own && to === "suspect")?.at;

test("a read that hangs is answered by another backend within a second, and the backend stays what it was", () => {
  const scene = start();
  const ear = scene.client.ask("GET", object);
  pass(scene, 800);
  assert.equal([ear.status, ear.body], ["200", "from the other"]);
  assert.is(scene.own.last.resetCode, errorCode.CANCEL);
  assert.is(suspectAt(scene), undefined);
});

test("several in a row make it suspect within a second, and new work goes elsewhere", () => {
  const scene = start();
  const { path, client, own } = scene;
  const hurtAt = path.clock.now();
  const ears = Array.from({ length: healthLimits.hungReads }, () => client.ask("GET", object));
  pass(scene, 1000);
  assert.ok(ears.every(({ body }) => body === "from the other"));
  const at = (suspectAt(scene) ?? Number.POSITIVE_INFINITY) - hurtAt;
  assert.ok(at < 800, `after ${at} ms`);
  const change = path.entries.find((entry) => entry.kind === "backend.changed" && entry.to === "suspect");
  assert.ok(change?.kind === "backend.changed" && change.detector === "reads");
  const before = own.asked.length;
  client.ask("POST", "/api/v1/namespaces/n/configmaps");
  path.settle();
  assert.is(own.asked.length, before);
});

test("its watches get a hedge, and whatever else is unanswered there and may be asked twice is", () => {
  const scene = start();
  const { path, client, own, other } = scene;
  const watch = client.ask("GET", "/api/v1/configmaps?watch=1&resourceVersion=7");
  path.settle();
  own.last.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/json")],
    false,
  );
  path.settle();
  const list = client.ask("GET", "/api/v1/configmaps");
  for (let count = 0; count < healthLimits.hungReads; count += 1) client.ask("GET", object);
  pass(scene, 1000);
  assert.is(list.body, "from the other");
  assert.ok(
    other.asked.some(({ request }) => request.path.includes("watch=1")),
    "a hedge",
  );
  assert.is(watch.resetCode, undefined);
});

test("where only one read hangs, or a LIST does, /readyz is asked at once and with little patience", () => {
  for (const target of [object, "/api/v1/pods"]) {
    const scene = start();
    const { path, client, own } = scene;
    own.readyz = "hanging";
    const hurtAt = path.clock.now();
    const ear = client.ask("GET", target);
    pass(scene, 3000);
    const at = (suspectAt(scene) ?? Number.POSITIVE_INFINITY) - hurtAt;
    assert.ok(at <= 1500, `after ${at} ms`);
    assert.is(ear.body, "from the other");
  }
});

test("a LIST whose head takes ten seconds is not asked for twice, and no backend becomes suspect because of it", () => {
  const scene = start();
  const ear = scene.client.ask("GET", "/api/v1/pods");
  pass(scene, 10_000);
  scene.own.last.answer(200, "all of them");
  scene.path.settle();
  assert.equal([ear.body, suspectAt(scene)], ["all of them", undefined]);
  assert.is(scene.other.asked.length, 0);
});

test("a write that waits for its webhook is neither asked twice nor held against any backend", () => {
  const scene = start();
  const ear = scene.client.ask("POST", "/api/v1/namespaces/n/configmaps");
  pass(scene, 10_000);
  scene.own.last.answer(201, "made");
  scene.path.settle();
  assert.equal([ear.status, suspectAt(scene), scene.other.asked.length], ["201", undefined, 0]);
});

test("a read from the cache is not asked of another cache (k/k 59848)", () => {
  const scene = start();
  scene.client.ask("GET", `${object}?resourceVersion=0`);
  pass(scene, 2000);
  assert.equal([scene.other.asked.length, suspectAt(scene)], [0, undefined]);
});

test("where all are slow no backend becomes suspect, and they are soon asked once again", () => {
  const scene = start();
  const { path, client } = scene;
  const slow = (): void => {
    for (const backend of [scene.own, scene.other])
      for (const asked of backend.asked) {
        if (said.has(asked) || asked.resetCode !== undefined) continue;
        said.add(asked);
        path.clock.after(900, () => asked.answer(200, "at last"));
      }
  };
  let count = 0;
  for (let ms = 0; ms < 60_000; ms += 50) {
    if (ms % 200 === 0) {
      client.ask("GET", object);
      count += 1;
    }
    path.clock.advance(50);
    slow();
  }
  assert.is(suspectAt(scene), undefined);
  const most = 2 * requestLimits.slowHedgeBurst + 10;
  const twice = path.hedges.counts.all.reduce((sum, { count: ofBackend }) => sum + ofBackend, 0);
  assert.ok(twice < most, `${twice} of ${count} asked twice`);
});

test("the time of a read ends with the response's head, and does not include the time for which the body is held", () => {
  const { path, client, own } = start();
  for (let count = 0; count < 20; count += 1) {
    client.ask("GET", object);
    path.settle();
    own.last.side?.sendHeaders([new Field(":status", "200")], false);
    own.last.say("first half, ");
    path.settle();
    path.clock.advance(requestLimits.heldBodyMs / 2);
    own.last.say("second half", true);
    path.settle();
  }
  const name = path.backend("a") === own ? "a" : "b";
  const reads = path.pools.poolOf(name)?.reads;
  assert.ok((reads?.quantile(0.99) ?? Number.NaN) < 50, `${reads?.quantile(0.99)} ms`);
});

test("other reads that come back in between clear it: one object may be slow by itself", () => {
  const scene = start();
  const { path, client, own } = scene;
  for (let round = 0; round < 6; round += 1) {
    client.ask("GET", `${object}-slow`);
    pass(scene, 800);
    client.ask("GET", object);
    path.settle();
    own.last.answer(200, "as usual");
    path.settle();
  }
  assert.is(suspectAt(scene), undefined);
});

const servedByOthers = [
  "/apis/metrics.k8s.io/v1beta1/namespaces/n/pods/p",
  "/apis/custom.metrics.k8s.io/v1beta2/namespaces/n/pods/p/requests",
  "/apis/any.example.com/v1/namespaces/n/things/t",
  "/api/v1/componentstatuses/scheduler",
  "/apis/metrics.k8s.io/v1beta1/nodes",
  "/apis/metrics.k8s.io/v1beta1",
];

test("reads of what another server answers say nothing of the apiserver before it, however long they hang", () => {
  for (const target of servedByOthers) {
    const scene = start();
    const { client, own, path } = scene;
    const ears = Array.from({ length: 3 * healthLimits.hungReads }, () => client.ask("GET", target));
    own.readyzDelayMs = 900;
    pass(scene, 5000);
    assert.is(suspectAt(scene), undefined, target);
    for (const asked of own.asked.slice(-ears.length)) asked.answer(200, "late");
    path.settle();
    assert.ok(
      ears.every(({ status }) => status === "200"),
      target,
    );
  }
});

test("a slow metrics server does not make the proxy more patient with the apiserver's own reads", () => {
  const scene = start();
  const { client, own, path } = scene;
  for (let round = 0; round < 100; round += 1) {
    client.ask("GET", servedByOthers[0] ?? "");
    path.clock.advance(5000);
    own.last.answer(200, "late");
    path.settle();
  }
  const ear = client.ask("GET", object);
  pass(scene, 800);
  assert.is(ear.body, "from the other");
});

test("a refusal of the other is no answer: neither a 403 nor a failing backend shows that the first hangs", () => {
  for (const status of [403, 500]) {
    const scene = start();
    for (let count = 0; count < 5; count += 1) scene.client.ask("GET", object);
    pass(scene, 2500, status);
    assert.is(suspectAt(scene), undefined, String(status));
  }
});

test("slow reads asked twice have a budget of their own (limits.ts)", () => {
  const scene = start(false);
  scene.path.clock.advance(60_000);
  const most = 2 * requestLimits.slowHedgeBurst;
  const clients = Array.from({ length: 4 }, () => scene.path.client());
  for (const one of clients) one.downstream.client.bind(scene.client.downstream.client.backend ?? "");
  for (let index = 0; index < 2 * most; index += 1) clients[index % 4]?.ask("GET", object);
  scene.path.clock.advance(750);
  assert.ok(scene.other.asked.length >= most && scene.other.asked.length < most + 20);
});

test("time in which the proxy's own loop stood still makes no read slow (F11)", () => {
  const scene = start();
  scene.client.ask("GET", object);
  scene.path.settle();
  scene.path.clock.stall(600);
  scene.path.clock.advance(300);
  assert.is(scene.other.asked.length, 0);
});

test("a backend whose reads come back is ready again a few seconds later", () => {
  const scene = start();
  for (let count = 0; count < healthLimits.hungReads; count += 1) scene.client.ask("GET", object);
  pass(scene, 1000);
  assert.ok(suspectAt(scene) !== undefined);
  pass(scene, healthLimits.hungReadsMs + 2500);
  assert.equal(
    scene.path.backends.views.map(({ state }) => state),
    ["ready", "ready"],
  );
});

test("reads that wait in the hole of one upstream connection say nothing of their backend, whose other upstream connections answer", () => {
  for (let phaseMs = 0; phaseMs < 250; phaseMs += 20) {
    const scene = start();
    pass(scene, phaseMs);
    const ears = Array.from({ length: 2 * healthLimits.hungReads }, () => scene.client.ask("GET", object));
    scene.path.settle();
    for (const { session, cable } of scene.own.sessions) if (session.openCount > 0) cable.blackHole();
    pass(scene, 1_500);
    assert.ok(ears.every(({ status }) => status === "200"));
    assert.is(suspectAt(scene), undefined, `suspected in phase ${phaseMs}`);
  }
});

test.run();

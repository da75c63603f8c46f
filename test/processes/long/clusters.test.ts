/**
 * Clusters of embedded apiservers on one port. Each cluster has its own CA and its own store, and one of them has
 * faults. The watches and GETs of a cluster may only go to its own apiservers.
 */
import { once } from "node:events";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { Embedded, type FaultKind } from "../../../demo/apiserver/embedded.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { eventually, type SeveralClusters, startClusters, type ToldCluster } from "../../support/clusters.ts";
import { shake, tlsOptions } from "../../support/front-proxy.ts";
import { within } from "../../support/within.ts";

const test = suite("long/clusters");

const path = "/api/v1/namespaces/default/configmaps";

type Played = { readonly told: ToldCluster; readonly embedded: readonly Embedded[] };

let scene: SeveralClusters;
const undo: (() => unknown)[] = [];
test.after.each(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

/** Starts apiservers on one store. Their certificates come from a CA of their own. */
async function played(name: string, count: number): Promise<Played> {
  const authority = await createAuthority({ name: `${name}-ca`, clock: wallClock });
  const pair = authority.issue({ name: "kube-apiserver", hosts: ["localhost"] });
  const store = newCluster(wallClock);
  const embedded = Array.from({ length: count }, () => new Embedded({ name, store, clock: wallClock, pair }));
  const ports = await Promise.all(embedded.map((one) => one.start()));
  undo.push(() => Promise.all(embedded.map((one) => one.stop())));
  const told = ports.map((port) => {
    if (port instanceof Failure) throw new Error(port.message);
    return port;
  });
  return { told: { name, ports: told, ca: authority.certificate }, embedded };
}

async function start(clusters: readonly Played[], extra = ""): Promise<void> {
  scene = await startClusters(
    clusters.map(({ told }) => told),
    { extra },
  );
  undo.push(() => scene.stop());
  for (const { told } of clusters)
    for (const at of told.ports.keys())
      await eventually(`${told.name}/b${at}`, async () =>
        (await scene.metrics()).includes(
          `watchkeeper_backend_ready{backend="${told.name}/b${at}",cluster="${told.name}"} 1`,
        ),
      );
}

/** A client of one cluster, with its own session. */
class Caller {
  readonly #session: http2.ClientHttp2Session;
  readonly #name: string;

  private constructor(name: string, session: http2.ClientHttp2Session) {
    this.#name = name;
    this.#session = session;
    session.on("error", () => {});
    undo.push(() => session.destroy());
  }

  static async of(name: string): Promise<Caller> {
    const servername = `${name}.test`;
    const socket = await shake({ ...tlsOptions(scene.place, undefined), servername, ALPNProtocols: ["h2"] });
    return new Caller(name, http2.connect(`https://${servername}`, { createConnection: () => socket }));
  }

  #open(method: string, target: string): http2.ClientHttp2Stream {
    const authorization = "Bearer one-and-the-same";
    const asked = { ":method": method, ":path": target, authorization, "content-type": "application/json" };
    return this.#session.request(asked, { endStream: method === "GET" });
  }

  async ask(target: string, body?: object): Promise<{ readonly status: number; readonly text: string }> {
    const stream = this.#open(body === undefined ? "GET" : "POST", target);
    if (body !== undefined) stream.end(JSON.stringify(body));
    const [head] = (await within(20_000, `${this.#name}'s answer`, once(stream, "response"))) as [
      http2.IncomingHttpHeaders,
    ];
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    return { status: Number(head[":status"]), text: Buffer.concat(chunks).toString() };
  }

  /**
   * Creates a ConfigMap. The proxy does not repeat a write that was under way when the apiserver failed, but answers
   * 504, so the client retries it.
   */
  async create(name: string): Promise<void> {
    const body = { kind: "ConfigMap", apiVersion: "v1", metadata: { name } };
    let { status } = await this.ask(path, body);
    for (let tries = 0; tries < 5 && status === 504; tries += 1) ({ status } = await this.ask(path, body));
    assert.ok([201, 409].includes(status), `${name} in ${this.#name}: ${status}`);
  }

  /** Opens a watch, and returns an array to which the names of its events are added. */
  async watch(): Promise<string[]> {
    const { text } = await this.ask(path);
    const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? "";
    const stream = this.#open("GET", `${path}?watch=true&resourceVersion=${version}`);
    const names: string[] = [];
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) names.push(/"name":"([^"]*)"/.exec(line)?.[1] ?? line);
    });
    stream.on("error", () => names.push("reset"));
    stream.on("end", () => names.push("end"));
    await within(20_000, "the watch", once(stream, "response"));
    return names;
  }
}

for (const fault of ["hole", "freeze", "restart"] as const satisfies readonly FaultKind[]) {
  test(`a ${fault} in one cluster: its watches and GETs go on at its own, and the other has no part in it`, async () => {
    const [eu, us] = [await played("eu", 1), await played("us", 2)];
    await start([eu, us]);
    const [ofEu, ofUs] = [await Caller.of("eu"), await Caller.of("us")];
    await ofUs.create("only-us");
    await ofEu.create("only-eu");
    const watchers = await Promise.all(Array.from({ length: 4 }, () => Caller.of("us")));
    const seen = await Promise.all(watchers.map((one) => one.watch()));
    const seenAtEu = await ofEu.watch();
    const watchesAtEu = new Set<number>();
    const [struck] = us.embedded;
    await struck?.strike(fault);
    const written: string[] = [];
    for (let turn = 0; turn < 15; turn += 1) {
      const name = `cm-${turn}`;
      written.push(name);
      const [readUs, readEu] = await Promise.all([
        ofUs.ask(`${path}/only-us`),
        ofEu.ask(`${path}/only-eu`),
        ofUs.create(name),
        ofEu.create(name),
      ]);
      // A 404 would come from the other cluster, which does not have the object.
      assert.equal([readUs.status, readEu.status], [200, 200], name);
      for (const one of eu.embedded) watchesAtEu.add(one.watchCount);
      await sleep(200);
    }
    const isTold = (names: readonly string[]): boolean => names.includes("cm-14");
    await eventually("the last event everywhere", async () => isTold(seenAtEu) && seen.every(isTold));
    for (const names of [...seen, seenAtEu]) assert.equal(names, written);
    assert.equal([...watchesAtEu], [1], "no watch of us was ever asked for at eu");
    const changes = scene.entries.filter(
      ({ kind, cluster }) => kind === "backend.changed" && cluster === "eu",
    );
    assert.ok(changes.every((entry) => entry.kind === "backend.changed" && entry.to === "ready"));
    assert.is(await struck?.heal(fault), undefined);
  });
}

test("with all apiservers of one gone its watches end and its GETs are told 503; the other's go on; and it comes back", async () => {
  const [eu, us] = [await played("eu", 1), await played("us", 2)];
  await start([eu, us]);
  const [ofEu, ofUs, watcher] = [await Caller.of("eu"), await Caller.of("us"), await Caller.of("us")];
  await ofUs.create("only-us");
  const [seenAtEu, seenAtUs] = [await ofEu.watch(), await watcher.watch()];
  for (const one of us.embedded) await one.strike("hole");
  await eventually("the incident", async () =>
    scene.entries.some(
      (entry) =>
        entry.kind === "incident.opened" && entry.incident === "all-backends-down" && entry.subject === "us",
    ),
  );
  const refused = await ofUs.ask(`${path}/only-us`);
  assert.is(refused.status, 503);
  await ofEu.create("meanwhile");
  await eventually("eu's event", async () => seenAtEu.includes("meanwhile"));
  assert.not.ok(seenAtUs.includes("meanwhile") || seenAtUs.includes("reset"));
  for (const one of eu.embedded) assert.is(one.watchCount, 1);
  for (const one of us.embedded) await one.heal("hole");
  await eventually("us again", async () => (await ofUs.ask(`${path}/only-us`)).status === 200);
});

test("what a client has seen of one cluster is no floor for its answers of another", async () => {
  const [eu, us] = [await played("eu", 1), await played("us", 1)];
  await start([eu, us], "watches: {staleReadGuard: Enforce}");
  const [ofEu, ofUs] = [await Caller.of("eu"), await Caller.of("us")];
  for (let count = 0; count < 40; count += 1) await ofUs.create(`far-${count}`);
  assert.is((await ofUs.ask(`${path}?resourceVersion=0`)).status, 200);
  // The requests have the same token and address at both clusters. If versions were remembered across clusters, `eu`
  // would have to wait for a version that it reaches much later.
  for (let asked = 0; asked < 3; asked += 1)
    assert.is((await ofEu.ask(`${path}?resourceVersion=0`)).status, 200);
  const metrics = await scene.metrics();
  for (const cluster of ["eu", "us"]) {
    assert.match(metrics, `watchkeeper_stale_responses_total{cluster="${cluster}"} 0`);
    assert.match(
      metrics,
      `watchkeeper_stale_read_guard_requests_total{result="refused",cluster="${cluster}"} 0`,
    );
  }
});

test("a reload that adds a third cluster leaves the watches of the two where they are", async () => {
  const [eu, us, ap] = [await played("eu", 1), await played("us", 1), await played("ap", 1)];
  await start([eu, us]);
  const [ofEu, ofUs] = [await Caller.of("eu"), await Caller.of("us")];
  const [seenAtEu, seenAtUs] = [await ofEu.watch(), await ofUs.watch()];
  assert.equal(await scene.reload([eu, us, ap].map(({ told }) => told)), []);
  const ofAp = await Caller.of("ap");
  await ofAp.create("of-ap");
  await (await Caller.of("us")).create("of-us");
  await (await Caller.of("eu")).create("of-eu");
  await eventually("both events", async () => seenAtEu.length > 0 && seenAtUs.length > 0);
  assert.equal([seenAtEu, seenAtUs], [["of-eu"], ["of-us"]]);
  assert.match((await ofAp.ask(path)).text, "of-ap");
});

test.run();

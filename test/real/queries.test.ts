/**
 * Whether a request is a watch, and from which version it starts, according to a real apiserver and according to our
 * parser (watch.md §1.1 and §1.3; §11, row 23). Each spelling of a query is sent to a collection of three objects. The
 * version in the query is that of the middle one, so the response shows where the watch starts.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { classify } from "../../src/kube/request-info.ts";
import { watchRequestOf } from "../../src/kube/watch-request.ts";
import { JsonEvents } from "../../src/watch/codec/json-events.ts";
import { relayed } from "../support/watch-bytes.ts";
import { type Answer, ask, order, type Server } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";

const test = suite("real/queries");
const real = testWith(test, clusterNeeds);

let cluster: Cluster;
let server: Server;
/** A resourceVersion after the creation of `early` and before that of `late`. */
let between = "";

const base = "/api/v1/namespaces/default/configmaps";

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 1 });
  server = { url: cluster.apiserver(0).url, caFile: cluster.caFile, token: cluster.token };
  await create("early");
  between = await create("middle");
  await create("late");
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

async function create(name: string): Promise<string> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name } };
  const made = JSON.parse(await order(server, { method: "POST", path: base, body })) as {
    metadata: { resourceVersion: string };
  };
  return made.metadata.resourceVersion;
}

/** Returns how the apiserver interpreted the request. */
function taken({ status, text }: Answer): string {
  if (status !== 200) return `refused: ${status}`;
  const lines = text.split("\n").filter((line) => line !== "");
  if (!lines.every((line) => line.startsWith('{"type"'))) return "plain";
  const events = lines.map((line) => JSON.parse(line) as { type: string; object: Named });
  const names = events.filter(({ type }) => type === "ADDED").map(({ object }) => object.metadata.name);
  if (names.includes("early")) return "state";
  return names.includes("late") ? "exact" : "now";
}

type Named = { readonly metadata: { readonly name: string; readonly resourceVersion: string } };

/** Returns how the proxy interprets the request. */
function read(target: string): string {
  return classify("GET", target).kind === "watch" ? watchRequestOf(target).start : "plain";
}

const versions = ["", "resourceVersion=", "resourceVersion=0", "resourceVersion=00", "resourceVersion=N"];
const oddVersions = [
  "resourceVersion=000N",
  "resourceVersion=N&resourceVersion=0",
  "resourceVersion=0&resourceVersion=N",
  "resourceVersion=&resourceVersion=N",
  "resourceVersion=%zz&resourceVersion=N",
  "resourceVersion=0;&resourceVersion=N",
  "ResourceVersion=N",
  "resource%56ersion=N",
  "resourceVersion=+N",
  "resourceVersion=N+",
  "resourceVersion=-1",
  "resourceVersion=0xN",
  "resourceVersion=1e3",
  "resourceVersion=99999999999999999999",
  "resourceVersion=184467440737095516160",
];
const match = "resourceVersionMatch=NotOlderThan";
const states = [
  "",
  match,
  `sendInitialEvents=true&${match}`,
  `sendInitialEvents&${match}`,
  `sendInitialEvents=&${match}`,
  `sendInitialEvents=no&${match}`,
  `sendInitialEvents=false&${match}`,
  `sendInitialEvents=FALSE&${match}`,
  `sendInitialEvents=0&${match}`,
  `sendInitialEvents=0&sendInitialEvents=1&${match}`,
  `sendInitialEvents=1&sendInitialEvents=0&${match}`,
  "sendInitialEvents=true",
  "sendInitialEvents=false",
];
const marks = ["", "allowWatchBookmarks=true", "allowWatchBookmarks", "allowWatchBookmarks=false"];
const watching = [
  "",
  "watch",
  "watch=",
  "watch=1",
  "watch=no",
  "watch=TRUE",
  "watch=0",
  "watch=00",
  "watch=false",
  "watch=False",
  "watch=fal%C5%BFe",
  "watch=false%20",
  "watch=+false",
  "Watch=true",
  "%77atch=true",
  "watch%20=true",
  "watch=true&watch=false",
  "watch=false&watch=true",
  "watch=%zz&watch=true",
  "watch;=true",
  "watch=true;",
  "watch=0;&watch=1",
  "a;b&watch=1",
];
const paths = [
  `${base}/early?watch=true`,
  `${base}/?watch=true`,
  `${base}//?watch=true`,
  `/api/v1/configmaps?watch=true`,
  `/api/v1/watch/namespaces/default/configmaps?watch=false`,
  `/api/v1/watch/namespaces/default/configmaps`,
  `/api/v1/watch/namespaces/default/configmaps/early`,
  `/api/v1/watch/configmaps/`,
  `/%61pi/v1/configmaps?watch`,
  `/api/v1/namespaces/default%2Fconfigmaps?watch`,
  `/api/v1//configmaps?watch`,
  `${base}?fieldSelector=metadata.name%3Dearly&watch=1`,
];

function targets(): string[] {
  const queries = [
    ...watching,
    ...[...versions, ...oddVersions].flatMap((version) =>
      states.map((state) => `watch=1&${version}&${state}`),
    ),
    ...versions.flatMap((version) => marks.map((mark) => `watch=1&${version}&${mark}`)),
  ];
  const all = [...paths, ...queries.map((query) => `${base}?${query}`)];
  // One second is long enough for the initial events; after it, the watch ends by itself.
  return [...new Set(all)].map((target) => {
    const named = target.replaceAll(/(?<=resource(?:V|%56)ersion=[^&]*)N/g, between);
    return `${named}${named.includes("?") ? "&" : "?"}timeoutSeconds=1`;
  });
}

async function inTurns<T, R>(items: readonly T[], most: number, run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += most)
    results.push(...(await Promise.all(items.slice(at, at + most).map(run))));
  return results;
}

real(
  "the proxy and the apiserver agree which requests are watches, and from which version each watch starts (row 23)",
  async () => {
    const all = targets();
    const answers = await inTurns(all, 40, (path) => ask(server, { path }));
    const differences: string[] = [];
    const kinds = new Map<string, number>();
    for (const [index, target] of all.entries()) {
      const answer = answers[index];
      if (answer === undefined) continue;
      const kind = taken(answer);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (!kind.startsWith("refused") && kind !== read(target))
        differences.push(`${target}: ${kind}, not ${read(target)}`);
    }
    assert.equal(differences, []);
    figure(`${all.length} spellings: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
    for (const kind of ["plain", "state", "exact", "now"]) assert.ok((kinds.get(kind) ?? 0) > 2, kind);
  },
);

real("the decoder reads the same versions from an apiserver's events as a full parser (row 7)", async () => {
  const path = `${base}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&${match}`;
  const { text } = await ask(server, { path });
  const { events, forwarded, isOpaque } = relayed(new JsonEvents(true), [Buffer.from(text)]);
  assert.is(isOpaque, false);
  assert.is(forwarded.toString(), text);
  const lines = text.trimEnd().split("\n");
  const expected = lines.map((line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: Named };
    return `${type} ${object.metadata.resourceVersion}`;
  });
  assert.equal(
    events.map(({ type, version }) => `${type} ${version}`),
    expected,
  );
  assert.is(events.filter(({ endsInitialEvents }) => endsInitialEvents).length, 1);
  assert.ok(events.some(({ key }) => key === "default/early"));
});

test.run();

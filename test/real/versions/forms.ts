/**
 * Watches of every form while each of two apiservers fails in turn, under settings in which versions differ: WatchList,
 * CBOR, and how lists are encoded. etcd's own record is the judge of each watch.
 */
import { gunzipSync } from "node:zlib";
import { Client } from "../load/client.ts";
import { Stage } from "../load/stage.ts";
import { Storm } from "../load/storm.ts";
import { troubles } from "../load/troubles.ts";
import type { ApiserverKind } from "../rig/apiserver.ts";
import { order, type Server } from "../rig/ask.ts";
import type { Version } from "../rig/parts.ts";
import { misses, summary } from "../storm/tell.ts";

export type Setting = {
  readonly name: string;
  readonly apiservers: readonly ApiserverKind[];
  /** Ends of watches that watchkeeper cannot decode. */
  readonly mayEnd?: RegExp;
};

const crowd = { watches: 28, informers: 8, writesPerSecond: 20, getsPerSecond: 10, others: false };
/** Generous: others use the machine too. The figure itself is printed. */
const mostDelayMs = 5_000;
const drawn = ["killed", "frozen", "rolled over", "hole (both)"];

function gate(version: Version, ...gates: readonly string[]): ApiserverKind {
  return gates.length === 0 ? { version } : { version, flags: [`--feature-gates=${gates.join(",")}`] };
}

const cbor = "CBORServingAndStorage=true";
const cborEnds = /\(cbor\)$/;
const unstreamed = ["StreamingCollectionEncodingToJSON=false", "StreamingCollectionEncodingToProtobuf=false"];

/** From one version to the next, defaults differ: 1.34 turns WatchList on, and 1.37 compresses such a watch. */
export const settings: readonly Setting[] = [
  { name: "1.33+1.34: WatchList off, on", apiservers: [gate("1.33"), gate("1.34")] },
  {
    name: "1.33+1.34: WatchList on, lists streamed by one",
    apiservers: [gate("1.33", "WatchList=true", ...unstreamed), gate("1.34")],
  },
  { name: "1.36+1.37: compression off, on", apiservers: [gate("1.36"), gate("1.37")] },
  { name: "1.37: compression on", apiservers: [gate("1.37"), gate("1.37")] },
  {
    name: "1.36+1.37: WatchList off",
    apiservers: [gate("1.36", "WatchList=false"), gate("1.37", "WatchList=false")],
  },
  { name: "1.36: CBOR on", apiservers: [gate("1.36", cbor), gate("1.36", cbor)], mayEnd: cborEnds },
  { name: "1.36+1.37: CBOR off, on", apiservers: [gate("1.36"), gate("1.37", cbor)], mayEnd: cborEnds },
];

export type Formed = {
  readonly name: string;
  readonly watches: number;
  readonly events: number;
  readonly faults: number;
  readonly ends: number;
  readonly lists: number;
  readonly wrong: readonly string[];
  readonly figures: readonly string[];
};

export async function playSetting(setting: Setting): Promise<Formed> {
  const stage = await Stage.start({ apiservers: setting.apiservers });
  try {
    return await playOn(stage, setting);
  } finally {
    await stage.stop();
  }
}

async function playOn(stage: Stage, { name, mayEnd }: Setting): Promise<Formed> {
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 33 });
  const unsettled: string[] = [];
  let faults = 0;
  for (const [at, title] of drawn.entries()) {
    const victim = stage.cluster.apiserver(at % stage.cluster.apiservers.length);
    storm.spare(victim);
    await troubles.find((one) => one.name === title)?.run(victim, storm.random);
    faults += 1;
    await victim.ready();
    await stage.proxy.settled(2, 30_000).catch((error: Error) => unsettled.push(error.message));
  }
  const outcome = await storm.stop();
  const lists = await compareLists(stage);
  const ends = [...outcome.watches.ends].filter(([how]) => mayEnd?.test(how) === true);
  return {
    name,
    watches: outcome.watches.watches,
    events: outcome.watches.events,
    faults,
    ends: ends.reduce((sum, [, count]) => sum + count, 0),
    lists: lists.compared,
    wrong: [...unsettled, ...lists.wrong, ...misses(outcome, mostDelayMs, mayEnd)],
    figures: summary(outcome).split("\n"),
  };
}

const listed = "/api/v1/namespaces/storm-0/configmaps";
const accepted = [
  "application/json",
  "application/vnd.kubernetes.protobuf",
  "application/cbor,application/json",
  "application/json;as=Table;v=v1;g=meta.k8s.io",
  "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
];

/** Of one version, so that all are the same list: through the proxy as from one of the apiservers, byte for byte. */
async function compareLists({ cluster, server }: Stage): Promise<{ compared: number; wrong: string[] }> {
  const text = await order(cluster.admin, { path: `${listed}?limit=1` });
  const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? "";
  const path = `${listed}?resourceVersion=${version}&resourceVersionMatch=Exact`;
  const wrong: string[] = [];
  let compared = 0;
  for (const headers of headersOf()) {
    const own = (one: Server): Promise<Buffer> => bodyOf(one, path, headers);
    const direct = await Promise.all(cluster.apiservers.map(({ url }) => own({ ...cluster.admin, url })));
    // Several clients, so that both apiservers answer some.
    for (let client = 0; client < 4; client += 1) {
      const through = await own(server);
      compared += 1;
      if (!direct.some((one) => one.equals(through)))
        wrong.push(`a list differs: ${JSON.stringify(headers)}`);
    }
  }
  return { compared, wrong };
}

function headersOf(): readonly Readonly<Record<string, string>>[] {
  return accepted.flatMap((accept) =>
    ["identity", "gzip"].map((coding) => ({ accept, "accept-encoding": coding })),
  );
}

async function bodyOf(
  server: Server,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const client = new Client(server);
  const { status, body, ending, why } = await client.ask({ path, headers });
  client.close();
  if (status !== 200 || ending !== "whole") throw new Error(`${path} got ${status} ${why}`);
  // Two versions of Go may compress differently, and the apiserver writes the keys of CBOR maps in any order.
  const plain = body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body;
  return headers["accept"]?.includes("cbor") === true ? Buffer.from(plain.toSorted()) : plain;
}

/**
 * Watches of every form while each of two apiservers fails in turn. They run with the defaults of each version of
 * Kubernetes, and with settings in which versions differ: WatchList, CBOR, and the encoding of lists. Each watch is
 * compared with etcd's record.
 */
import { Stage } from "../load/stage.ts";
import { Storm } from "../load/storm.ts";
import { type Trouble, troubles } from "../load/troubles.ts";
import type { ApiserverKind } from "../rig/apiserver.ts";
import type { Version } from "../rig/parts.ts";
import { misses, summary } from "../storm/tell.ts";
import { CborWatches, type Fault, unexplained } from "./cbor-watches.ts";
import { compareLists, fillLists } from "./lists.ts";
import { kindsOf, nameOf, unordered } from "./mixes.ts";

export type Setting = {
  readonly name: string;
  readonly apiservers: readonly ApiserverKind[];
  /**
   * True if an apiserver encodes watches in CBOR. Such a watch ends with its apiserver, because watchkeeper cannot
   * decode it.
   */
  readonly hasCbor?: boolean;
};

const crowd = { watches: 28, informers: 8, writesPerSecond: 20, getsPerSecond: 10, others: false };
/**
 * Longest accepted delay of an event, in milliseconds. It is generous, because the machine may be shared; the measured
 * delay is printed.
 */
const mostDelayMs = 5_000;
const drawn = ["killed", "frozen", "rolled over", "hole (both)"].map((name) => troubleNamed(name));
/** The proxy resets the stream, because its last event may be incomplete. client-go reports that with these texts. */
const cborEnds = /^ended: (EOF|error 500 .*stream error.*INTERNAL_ERROR.*) \(cbor\)$/;

export function troubleNamed(name: string): Trouble {
  const found = troubles.find((one) => one.name === name);
  if (found === undefined) throw new Error(`No fault is named ${name}`);
  return found;
}

function gate(version: Version, ...gates: readonly string[]): ApiserverKind {
  return gates.length === 0 ? { version } : { version, flags: [`--feature-gates=${gates.join(",")}`] };
}

const cbor = "CBORServingAndStorage=true";
const unstreamed = ["StreamingCollectionEncodingToJSON=false", "StreamingCollectionEncodingToProtobuf=false"];

/** Defaults differ between consecutive versions: 1.34 enables WatchList, and 1.37 compresses such a watch. */
export const settings: readonly Setting[] = [
  ...unordered.map((mix) => ({ name: nameOf(mix), apiservers: kindsOf(mix) })),
  {
    name: "1.33+1.34: WatchList on and lists streamed by one",
    apiservers: [gate("1.33", "WatchList=true", ...unstreamed), gate("1.34")],
  },
  {
    name: "1.36+1.37: WatchList off",
    apiservers: [gate("1.36", "WatchList=false"), gate("1.37", "WatchList=false")],
  },
  { name: "1.36: CBOR on", apiservers: [gate("1.36", cbor), gate("1.36", cbor)], hasCbor: true },
  { name: "1.36+1.37: CBOR off and on", apiservers: [gate("1.36"), gate("1.37", cbor)], hasCbor: true },
];

export type Formed = {
  readonly name: string;
  readonly seconds: number;
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

async function playOn(stage: Stage, { name, apiservers, hasCbor = false }: Setting): Promise<Formed> {
  const began = Date.now();
  await fillLists(stage);
  // Lists are compared before the faults, because an apiserver that has failed more than once gets no new clients for a
  // while.
  const lists = await compareLists(stage);
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 33 });
  // Only if both apiservers have CBOR, because a client cannot choose the apiserver that has it.
  const own = apiservers.every(({ flags }) => flags?.some((flag) => flag.includes(cbor)) === true)
    ? new CborWatches(stage.server)
    : undefined;
  const wrong: string[] = [];
  const faults: Fault[] = [];
  for (const [at, trouble] of drawn.entries()) {
    const victim = stage.cluster.apiserver(at % stage.cluster.apiservers.length);
    await own?.fill();
    storm.spare(victim);
    const from = Date.now();
    await trouble.run(victim, storm.random);
    await victim.ready();
    await stage.proxy.settled(2, 30_000).catch((error: Error) => wrong.push(error.message));
    faults.push({ name: trouble.name, from, until: Date.now() });
    wrong.push(...(own?.judge(victim) ?? []));
  }
  own?.close();
  const outcome = await storm.stop();
  const cborStreams = outcome.watches.streamEnds.filter(({ form }) => form === "cbor");
  return {
    name,
    seconds: Math.round((Date.now() - began) / 1_000),
    watches: outcome.watches.watches,
    events: outcome.watches.events,
    faults: faults.length,
    ends: cborStreams.length + (own?.ended ?? 0),
    lists: lists.compared,
    wrong: [
      ...wrong,
      ...lists.wrong,
      ...misses(outcome, mostDelayMs, hasCbor ? cborEnds : undefined),
      ...(hasCbor ? unexplained(cborStreams, faults) : []),
    ],
    figures: summary(outcome).split("\n"),
  };
}

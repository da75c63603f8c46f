/** One run of one row: all clients are working, the fault begins at a random moment, and the result is collected. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import { Client, type Heard } from "../load/client.ts";
import type { ListEnd } from "../load/listing.ts";
import { type CountedPosts, countPosts } from "../load/posts.ts";
import { places, type Stage } from "../load/stage.ts";
import { Tunnel } from "../load/tunnel.ts";
import { compare, type Difference, type WatchEnd } from "../load/watching.ts";
import { saidSince, verdict } from "../rig/said.ts";
import { Crew } from "./crew.ts";
import type { Row } from "./rows.ts";

/** What happened to an exec, a port-forward or logs -f. */
export type Fate = {
  readonly kind: "exec" | "port-forward" | "logs";
  readonly isOnVictim: boolean;
  /** When it ended, in milliseconds after the fault; undefined if it is still open. */
  readonly endedMs: number | undefined;
  /**
   * True if it carried data before the fault was repaired. It is checked that early because the repair of some faults
   * kills the apiserver.
   */
  readonly answers: boolean;
};

/** The result of a run. All times are milliseconds from the fault. */
export type Result = {
  readonly suspect: number | undefined;
  readonly dead: number | undefined;
  readonly draining: number | undefined;
  /** When the victim's process exited, for faults that end it. */
  readonly gone: number;
  /** GETs before, during and after the fault, including the first GETs of new clients. */
  readonly gets: readonly Heard[];
  /** When the last new client was sent to the victim; 0 if none was. */
  readonly lastOnVictim: number;
  readonly lists: readonly { readonly end: ListEnd; readonly isOnVictim: boolean }[];
  readonly posts: CountedPosts;
  readonly watches: readonly { readonly ends: readonly WatchEnd[]; readonly difference: Difference }[];
  readonly tunnels: readonly Fate[];
  /** True if an exec that was opened in the middle of the fault works. */
  readonly newExec: boolean;
};

export async function play(stage: Stage, row: Row, mark: string, random: Random): Promise<Result> {
  await row.prepare?.(stage);
  // A new proxy for each run: a proxy remembers failures, and sends new requests to a backend that failed often only
  // late and gradually.
  await stage.renew();
  await stage.proxy.settled(2, 60_000);
  await sleep(500);
  const crew = await Crew.start(stage, mark);
  // A random time between two PINGs, spread over five PING intervals.
  await sleep(800 + random.below(1_250));
  crew.startLists(stage.victim.address);
  await sleep(100 + random.below(300));
  const resumed = resumeLists(crew, random.below(2_000));
  const suffered = await suffer(stage, row, crew, { mark, isBusy: random.chance(0.5), random });
  await row.mend(stage);
  await Promise.all([resumed, crew.caughtUp(10_000)]);
  const lists = await Promise.all(
    crew.lists.map(async ({ work, isOnVictim }) => ({ end: await work.ended, isOnVictim })),
  );
  await crew.stop();
  const { newcomers, hurtAt } = suffered;
  return {
    ...verdicts(stage, suffered),
    gone: suffered.goneAt - hurtAt,
    gets: [...crew.gets.heard.map(({ heard }) => heard), ...newcomers.heard],
    lastOnVictim: Math.max(0, newcomers.lastOnVictim - hurtAt),
    lists,
    posts: await countPosts(stage, crew.posts.heard),
    watches: crew.watches.map(({ work }) => ({
      ends: work.ends,
      difference: compare(work.events, crew.direct.events),
    })),
    tunnels: suffered.tunnels,
    newExec: suffered.newExec,
  };
}

async function resumeLists(crew: Crew, afterMs: number): Promise<void> {
  await sleep(afterMs);
  for (const { work } of crew.lists) work.resume();
}

/** Observations from the fault until just before it is repaired. Times are Unix milliseconds. */
type Suffered = {
  readonly hurtAt: number;
  readonly mendedAt: number;
  readonly goneAt: number;
  readonly newcomers: Newcomers;
  readonly newExec: boolean;
  readonly tunnels: readonly Fate[];
};

type Way = { readonly mark: string; readonly isBusy: boolean; readonly random: Random };

async function suffer(stage: Stage, row: Row, crew: Crew, way: Way): Promise<Suffered> {
  const calledAt = Date.now();
  const newcomers = new Newcomers(stage);
  let goneAt = Infinity;
  void stage.victim.ended.then(() => (goneAt = Date.now()));
  const hurting = row.hurt(stage, crew, way.random);
  // In half of the runs, the tunnels have unacknowledged bytes when the fault begins; in the other half they have none.
  if (way.isBusy) for (const { work } of crew.tunnels) work.say("into the hole\n");
  const newExec = sleep(2_500).then(() => opens(stage));
  const hurtAt = (await hurting) ?? calledAt;
  await sleep(row.observeMs);
  await newcomers.stop();
  const tunnels = await ask(crew, stage, hurtAt, way.mark);
  return { hurtAt, mendedAt: Date.now(), goneAt, newcomers, newExec: await newExec, tunnels };
}

/** Returns when the proxy first gave the victim each state during the fault. */
function verdicts(
  stage: Stage,
  { hurtAt, mendedAt }: Suffered,
): Pick<Result, "suspect" | "dead" | "draining"> {
  const said = saidSince(stage.proxy.logFile, hurtAt).filter(({ ts }) => ts < mendedAt);
  const since = (to: string): number | undefined => {
    const at = verdict(said, stage.victim.name, to)?.ts;
    return at === undefined ? undefined : at - hurtAt;
  };
  return { suspect: since("suspect"), dead: since("dead"), draining: since("draining") };
}

/** Opens a new client every half second, and asks once which apiserver serves it. */
class Newcomers {
  readonly heard: Heard[] = [];
  lastOnVictim = 0;
  readonly #under: Promise<void>[] = [];
  readonly #timer: ReturnType<typeof setInterval>;

  constructor({ server, victim }: Stage) {
    this.#timer = setInterval(() => {
      const client = new Client(server);
      const asked = client.ask({ path: "/api" }).then((heard) => {
        this.heard.push(heard);
        if (heard.body.includes(`${victim.address}:`)) this.lastOnVictim = heard.endedAt;
        client.close();
        return undefined;
      });
      this.#under.push(asked);
    }, 500);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#under);
  }
}

async function opens(stage: Stage): Promise<boolean> {
  try {
    const tunnel = await Tunnel.open(stage.server, "exec", places.pod);
    const answers = await tunnel.answers(5_000);
    tunnel.close();
    return answers;
  } catch {
    return false; // refused, or silent for too long
  }
}

/**
 * Returns which tunnels and logs are still open, and whether they work: each tunnel must carry a line, and each log
 * must show one.
 */
async function ask(crew: Crew, stage: Stage, hurtAt: number, mark: string): Promise<Fate[]> {
  stage.cluster.node.log(mark);
  const endedMs = (at: number): number | undefined => (Number.isNaN(at) ? undefined : at - hurtAt);
  const tunnels = crew.tunnels.map(async ({ work, isOnVictim }): Promise<Fate> => {
    const answers = await work.answers(8_000);
    return { kind: work.kind, isOnVictim, endedMs: endedMs(work.endedAt), answers };
  });
  const logs = crew.logs.map(async ({ work, isOnVictim }): Promise<Fate> => {
    const answers = await work.shows(mark, 8_000);
    return { kind: "logs", isOnVictim, endedMs: endedMs(work.endedAt), answers };
  });
  return Promise.all([...tunnels, ...logs]);
}

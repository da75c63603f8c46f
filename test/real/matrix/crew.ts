/**
 * Clients that do all seven kinds of work through the proxy at the same time. Some work of each kind is on the victim,
 * some on the witness (load/stage.ts).
 */
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { Asking } from "../load/asking.ts";
import { Client, spread } from "../load/client.ts";
import { Listing } from "../load/listing.ts";
import { Logs } from "../load/logs.ts";
import { posting } from "../load/posts.ts";
import { bigCount, places, type Stage } from "../load/stage.ts";
import { Tunnel, type TunnelKind } from "../load/tunnel.ts";
import { Watching } from "../load/watching.ts";
import { saidSince } from "../rig/said.ts";

export type Placed<T> = { readonly work: T; readonly isOnVictim: boolean };

type Bound = Awaited<ReturnType<typeof spread>>;

/** `writes`: changes a second that the watches receive. `gets` and `posts`: requests a second of each client. */
const pace = { writes: 20, gets: 10, posts: 5 } as const;

export class Crew {
  readonly gets: Asking<undefined>;
  readonly posts: Asking<string>;
  readonly watches: readonly Placed<Watching>[];
  readonly logs: readonly Placed<Logs>[];
  readonly tunnels: readonly Placed<Tunnel>[];
  readonly direct: Watching;
  lists: readonly Placed<Listing>[] = [];
  /**
   * Local ports of the proxy's sockets to the victim: of its upstream connections, and of the sockets that it opened
   * for the tunnels.
   */
  readonly connectionPorts: readonly number[];
  readonly tunnelPorts: readonly number[];
  readonly #listers: Bound;
  readonly #clients: readonly Client[];
  readonly #stopWriting: () => void;

  private constructor(
    stage: Stage,
    mark: string,
    version: number,
    bound: Record<"get" | "post" | "watch" | "list" | "logs", Bound>,
    reach: Pick<Crew, "tunnels" | "connectionPorts" | "tunnelPorts">,
  ) {
    const victim = stage.victim.address;
    const place = <T>(some: Bound, make: (client: Client) => T): Placed<T>[] =>
      some.map(({ client, address }) => ({ work: make(client), isOnVictim: address === victim }));
    const only = (some: Bound): Client[] => some.map(({ client }) => client);
    const witness = new Client(stage.cluster.admin);
    this.#clients = [witness, ...Object.values(bound).flatMap((some) => only(some))];
    this.direct = new Watching(witness, places.watched, version);
    this.watches = place(bound.watch, (client) => new Watching(client, places.watched, version));
    this.logs = place(bound.logs, (client) => new Logs(client, places.pod));
    ({ tunnels: this.tunnels, connectionPorts: this.connectionPorts, tunnelPorts: this.tunnelPorts } = reach);
    this.#listers = bound.list;
    // Without a resourceVersion, the apiserver reads such a GET from etcd and not from its watch cache.
    this.gets = new Asking(only(bound.get), 1_000 / pace.gets, (number) => ({
      tag: undefined,
      question: { path: `${places.watched}/thing-${number % 10}` },
    }));
    this.posts = new Asking(only(bound.post), 1_000 / pace.posts, posting(mark));
    this.#stopWriting = stage.write(pace.writes);
  }

  /** `mark` is in the objects of this run's POSTs and of no others. */
  static async start(stage: Stage, mark: string): Promise<Crew> {
    const { server, victim, witness } = stage;
    const addresses = [victim.address, witness.address];
    const bound = {
      get: await spread(server, addresses, 2),
      post: await spread(server, addresses, 1),
      watch: await spread(server, addresses, 2),
      list: await spread(server, addresses, 1),
      logs: await spread(server, addresses, 1),
    };
    const version = await stage.version();
    // The proxy must have opened its upstream connections, for watches and for other requests, before the tunnels'
    // sockets are counted.
    await bound.watch[0]?.client.ask({ path: `${places.watched}?limit=1` });
    const connectionPorts = portsTo(stage);
    const tunnels = [...(await openTunnels(stage, "exec")), ...(await openTunnels(stage, "port-forward"))];
    const tunnelPorts = portsTo(stage).filter((port) => !connectionPorts.includes(port));
    return new Crew(stage, mark, version, bound, { tunnels, connectionPorts, tunnelPorts });
  }

  startLists(victim: string): void {
    this.lists = this.#listers.map(({ client, address }) => ({
      work: new Listing(client, places.big, bigCount),
      isOnVictim: address === victim,
    }));
  }

  /**
   * Resolves when every watch has received the latest event of the direct watch, or after `ms`. After `ms`, events are
   * missing.
   */
  async caughtUp(ms: number): Promise<void> {
    this.#stopWriting();
    await sleep(300);
    const last = this.direct.events.at(-1)?.version ?? 0;
    const deadline = Date.now() + ms;
    const isBehind = ({ work }: Placed<Watching>): boolean => (work.events.at(-1)?.version ?? 0) < last;
    while (this.watches.some(isBehind) && Date.now() < deadline) await sleep(50);
  }

  async stop(): Promise<void> {
    this.#stopWriting();
    await Promise.all([this.gets.stop(), this.posts.stop()]);
    await Promise.all([this.direct, ...this.watches.map(({ work }) => work)].map((watch) => watch.stop()));
    for (const { work } of [...this.tunnels, ...this.logs]) work.close();
    for (const client of this.#clients) client.close();
  }
}

/** Opens tunnels until there is one on each apiserver, according to the proxy's log. Closes the others. */
async function openTunnels(stage: Stage, kind: TunnelKind): Promise<Placed<Tunnel>[]> {
  const found = new Map<boolean, Tunnel>();
  for (let count = 0; count < 8 && found.size < 2; count++) {
    const from = Date.now() - 1_000;
    const tunnel = await Tunnel.open(stage.server, kind, places.pod);
    if (!(await tunnel.answers())) throw new Error(`A new ${kind} does not answer`);
    const isOnVictim = backendOf(stage, tunnel, from) === stage.victim.name;
    if (found.has(isOnVictim)) tunnel.close();
    else found.set(isOnVictim, tunnel);
  }
  return [...found].map(([isOnVictim, work]) => ({ work, isOnVictim }));
}

function backendOf(stage: Stage, tunnel: Tunnel, from: number): unknown {
  const opened = saidSince(stage.proxy.logFile, from).find(
    (said) => said.msg === "tunnel.opened" && said["audit-ID"] === tunnel.auditId,
  );
  return opened?.["backend"];
}

/** The local ports of the proxy's sockets to the victim. */
function portsTo({ victim, proxy }: Stage): number[] {
  const { stdout } = spawnSync("ss", ["-tnpH", "state", "established", "dst", victim.address], {
    encoding: "utf8",
  });
  const { pids } = proxy;
  return stdout
    .split("\n")
    .filter((line) => pids.some((pid) => line.includes(`pid=${pid},`)))
    .map((line) => Number(/:(\d+)\s+\S+:6443/.exec(line)?.[1]));
}

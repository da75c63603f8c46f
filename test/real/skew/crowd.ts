/**
 * 300 clients that cause different amounts of load, each with a connection of its own: nodes, applications that list
 * now and then, a controller with sixty watches, and a client that lists in a loop. A client reconnects when its
 * connection ends.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { type Cluster, tokenOf } from "../rig/cluster.ts";

const nodes = 280;
const applications = 18;
const informers = 60;
export const objects = 300;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());

export const userOf = (number: number): string => `client-${number}`;
export const clientCount = nodes + applications + 2;

const configmaps = "/api/v1/namespaces/default/configmaps";
const lists = `${configmaps}?resourceVersion=0`;

export class Crowd {
  readonly #cluster: Cluster;
  readonly #url: string;
  #isOver = false;
  readonly #sessions = new Set<ClientHttp2Session>();
  /** Connections that ended, requests that failed, and watches that ended although the client had not ended them. */
  readonly breaks = { connections: 0, requests: 0, watches: 0 };
  /** Durations of the nodes' GETs since the last call of `take`, in milliseconds. */
  #times: number[] = [];
  #events = 0;

  constructor(cluster: Cluster, url: string) {
    this.#cluster = cluster;
    this.#url = url;
    for (let number = 0; number < clientCount; number += 1) void this.#run(number);
  }

  /** Returns the sorted durations of the GETs in milliseconds, and the number of events, since the last call. */
  take(): { readonly times: readonly number[]; readonly events: number } {
    const taken = { times: this.#times.toSorted((a, b) => a - b), events: this.#events };
    this.#times = [];
    this.#events = 0;
    return taken;
  }

  stop(): void {
    this.#isOver = true;
    for (const session of this.#sessions) session.destroy();
  }

  /** A method instead of a property, because TypeScript would assume that the value does not change during an await. */
  #goesOn(): boolean {
    return !this.#isOver;
  }

  /** Runs a client, which uses one connection after the other. It starts at a random time within two seconds. */
  async #run(number: number): Promise<void> {
    await pause(2000 * Math.random());
    while (this.#goesOn()) {
      const session = connect(this.#url, { ca: readFileSync(this.#cluster.caFile), servername: "localhost" });
      this.#sessions.add(session);
      const closed = new Promise<void>((resolve) => session.once("close", () => resolve()));
      session.on("error", () => {});
      // After a GOAWAY, a client changes to a new connection, as client-go does.
      session.on("goaway", () => session.close());
      await Promise.race([closed, this.#live(number, session)]);
      this.#sessions.delete(session);
      session.destroy();
      if (this.#goesOn()) this.breaks.connections += 1;
      await pause(100 + 100 * Math.random());
    }
  }

  #live(number: number, session: ClientHttp2Session): Promise<unknown> {
    const ask = new Asker(session, tokenOf(userOf(number)));
    if (number < nodes) return this.#node(number, ask);
    if (number < nodes + applications) return this.#every(5000, ask, lists);
    if (number === nodes + applications) return this.#controller(ask);
    return this.#every(50, ask, lists);
  }

  async #node(number: number, ask: Asker): Promise<void> {
    const path = `${configmaps}/thing-${number % objects}`;
    const name = encodeURIComponent(`metadata.name=thing-${number % objects}`);
    await Promise.all([
      this.#watch(ask, `${configmaps}?watch=1&fieldSelector=${name}`),
      this.#every(3000, ask, path, this.#times),
    ]);
  }

  async #controller(ask: Asker): Promise<void> {
    await Promise.all(
      Array.from({ length: informers }, () => this.#watch(ask, `${configmaps}?watch=1&resourceVersion=0`)),
    );
  }

  async #every(ms: number, ask: Asker, path: string, times?: number[]): Promise<void> {
    while (this.#goesOn() && !ask.session.closed) {
      const from = performance.now();
      const status = await ask.get(path);
      if (status !== 200 && this.#goesOn()) this.breaks.requests += 1;
      if (times !== undefined) this.#times.push(performance.now() - from);
      await pause(ms * (0.75 + Math.random() / 2));
    }
  }

  async #watch(ask: Asker, path: string): Promise<void> {
    while (this.#goesOn() && !ask.session.closed) {
      await ask.watch(path, () => {
        this.#events += 1;
      });
      if (this.#goesOn()) this.breaks.watches += 1;
      await pause(500);
    }
  }
}

class Asker {
  readonly session: ClientHttp2Session;
  readonly #token: string;

  constructor(session: ClientHttp2Session, token: string) {
    this.session = session;
    this.#token = token;
  }

  /** Sends a GET. Resolves with the status, or with 0 if the response is incomplete. */
  get(path: string): Promise<number> {
    return this.#send(path, () => {});
  }

  async watch(path: string, told: () => void): Promise<void> {
    await this.#send(path, told);
  }

  #send(path: string, told: () => void): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    let [status, isWhole] = [0, false];
    try {
      const stream = this.session.request({ ":path": path, authorization: `Bearer ${this.#token}` });
      stream.on("response", (head) => {
        status = Number(head[":status"]);
      });
      stream.on("data", told);
      stream.on("end", () => {
        isWhole = true;
      });
      stream.on("error", () => {});
      stream.on("close", () => resolve(isWhole ? status : 0));
    } catch {
      resolve(0);
    }
    return promise;
  }
}

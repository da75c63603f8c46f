/**
 * Plays writes in virtual time while backends fail and while the proxy itself ends requests ("cuts"). A backend
 * executes a request permanently, even if no client waits for the response any more, as an apiserver with etcd does.
 * Clients send a request again when Go's transport and client-go do: after REFUSED_STREAM, PROTOCOL_ERROR, a GOAWAY
 * below the stream, and 429 or 503 with Retry-After. Checks (D17):
 * - No request is executed twice.
 * - No request is executed after its client was told that it was not processed.
 */
import { Field } from "../../src/h2/core/field.ts";
import type { RequestHead } from "../../src/h2/core/fields.ts";
import { FlushScheduler } from "../../src/h2/core/flush-scheduler.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../src/h2/core/stream-writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import type { Stream } from "../../src/h2/session/stream.ts";
import type { Exchange } from "../../src/proxy/request/exchange.ts";
import { type End, Network, type Weather } from "./network.ts";
import { SimulatedProxy } from "./proxy.ts";
import { Random } from "./random.ts";
import { setSlicesOf } from "./slices.ts";
import { World } from "./world.ts";

/** The figures of one run, or the sums of many. */
export type CutFigures = {
  writes: number;
  /** Number of requests without a response that the proxy ended, by the component that ended them. */
  readonly cuts: Record<string, number>;
  /** How often clients sent a request again. */
  repeats: number;
  executed: number;
  /** The final results that clients got: a status, or the code of a reset. */
  readonly told: Record<string, number>;
  readonly problems: string[];
};

const busyMs = 3_000;
const patienceMs = 60_000;
/** A client gives up after this many attempts. client-go gives up after ten, and Go's transport after six. */
const mostTries = 6;
const unknownCodes = [0, 1, 2, 3, 5, 8, 11, 13] as const;

export function playCuts(seed: number, trace?: (line: string) => void): CutFigures {
  return new CutScene(seed, trace).play();
}

export function newFigures(): CutFigures {
  return { writes: 0, cuts: {}, repeats: 0, executed: 0, told: {}, problems: [] };
}

export function addFigures(sum: CutFigures, one: CutFigures): void {
  for (const key of ["writes", "repeats", "executed"] as const) sum[key] += one[key];
  for (const key of ["cuts", "told"] as const)
    for (const [name, count] of Object.entries(one[key])) sum[key][name] = (sum[key][name] ?? 0) + count;
  sum.problems.push(...one.problems);
}

export function cutCount({ cuts }: CutFigures): number {
  return Object.values(cuts).reduce((sum, count) => sum + count, 0);
}

/** One apiserver. All of them share one etcd. */
class Executor {
  readonly name: string;
  readonly scene: CutScene;
  readonly sessions = new Map<End, Session>();
  isDown = false;

  constructor(name: string, scene: CutScene) {
    this.name = name;
    this.scene = scene;
  }

  accept(end: End): void {
    const { world, turn, random } = this.scene;
    const session = new Session({
      role: "server",
      clock: world,
      turn,
      maxStreams: random.chance(0.5) ? 100 : random.whole(2, 10),
      owner: {
        opened: (stream, request, isWhole) => this.#opened(stream, request, isWhole),
        write: (buffers, written) => end.write(buffers, written),
        changed() {},
        ponged() {},
        ended() {
          session.flush();
          end.end();
        },
      },
    });
    this.sessions.set(end, session);
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => {
        this.sessions.delete(end);
        session.lose();
      },
    };
  }

  #opened(stream: Stream, request: RequestHead, isWhole: boolean): StreamListener {
    const { random, world } = this.scene;
    const attempt = request.fields.find(({ name }) => name === "x-attempt")?.value ?? "";
    const isRefused = random.chance(0.15);
    let isGone = false;
    const answer = (status: number, more: Field[] = []): void =>
      isGone ? undefined : stream.sendHeaders([new Field(":status", String(status)), ...more], true);
    const execute = (): void => {
      // A handler whose stream was reset may stop before it writes to etcd, or may not.
      if (isGone && random.chance(0.5)) return;
      this.scene.execute(attempt, request.method);
      const fate = random.next();
      if (fate < 0.5) world.after(random.size(800), () => answer(request.method === "GET" ? 200 : 201));
      else if (fate < 0.7)
        world.after(random.size(200), () => {
          if (!isGone) stream.reset(random.pick(unknownCodes));
        });
      else if (fate < 0.75) world.after(random.size(200), () => answer(500));
    };
    const whole = (): void => {
      if (random.chance(0.05)) return answer(429, [new Field("retry-after", "1")]);
      world.after(random.size(600), execute);
    };
    if (isRefused)
      world.after(random.size(50), () => {
        if (!isGone) stream.reset(errorCode.REFUSED_STREAM);
        isGone = true;
      });
    else if (isWhole) whole();
    return {
      headers() {},
      data(_bytes, start, end, isLast) {
        world.after(random.chance(0.8) ? 0 : random.size(400), () => stream.grant(end - start));
        if (isLast && !isRefused) whole();
      },
      reset() {
        isGone = true;
      },
      sent() {},
    };
  }
}

/** One request, with all attempts of its client. */
class Write {
  readonly tag: number;
  readonly method: string;
  readonly bodyBytes: number;
  readonly #client: GoClient;
  #tries = 0;
  outcome = "";

  constructor(client: GoClient, tag: number) {
    const { random } = client.scene;
    this.#client = client;
    this.tag = tag;
    this.method = random.pick(["POST", "POST", "PUT", "PATCH", "DELETE", "GET"]);
    const hasBody = this.method !== "GET" && this.method !== "DELETE";
    this.bodyBytes = hasBody ? random.pick([1, 300, 5_000, 60_000, 300_000]) : 0;
  }

  send(): void {
    const { scene } = this.#client;
    this.#tries += 1;
    const attempt = `${this.tag}.${this.#tries}`;
    let status = 0;
    let mayRepeat = false;
    const stream = this.#client.open(this.method, attempt, this.bodyBytes === 0, {
      headers: (fields, end) => {
        status = Number(fields.find(({ name }) => name === ":status")?.value ?? status);
        mayRepeat = fields.some(({ name }) => name === "retry-after");
        if (end) this.#answered(attempt, status, mayRepeat);
      },
      data: (_bytes, start, end, isLast) => {
        stream.grant(end - start);
        if (isLast) this.#answered(attempt, status, mayRepeat);
      },
      reset: (code) => this.#reset(attempt, code, status),
      sent() {},
    });
    this.#upload(stream, 0);
    scene.tell(() => `${attempt} ${this.method} is sent`);
  }

  #upload(stream: Stream, from: number): void {
    const { scene } = this.#client;
    if (from >= this.bodyBytes || stream.isClosed) return;
    const to = Math.min(this.bodyBytes, from + 1 + scene.random.size(40_000));
    stream.sendData(Buffer.alloc(to - from), 0, to - from, to === this.bodyBytes);
    scene.world.after(scene.random.size(60), () => this.#upload(stream, to));
  }

  #answered(attempt: string, status: number, mayRepeat: boolean): void {
    if (this.outcome !== "") return;
    if (status < 300 && !this.#client.scene.isExecuted(attempt))
      this.#client.scene.wrong(`${attempt} was answered ${status}, and never executed`);
    if (mayRepeat && (status === 429 || status >= 500))
      this.#again(attempt, `${status} with Retry-After`, 1_000);
    else this.outcome = String(status);
  }

  #reset(attempt: string, code: number, status: number): void {
    if (this.outcome !== "") return;
    const isRepeated = code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR;
    if (isRepeated && status === 0) this.#again(attempt, `reset ${code}`, 0);
    else this.outcome = `reset ${code}`;
  }

  #again(attempt: string, why: string, inMs: number): void {
    const { scene } = this.#client;
    if (this.method !== "GET") scene.unprocessed(attempt, why);
    if (this.#tries >= mostTries) this.outcome = why;
    else {
      scene.figures.repeats += 1;
      scene.world.after(inMs, () => this.send());
    }
  }
}

/** A client that behaves as client-go on Go's transport. */
class GoClient {
  readonly scene: CutScene;
  readonly #name: string;
  readonly #weather: Weather;
  #session: Session | undefined;

  constructor(scene: CutScene, name: string) {
    this.scene = scene;
    this.#name = name;
    this.#weather = scene.weather();
  }

  open(method: string, attempt: string, isWhole: boolean, owner: StreamListener): Stream {
    const path = "/api/v1/namespaces/n/configmaps/c";
    const fields = [
      [":method", method],
      [":scheme", "https"],
      [":authority", "kubernetes"],
      [":path", path],
      ["authorization", `Bearer ${this.#name}`],
      ["x-attempt", attempt],
    ].map(([name = "", value = ""]) => new Field(name, value));
    return this.#connection().open(fields, isWhole, owner);
  }

  #connection(): Session {
    if (this.#session?.isOpen === true) return this.#session;
    const { world, turn, network, proxy } = this.scene;
    const [end, theirs] = network.pair(this.#weather);
    proxy.accept(theirs);
    const session = new Session({
      role: "client",
      clock: world,
      turn,
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => end.write(buffers, written),
        changed() {},
        ponged() {},
        ended() {
          session.flush();
          end.end();
        },
      },
    });
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => session.lose(),
    };
    this.#session = session;
    return session;
  }
}

class CutScene {
  readonly random: Random;
  readonly world: World;
  readonly network: Network;
  readonly turn: FlushScheduler;
  readonly proxy: SimulatedProxy;
  readonly figures = newFigures();
  readonly #seed: number;
  readonly #trace: ((line: string) => void) | undefined;
  readonly #executors: readonly Executor[];
  readonly #clients: readonly GoClient[];
  readonly #writes: Write[] = [];
  /**
   * For each attempt, how often it was executed; and, if its client was told that it was not processed, what the client
   * got.
   */
  readonly #executed = new Map<string, number>();
  readonly #unprocessed = new Map<string, string>();

  constructor(seed: number, trace?: (line: string) => void) {
    this.#seed = seed;
    this.#trace = trace;
    setSlicesOf(seed);
    this.random = new Random(seed);
    this.world = new World(this.random);
    this.network = new Network(this.world, this.random);
    this.turn = new FlushScheduler(this.world);
    const names = ["a", "b", "c"].slice(0, this.random.whole(1, 3));
    this.#executors = names.map((name) => new Executor(name, this));
    this.proxy = new SimulatedProxy({
      world: this.world,
      backends: names,
      dial: (name) => this.#dial(name),
      connections: { streams: this.random.pick([80, 3]), warm: this.random.whole(0, 2) },
      isPerClient: false,
      tell: (entry) => this.tell(() => JSON.stringify(entry)),
      thrown: (error) => this.wrong(`thrown: ${error instanceof Error ? error.stack : String(error)}`),
    });
    this.#clients = Array.from(
      { length: this.random.whole(1, 4) },
      (_, at) => new GoClient(this, `client-${at}`),
    );
  }

  play(): CutFigures {
    const { world, random } = this;
    for (let tag = 1; tag <= 60; tag += 1)
      world.after(random.next() * busyMs, () => {
        const write = new Write(random.pick(this.#clients), tag);
        this.#writes.push(write);
        write.send();
      });
    for (let count = random.whole(3, 12); count > 0; count -= 1)
      world.after(random.next() * busyMs, () => this.#cut());
    for (let count = random.whole(0, 6); count > 0; count -= 1)
      world.after(random.next() * busyMs, () => this.#harm());
    world.runUntil(() => world.now() >= busyMs, busyMs);
    world.runUntil(() => this.#writes.every(({ outcome }) => outcome !== ""), patienceMs);
    // Some requests hang at a backend forever, so they are cut as well. Clients may repeat reads after that.
    for (let round = 0; round < mostTries; round += 1) {
      this.#count("the end", this.#unanswered());
      for (const exchange of this.proxy.path.exchanges.live) exchange.cut();
      world.runUntil(() => this.#writes.every(({ outcome }) => outcome !== ""), 2_000);
    }
    world.runUntil(() => false, 3_000);
    this.proxy.stop();
    this.#judge();
    return this.figures;
  }

  // --- checks ---

  execute(attempt: string, method: string): void {
    this.tell(() => `${attempt} is executed`);
    this.figures.executed += 1;
    this.#executed.set(attempt, (this.#executed.get(attempt) ?? 0) + 1);
    if (method === "GET") this.#executed.set(attempt, 1);
  }

  isExecuted(attempt: string): boolean {
    return this.#executed.has(attempt);
  }

  unprocessed(attempt: string, how: string): void {
    this.tell(() => `${attempt} is told to be unprocessed: ${how}`);
    this.#unprocessed.set(attempt, how);
  }

  wrong(what: string): void {
    this.figures.problems.push(`seed ${this.#seed}: ${what}`);
  }

  tell(line: () => string): void {
    this.#trace?.(`${this.world.now().toFixed(1)} ${line()}`);
  }

  #judge(): void {
    const { figures } = this;
    for (const { tag, method, outcome } of this.#writes) {
      figures.told[outcome] = (figures.told[outcome] ?? 0) + 1;
      if (outcome === "") this.wrong(`${tag} hangs`);
      if (method === "GET") continue;
      figures.writes += 1;
      const times = Array.from({ length: mostTries }, (_, at) => this.#executed.get(`${tag}.${at + 1}`) ?? 0);
      const sum = times.reduce((all, count) => all + count, 0);
      if (sum > 1) this.wrong(`${tag} ${method} was executed ${sum} times`);
    }
    for (const [attempt, how] of this.#unprocessed)
      if (this.#executed.has(attempt))
        this.wrong(`${attempt} was executed, and told to be unprocessed: ${how}`);
  }

  // --- ends by the proxy ---

  #unanswered(): readonly Exchange[] {
    return this.proxy.path.exchanges.live.filter(({ isAnswered }) => !isAnswered);
  }

  #count(who: string, exchanges: readonly Exchange[]): void {
    this.tell(() => `cut: ${who}, ${exchanges.length}`);
    this.figures.cuts[who] = (this.figures.cuts[who] ?? 0) + exchanges.length;
  }

  #cut(): void {
    const { random, proxy, world } = this;
    const { path } = proxy;
    const live = this.#unanswered();
    const some = live.filter(() => random.chance(0.5));
    const who = random.pick([
      "drain",
      "overload",
      "relief",
      "removal",
      "fault",
      "sessions",
      "goodbye",
    ] as const);
    const sessions = [...proxy.downstreams];
    if (who === "drain") {
      this.#count(who, live);
      for (const exchange of path.exchanges.live) exchange.cut();
      for (const downstream of sessions) downstream.cut();
    } else if (who === "overload") {
      this.#count(who, some);
      for (const exchange of some) exchange.cut();
    } else if (who === "relief") {
      this.#count(
        who,
        live.filter(({ queuedBytes }) => queuedBytes > 0),
      );
      path.buffered.add(2 ** 40);
      world.after(1, () => path.buffered.add(-(2 ** 40)));
    } else if (who === "removal") {
      this.#count(who, live);
      path.close();
      world.after(random.size(500), () => path.reconcile(this.#executors.map(({ name }) => name)));
    } else if (who === "fault") {
      this.#count(who, some);
      for (const exchange of some) exchange.attemptFaulted(new Error("planted"));
    } else if (who === "sessions") {
      this.#count(who, live);
      for (const downstream of sessions) downstream.cut();
    } else for (const downstream of sessions) downstream.drain();
  }

  // --- faults of backends ---

  #harm(): void {
    const { random, world, network } = this;
    const executor = random.pick(this.#executors);
    const ends = [...executor.sessions];
    const what = random.pick(["cut", "hole", "freeze", "goaway", "goaway", "crash"] as const);
    this.tell(() => `harm: ${what} ${executor.name}`);
    if (what === "crash") {
      executor.isDown = true;
      world.after(random.size(2_000), () => {
        executor.isDown = false;
      });
    }
    for (const [end, session] of ends) {
      if (what !== "crash" && random.chance(0.4)) continue;
      if (what === "hole") network.makeHole(end);
      else if (what === "freeze") end.pause(random.size(3_000));
      else if (what === "goaway") {
        if (random.chance(0.5)) session.announceEnd();
        world.after(random.size(300), () => session.goAway());
      } else end.destroy();
    }
  }

  #dial(name: string): End | undefined {
    const executor = this.#executors.find((one) => one.name === name);
    if (executor === undefined || executor.isDown) return undefined;
    const [ours, theirs] = this.network.pair(this.weather());
    executor.accept(theirs);
    return ours;
  }

  weather(): Weather {
    const { random } = this;
    const leastMs = random.next() * random.pick([1, 1, 30]);
    return {
      leastMs,
      mostMs: leastMs + random.next() * random.pick([1, 20]),
      chunkBytes: random.pick([2_000, 16_000, 65_536]),
      isEdgy: false,
      windowBytes: random.pick([200_000, 2_000_000]),
    };
  }
}

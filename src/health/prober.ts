/**
 * Decides when a backend is probed on a new socket, and how long an answer may take. Normally one probe runs per
 * interval. While the upstream connections are silent or lost, a probe starts every 250 ms, even if earlier probes are
 * unanswered. These probes show that the backend is dead, and later that it answers again (D6). probes/ready.ts is the
 * probe itself.
 */
import type { Clock } from "../base/clock.ts";
import type { Met } from "../base/failure.ts";
import { Histogram, rttBounds } from "../base/histogram.ts";
import { type BackendFacts, isSilent, isUrgent } from "./backend.ts";
import type { Evidence, ReadyAnswer } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";
import { type KeptSocket, SmallPackets } from "./small-packets.ts";
import { stallAwareTimeout } from "./stall-aware-clock.ts";

/**
 * Callbacks for the results of a probe, in the order in which they are called. If `dialed` reports a result other than
 * "answer", no call follows.
 */
export type ProbeListener = {
  /** Called when the backend's kernel has accepted the TCP connection. The TLS handshake follows. */
  connected(): void;
  /** Called if the proxy had no descriptor or memory for the socket. This is no evidence about the backend. */
  gaveUp(): void;
  dialed(met: Met, reason: string): void;
  /** `socket`: the probe's socket, which the listener must close. undefined: the probe has closed it. */
  answered(readiness: ReadyAnswer, reason: string, socket?: KeptSocket): void;
};

/** Probes a backend on a new socket. Returns a function that ends the probe. The prober always calls it. */
export type Probe = (backend: string, listener: ProbeListener) => () => void;

export type ProbeTimes = { readonly intervalMs: number; readonly timeoutMs: number };

export type ProberParts = {
  readonly clock: Clock;
  /**
   * Returns a random number below 1. Random delays keep several watchkeeper processes from probing at the same time.
   */
  readonly random: () => number;
  readonly times: ProbeTimes;
  readonly probe: (listener: ProbeListener) => () => void;
  readonly facts: () => BackendFacts;
  readonly learn: (evidence: Evidence) => void;
  /** Returns how many milliseconds TCP and TLS may take. The value follows from the round-trip time to this backend. */
  readonly dialMs: () => number;
  /** True while an upstream connection in use is silent although another one answers PINGs in time. */
  readonly mayLoseLargePackets: () => boolean;
  /** True if a PING that was sent after the clock reading `since` was answered, and no recent PING was late. */
  readonly passesSmallPackets: (since: number) => boolean;
};

export type ProbeCounts = {
  readonly answers: number;
  readonly failures: number;
  readonly lastMs: number;
  /** Seconds from the SYN to the end of each probe that reached the backend. */
  readonly durations: Histogram;
};

type Run = {
  readonly begunAt: number;
  readonly dialMs: number;
  connectedAt: number | undefined;
  askedAt: number | undefined;
  /**
   * Clock reading at which the kept socket (small-packets.ts) first answered a request that was sent after the socket
   * of this probe had connected.
   */
  smallPassedAt: number | undefined;
  stopWait: () => void;
  stopLargePacketWait: () => void;
  stopHandshakeWait: () => void;
  stopProbe: () => void;
  /** True if the probe was started only because the TLS handshake of an earlier probe was late. */
  readonly isAgain: boolean;
};

export class Prober {
  readonly #parts: ProberParts;
  #times: ProbeTimes;
  readonly #running = new Set<Run>();
  #stopTimer: (() => void) | undefined;
  #nextAt = 0;
  #askedAt = Number.NEGATIVE_INFINITY;
  readonly #readyz = new Rtt();
  readonly #handshakes = new Rtt();
  readonly #smallPackets: SmallPackets;
  /**
   * Clock reading at which the kept socket (small-packets.ts) first answered after the latest answered TLS handshake;
   * undefined: it has not answered since.
   */
  #smallPassSince: number | undefined;
  #hastyUntil = Number.NEGATIVE_INFINITY;
  #lastReadyzAnswerAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  readonly #counts = { answers: 0, failures: 0, lastMs: 0, durations: new Histogram(rttBounds) };

  constructor(parts: ProberParts) {
    this.#parts = parts;
    this.#times = parts.times;
    this.#smallPackets = new SmallPackets(parts.clock, (sentAt) => this.#smallPassed(sentAt));
  }

  get counts(): ProbeCounts {
    return this.#counts;
  }

  /** Starts after a random delay. Meanwhile, the dials of upstream connections give the same evidence as probes. */
  start(): void {
    this.#wait(this.#times.intervalMs * this.#parts.random());
  }

  /** Applies a new interval and timeout at once, also to running probes. */
  configure(times: ProbeTimes): void {
    const leftMs = this.#nextAt - this.#parts.clock.now();
    this.#times = times;
    for (const run of this.#running) this.#awaitAnswer(run);
    if (leftMs <= times.intervalMs || this.#isStopped) return;
    this.#stopTimer?.();
    this.#wait(times.intervalMs);
  }

  /** Starts a probe at once, because of a symptom in traffic, but at most one extra probe per `urgentProbeMs`. */
  probeNow(): void {
    const { clock } = this.#parts;
    const now = clock.now();
    if (this.#isStopped || this.#nextAt - now <= healthLimits.urgentProbeMs) return;
    if (now - this.#askedAt < healthLimits.urgentProbeMs) return;
    this.#stopTimer?.();
    this.#next();
  }

  /**
   * Starts a probe at once, because requests are unanswered although PINGs are answered. For `hastyMs`, every probe has
   * a short deadline, which follows from the backend's usual response time.
   */
  expediteProbe(): void {
    const now = this.#parts.clock.now();
    if (this.#isStopped) return;
    const isNew = now >= this.#hastyUntil;
    this.#hastyUntil = now + healthLimits.hastyMs;
    if (isNew) for (const run of this.#running) this.#awaitAnswer(run);
    this.probeNow();
  }

  /**
   * Starts a probe at once, because an upstream connection in use became silent while others answer PINGs. A probe's
   * TLS handshake and response each take a large packet, so if the probe is unanswered, too, large packets are lost.
   */
  probeLargePackets(): void {
    if (this.#isStopped) return;
    for (const run of this.#running) this.#awaitLargePacket(run);
    this.probeNow();
  }

  #awaitLargePacket(run: Run): void {
    const { clock, learn, mayLoseLargePackets } = this.#parts;
    // The packets of the TCP handshake are small, so the wait for a large packet begins only after that handshake.
    const since = run.askedAt ?? run.connectedAt;
    if (since === undefined) return;
    run.stopLargePacketWait();
    const limitMs = Math.max(run.dialMs / 2, 4 * this.#readyz.quantile(0.99));
    const leftMs = Math.max(0, since + limitMs - clock.now());
    run.stopLargePacketWait = stallAwareTimeout(clock, leftMs, () => {
      const ms = clock.now() - since;
      const isOvertaken = since < this.#lastReadyzAnswerAt;
      if (this.#running.has(run) && !isOvertaken && mayLoseLargePackets())
        learn({ kind: "packets-lost", ms, limitMs });
    });
  }

  /** If the TLS handshake of a probe is slow, opens two more sockets to find out whether large packets are lost. */
  #awaitHandshake(run: Run): void {
    if (run.isAgain) this.#smallPackets.ask();
    if (run.isAgain || !this.#handshakes.hasSamples) return;
    const { clock } = this.#parts;
    const usualMs = this.#handshakes.quantile(0.99);
    const answerableAt = clock.now() + usualMs;
    run.stopHandshakeWait = stallAwareTimeout(
      clock,
      Math.max(healthLimits.doubtedHandshakeMs, 2 * usualMs),
      () => {
        const tried = [run, ...Array.from({ length: healthLimits.handshakesAgain }, () => this.#begin(true))];
        this.#smallPackets.ask();
        const limitMs = Math.max(healthLimits.lostHandshakeMs, 4 * usualMs);
        run.stopHandshakeWait = stallAwareTimeout(clock, limitMs, () =>
          this.#judgeHandshakes(tried, limitMs, answerableAt),
        );
      },
    );
  }

  /**
   * Reports that large packets are lost if small packets pass but TLS handshakes do not. A frozen process would answer
   * neither.
   */
  #judgeHandshakes(tried: readonly Run[], limitMs: number, answerableAt: number): void {
    const { clock, learn, passesSmallPackets } = this.#parts;
    const [first] = tried;
    const areLost = tried.every(
      (run) => this.#running.has(run) && run.connectedAt !== undefined && run.askedAt === undefined,
    );
    const doSmallPass = passesSmallPackets(answerableAt) || tried.every((run) => this.#losesLarge(run));
    if (first?.connectedAt === undefined || !areLost || !doSmallPass) return;
    learn({ kind: "packets-lost", ms: clock.now() - first.connectedAt, limitMs });
  }

  #smallPassed(sentAt: number): void {
    const now = this.#parts.clock.now();
    this.#smallPassSince ??= now;
    for (const run of this.#running)
      if (run.connectedAt !== undefined && run.connectedAt <= sentAt) run.smallPassedAt ??= now;
  }

  /**
   * True if large packets to or from the probe's socket are lost: its TLS handshake is unanswered, although the kept
   * socket has answered both before the probe's socket was opened and after it had connected. A socket that was opened
   * before the kept socket's first answer proves nothing: when a stopped process resumes, or an outage ends, the kept
   * socket may be answered first. Returns false while an upstream connection answers. The PINGs then decide, because
   * they can tell the loss of large packets from the loss of all packets.
   */
  #losesLarge({ begunAt, smallPassedAt, askedAt }: Run): boolean {
    const { clock, facts } = this.#parts;
    const isNew = this.#smallPassSince !== undefined && begunAt >= this.#smallPassSince;
    if (!isNew || smallPassedAt === undefined || askedAt !== undefined || !isSilent(facts())) return false;
    const afterMs = Math.max(healthLimits.lostHandshakeMs / 2, this.#handshakes.quantile(0.99));
    return clock.now() - smallPassedAt >= afterMs;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopTimer?.();
    for (const run of Array.from(this.#running)) this.#end(run);
    this.#smallPackets.close();
  }

  #wait(ms: number): void {
    const { clock } = this.#parts;
    this.#nextAt = clock.now() + ms;
    this.#stopTimer = clock.after(ms, () => this.#next());
  }

  #next(): void {
    const facts = this.#parts.facts();
    const most = isUrgent(facts) && facts.fresh !== "answer" ? healthLimits.probesAtOnce : 1;
    // Schedules the next probe before this one starts, so that an exception does not end the series. The random factor
    // keeps several watchkeeper processes from probing at the same time.
    this.#wait(this.#paceMs(facts) * (0.9 + 0.2 * this.#parts.random()));
    if (this.#running.size < most) this.#begin();
  }

  #paceMs(facts: BackendFacts): number {
    const { clock } = this.#parts;
    const { intervalMs } = this.#times;
    if (!isUrgent(facts)) return intervalMs;
    // A recovering backend is probed as often as a silent one, because it must answer several probes to become ready.
    const isNews = !isSilent(facts) || clock.now() - facts.doubtedAt < healthLimits.urgentProbesMs;
    return Math.min(intervalMs, isNews ? healthLimits.urgentProbeMs : healthLimits.slowProbeMs);
  }

  #begin(isAgain = false): Run {
    const { clock, probe } = this.#parts;
    const dialMs = this.#parts.dialMs();
    this.#askedAt = clock.now();
    const run: Run = {
      begunAt: clock.now(),
      dialMs,
      connectedAt: undefined,
      askedAt: undefined,
      smallPassedAt: undefined,
      stopWait() {},
      stopLargePacketWait() {},
      stopHandshakeWait() {},
      stopProbe() {},
      isAgain,
    };
    this.#running.add(run);
    run.stopWait = stallAwareTimeout(clock, dialMs, () => this.#dialTimedOut(run));
    run.stopProbe = probe({
      connected: () => {
        run.connectedAt = clock.now();
        if (this.#parts.mayLoseLargePackets()) this.#awaitLargePacket(run);
        this.#awaitHandshake(run);
      },
      gaveUp: () => this.#end(run),
      dialed: (met, reason) => this.#dialed(run, met, reason),
      answered: (readiness, reason, socket) => {
        if (socket !== undefined) this.#keep(run, socket);
        this.#answered(run, readiness, reason);
      },
    });
    if (!this.#running.has(run)) run.stopProbe();
    return run;
  }

  #dialTimedOut(run: Run): void {
    if (!this.#losesLarge(run)) {
      this.#dialed(run, "silence", `timed out after ${this.#ageOf(run)} ms`);
      return;
    }
    const { clock, learn } = this.#parts;
    this.#counts.failures += 1;
    this.#end(run);
    learn({ kind: "packets-lost", ms: clock.now() - (run.connectedAt ?? run.begunAt), limitMs: run.dialMs });
  }

  #dialed(run: Run, met: Met, reason: string): void {
    if (!this.#running.has(run)) return;
    const { clock, learn } = this.#parts;
    run.stopWait();
    run.stopHandshakeWait();
    if (met === "answer") {
      run.askedAt = clock.now();
      this.#smallPassSince = undefined;
      if (run.connectedAt !== undefined) this.#handshakes.add(run.askedAt - run.connectedAt);
      this.#awaitAnswer(run);
      if (this.#parts.mayLoseLargePackets()) this.#awaitLargePacket(run);
    } else {
      this.#counts.failures += 1;
      this.#end(run);
    }
    const { begunAt, connectedAt } = run;
    const hasConnected = connectedAt !== undefined;
    learn({ kind: "fresh", met, begunAt, ms: clock.now() - begunAt, reason, hasConnected });
  }

  #awaitAnswer(run: Run): void {
    const { clock } = this.#parts;
    if (run.askedAt === undefined) return;
    run.stopWait();
    const leftMs = Math.max(0, run.askedAt + this.#answerMs(run) - clock.now());
    run.stopWait = stallAwareTimeout(clock, leftMs, () =>
      this.#answered(run, "hanging", `no answer in ${this.#ageOf(run)} ms`),
    );
  }

  #answerMs({ dialMs }: Run): number {
    const { clock } = this.#parts;
    const mostMs = Math.max(this.#times.timeoutMs, dialMs);
    if (clock.now() >= this.#hastyUntil) return mostMs;
    return Math.min(
      mostMs,
      Math.max(healthLimits.hastyAnswerMs, dialMs / 2, 4 * this.#readyz.quantile(0.99)),
    );
  }

  #keep(run: Run, socket: KeptSocket): void {
    if (this.#running.has(run)) this.#smallPackets.keep(socket);
    else socket.close();
  }

  #answered(run: Run, readiness: ReadyAnswer, reason: string): void {
    if (!this.#running.has(run)) return;
    this.#end(run);
    const now = this.#parts.clock.now();
    if (readiness !== "hanging") this.#lastReadyzAnswerAt = now;
    // A probe that started later was answered. So the outage in which this probe's packets were lost is over.
    else if ((run.askedAt ?? now) < this.#lastReadyzAnswerAt) return;
    this.#counts.lastMs = now - run.begunAt;
    this.#counts.durations.observe(this.#counts.lastMs / 1000);
    this.#readyz.fade(now);
    this.#handshakes.fade(now);
    if (readiness === "ready") this.#readyz.add(now - (run.askedAt ?? now));
    if (readiness === "hanging" || readiness === "failing") this.#counts.failures += 1;
    else this.#counts.answers += 1;
    this.#parts.learn({ kind: "readyz", readiness, ms: this.#counts.lastMs, reason });
  }

  #ageOf({ begunAt }: Run): number {
    return Math.round(this.#parts.clock.now() - begunAt);
  }

  #end(run: Run): void {
    this.#running.delete(run);
    run.stopWait();
    run.stopLargePacketWait();
    run.stopHandshakeWait();
    run.stopProbe();
  }
}

export type BackendProber = Pick<Prober, "probeNow" | "expediteProbe" | "probeLargePackets" | "counts">;

type KeptProber = BackendProber & Pick<Prober, "start" | "stop" | "configure">;

/** One prober for each configured backend. It probes here, or asks another process for probes. */
export class Probers {
  readonly #proberOf: (backend: string) => KeptProber;
  readonly #probers = new Map<string, KeptProber>();

  constructor(proberOf: (backend: string) => KeptProber) {
    this.#proberOf = proberOf;
  }

  of(backend: string): BackendProber | undefined {
    return this.#probers.get(backend);
  }

  /**
   * Applies a new interval and timeout to all probers. From now on, `proberOf` must use both for probers that it
   * creates later.
   */
  configure(times: ProbeTimes): void {
    for (const prober of this.#probers.values()) prober.configure(times);
  }

  reconcile(names: readonly string[]): void {
    for (const [name, prober] of this.#probers) {
      if (names.includes(name)) continue;
      prober.stop();
      this.#probers.delete(name);
    }
    for (const name of names) {
      if (this.#probers.has(name)) continue;
      const prober = this.#proberOf(name);
      this.#probers.set(name, prober);
      prober.start();
    }
  }
}

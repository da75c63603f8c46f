/** A health prober on a manual clock. The test answers its probes. */
import { type BackendFacts, noFacts } from "../../src/health/backend.ts";
import type { Evidence } from "../../src/health/evidence.ts";
import { type ProbeListener, Prober } from "../../src/health/prober.ts";
import { type ManualClock, manualClock } from "./clock.ts";

export type Played = {
  readonly clock: ManualClock;
  readonly prober: Prober;
  readonly learnt: Evidence[];
  /** `running` holds the probes under way, oldest first. `begun` holds the start times of all probes. */
  readonly running: { readonly ear: ProbeListener; readonly at: number }[];
  readonly begun: number[];
  held: BackendFacts;
  mayLoseLargePackets: boolean;
  /** When the latest answered PING was sent, provided that no PING was late. */
  smallPassedAt: number;
};

export const ready: BackendFacts = { ...noFacts, state: "ready", connections: "answering", fresh: "answer" };
export const silent: BackendFacts = { ...ready, state: "suspect", connections: "silent", fresh: "none" };

export function play(held: BackendFacts): Played {
  const clock = manualClock();
  const played: Omit<Played, "prober"> = {
    clock,
    learnt: [],
    running: [],
    begun: [],
    held,
    mayLoseLargePackets: false,
    smallPassedAt: Number.POSITIVE_INFINITY,
  };
  const prober = new Prober({
    clock,
    random: () => 0.5,
    times: { intervalMs: 1000, timeoutMs: 3000 },
    facts: () => all.held,
    learn: (evidence) => played.learnt.push(evidence),
    dialMs: () => 1000,
    mayLoseLargePackets: () => all.mayLoseLargePackets,
    passesSmallPackets: (since) => all.smallPassedAt > since,
    probe(ear) {
      const run = { ear, at: clock.now() };
      played.running.push(run);
      played.begun.push(clock.now());
      return () => void played.running.splice(played.running.indexOf(run), 1);
    },
  });
  const all = Object.assign(played, { prober });
  prober.start();
  return all;
}

/** Answers all probes under way with ready. */
export function answerAll({ running }: Played): void {
  for (const { ear } of Array.from(running)) {
    ear.dialed("answer", "");
    ear.answered("ready", "");
  }
}

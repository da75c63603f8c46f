/** Fake replicas. The test decides for each address whether it answers, fails or does not respond. */
import { setImmediate as turn } from "node:timers/promises";
import { type Address, parseAddress, textOf } from "../../src/base/address.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import type { ReplicaFacts } from "../../src/fleet/replicas/replica.ts";
import { Replicas } from "../../src/fleet/replicas/replicas.ts";
import type { ReplicasConfig } from "../../src/ops/config/replicas.ts";
import { manualClock } from "./clock.ts";

/**
 * A 101 response. After it Node's HTTP client reports neither a response nor an error, unless the caller listens for an
 * upgrade.
 */
export const switching = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\n";

/** Returns the facts of replica `number`. */
export function factsOf(number: number, change: Partial<ReplicaFacts> = {}): ReplicaFacts {
  return {
    id: `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
    name: `wk-${number}`,
    version: "0.1.0",
    startedAt: "2026-11-22T12:00:00.000Z",
    clusters: ["default"],
    activeIncidents: 0,
    ...change,
  };
}

export function addressIn(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(text);
  return address;
}

/** Returns the address of replica `number`. */
export function addressOf(number: number): string {
  return `10.0.0.${number}:7480`;
}

export function listed(...texts: readonly string[]): ReplicasConfig {
  return { addresses: texts.map(addressIn), name: undefined, tls: undefined };
}

/** The replica registry of the process under test, which is replica 1. */
export class PlayedReplicas {
  readonly clock = manualClock();
  readonly journal = new Journal(this.clock);
  readonly entries: Entry[] = [];
  /** The response of each address. An address that is not in the map refuses connections. */
  readonly answers = new Map<string, ReplicaFacts>();
  readonly asked: string[] = [];
  readonly counts: number[] = [];
  readonly resolved: {
    readonly hostname: string;
    readonly found: (addresses: readonly Address[]) => void;
  }[] = [];
  stopped = 0;
  /** While true, sending a request throws an error, to simulate a bug. */
  throws = false;
  open = 0;
  /** The most requests that were under way at the same time. */
  mostOpen = 0;
  self = factsOf(1);
  readonly shared = {
    count: 1,
    set: (count: number): void => {
      this.shared.count = count;
      this.counts.push(count);
    },
  };
  readonly replicas = new Replicas({
    clock: this.clock,
    journal: this.journal,
    self: () => this.self,
    ask: async ({ address }) => {
      const text = textOf(address);
      this.asked.push(text);
      this.open += 1;
      this.mostOpen = Math.max(this.mostOpen, this.open);
      await turn();
      this.open -= 1;
      if (this.throws) throw new Error("a fault");
      return this.answers.get(text) ?? new Failure("backend-refused", "backend", "ECONNREFUSED");
    },
    resolve: ({ hostname }, found) => {
      this.resolved.push({ hostname, found });
      return () => {
        this.stopped += 1;
      };
    },
    shared: this.shared,
  });

  constructor(...numbers: readonly number[]) {
    this.journal.subscribe((entry) => this.entries.push(entry));
    for (const number of numbers) this.answers.set(addressOf(number), factsOf(number));
  }

  async settle(): Promise<void> {
    for (let turns = 0; turns < 12; turns += 1)
      // One turn after the other, because each may begin the next request.
      // oxlint-disable-next-line no-await-in-loop
      await turn();
  }

  /** Moves the clock in steps of one second, and runs everything that becomes due. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      this.clock.advance(1000);
      // oxlint-disable-next-line no-await-in-loop
      await this.settle();
    }
  }

  /** The name and state of each row, for example "wk-1 live". */
  get states(): readonly string[] {
    return this.replicas.rows.map(({ name, state }) => `${name} ${state}`);
  }
}

/**
 * Limits the entries that clients can cause (event-kinds.ts), so that a client cannot fill the log or the event stream:
 * the first entries of a kind are passed on whole, and one entry counts the others after ten seconds.
 */
import type { Clock } from "../base/clock.ts";
import { eventKinds, type Pace, paceMs } from "./event-kinds.ts";
import type { ProxyEvent } from "./proxy-event.ts";

type Reader<E> = (entry: E | ProxyEvent, at: number) => void;

/** The entries of one kind since `since`. `clients`: the entries of each client, at most `clientsCounted`. */
type Window = {
  readonly since: number;
  passed: number;
  omitted: number;
  readonly clients: Map<string, { passed: number; omitted: number }>;
};

/** Maximum number of clients whose entries of a kind are counted: more than entries of any kind are passed on whole. */
export const clientsCounted = 2000;
/** Maximum number of clients that an entry "entries.omitted" names. */
const clientsNamed = 3;

export class Pacer<E extends ProxyEvent> {
  readonly #clock: Clock;
  readonly #pass: Reader<E>;
  readonly #windows = new Map<ProxyEvent["kind"], Window>();

  constructor(clock: Clock, pass: Reader<E>) {
    this.#clock = clock;
    this.#pass = pass;
  }

  take(entry: E, at: number): void {
    const { pace } = eventKinds[entry.kind];
    if (pace === undefined || this.#isWhole(entry, pace, at)) this.#pass(entry, at);
  }

  #isWhole(entry: E, { most, mostOfOne }: Pace, at: number): boolean {
    const window = this.#windowOf(entry.kind, at);
    const client = clientOf(entry, window);
    if (window.passed < most && (client === undefined || client.passed < mostOfOne)) {
      window.passed += 1;
      if (client !== undefined) client.passed += 1;
      return true;
    }
    if (window.omitted === 0)
      this.#clock.after(window.since + paceMs - at, () => this.#end(entry.kind, window));
    window.omitted += 1;
    if (client !== undefined) client.omitted += 1;
    return false;
  }

  #windowOf(kind: ProxyEvent["kind"], at: number): Window {
    const window = this.#windows.get(kind);
    if (window !== undefined && (window.omitted > 0 || at - window.since < paceMs)) return window;
    const next: Window = { since: at, passed: 0, omitted: 0, clients: new Map() };
    this.#windows.set(kind, next);
    return next;
  }

  #end(of: ProxyEvent["kind"], { omitted, clients }: Window): void {
    this.#windows.delete(of);
    const most = Array.from(clients).filter(([, one]) => one.omitted > 0);
    most.sort(([, one], [, other]) => other.omitted - one.omitted);
    const named = most.slice(0, clientsNamed).map(([name, one]) => `${name} ${one.omitted}`);
    this.#pass(
      { kind: "entries.omitted", of, count: omitted, withinMs: paceMs, clients: named },
      this.#clock.now(),
    );
  }
}

/**
 * Returns the counts of the entry's client; undefined: the entry names none, or too many clients are counted already. The
 * number of whole entries is then exhausted.
 */
function clientOf(entry: ProxyEvent, { clients }: Window): { passed: number; omitted: number } | undefined {
  const name = "client" in entry ? (entry.client ?? "") : "";
  if (name === "") return undefined;
  const known = clients.get(name);
  if (known !== undefined || clients.size >= clientsCounted) return known;
  const client = { passed: 0, omitted: 0 };
  clients.set(name, client);
  return client;
}

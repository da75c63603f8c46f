/**
 * Follows the DNS names in backends' URLs. If the name of a load balancer or an apiserver moves to another address while
 * the old address still answers, connections to the old address would otherwise stay for ever. Resolvers may return a
 * random part of the addresses, so an address is unnamed only if none of the last `nameAnswers` answers contains it. A
 * lookup that fails, hangs or finds nothing changes nothing.
 */
import { isIpAddress, withoutMapping } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { upstreamLimits } from "../../upstream/pool/limits.ts";

type NamedAddressesParts = {
  readonly clock: Clock;
  readonly backends: () => readonly { readonly name: string; readonly host: string }[];
  /** Returns all addresses of a host name, as a dial would find them. */
  readonly lookup: (host: string) => Promise<readonly { readonly address: string }[]>;
  /** Called after an answer, if there were enough of them: connections to unnamed addresses should be replaced. */
  readonly onAnswer: (backend: string, isUnnamed: (address: string) => boolean) => void;
};

export class NamedAddresses {
  readonly #parts: NamedAddressesParts;
  readonly #looks: Interval;
  /** The latest answers by host name, newest first. */
  #answers: ReadonlyMap<string, readonly (readonly string[])[]> = new Map();
  readonly #asking = new Set<string>();

  constructor(parts: NamedAddressesParts) {
    this.#parts = parts;
    this.#looks = new Interval(parts.clock, upstreamLimits.nameLookMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
  }

  #look(): void {
    const hosts = new Set(this.#parts.backends().map(({ host }) => host));
    this.#answers = new Map(Array.from(this.#answers).filter(([host]) => hosts.has(host)));
    for (const host of hosts) {
      // Lookups of one name never overlap, so that a hanging resolver does not occupy more and more threads.
      if (isIpAddress(host) || this.#asking.has(host)) continue;
      this.#asking.add(host);
      const settled = (addresses: readonly string[]): void => {
        this.#asking.delete(host);
        if (addresses.length > 0) this.#take(host, addresses);
      };
      this.#parts.lookup(host).then(
        (found) => settled(found.map(({ address }) => withoutMapping(address))),
        () => settled([]),
      );
    }
  }

  #take(host: string, addresses: readonly string[]): void {
    const answers = [addresses, ...(this.#answers.get(host) ?? [])].slice(0, upstreamLimits.nameAnswers);
    this.#answers = new Map([...this.#answers, [host, answers]]);
    if (answers.length < upstreamLimits.nameAnswers) return;
    const isUnnamed = (address: string): boolean =>
      !answers.some((one) => one.includes(withoutMapping(address)));
    for (const backend of this.#parts.backends())
      if (backend.host === host) this.#parts.onAnswer(backend.name, isUnnamed);
  }
}

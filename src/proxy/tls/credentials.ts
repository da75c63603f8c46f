/**
 * The proxy's own client certificates for backends, with which it asserts the identities of clients (D9). They are
 * watched, checked and replaced like a serving certificate. Canaries show which backends take the asserted identities
 * (D9).
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { PairFiles } from "../../config/cluster.ts";
import type { ConfigForCluster } from "../../config/config.ts";
import { quote } from "../../config/problem.ts";
import type { Journal } from "../../events/journal.ts";
import type { AssertedTrust } from "../identity/asserted-identity.ts";
import type { CanaryAnswer } from "../identity/canary.ts";
import { type IdentityProof, newsIn, unasked } from "../identity/identity-proof.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { BackendAddress } from "../net/connect.ts";
import { type Assertion, assertionsIn, pairFilesIn, suspicionOf } from "./assertions.ts";
import { unusable } from "./ca-bundle.ts";
import { ServingCertificate } from "./certificates.ts";
import { IdentityProofs } from "./identity-proofs.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";
import { askCanary } from "./upstream-acceptance.ts";

/** What the canaries have shown about each backend, with the certificate that has this SHA-256 fingerprint. */
export type ToldProofs = {
  readonly [T in AssertedTrust]?: {
    readonly fingerprint: string;
    readonly backends: Readonly<Record<string, IdentityProof>>;
  };
};

export type CredentialsParts = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly journal: Journal;
  /** Prefix of the certificates' names in journal and metrics: "eu/" if there are several clusters, else "". */
  readonly prefix: string;
  /**
   * Called when a certificate was replaced. Sessions that present the old one must end before it expires (A44), and must
   * take no new request if `wasProven` is false for their backend.
   */
  readonly onSwap: (trust: AssertedTrust, wasProven: (backend: string) => boolean) => void;
  readonly backends: () => readonly BackendAddress[];
  readonly isReady: (backend: string) => boolean;
  /** Called when the canaries have shown something new. */
  readonly onProof: () => void;
  /** True if another process sends the canaries, and tells this one their results (`follow`); default: false. */
  readonly isTold?: boolean;
};

type Loaded = { readonly files: PairFiles; readonly certificate: ServingCertificate };

const names = { "front-proxy": "front-proxy", impersonate: "impersonator" } as const;
const trusts = ["front-proxy", "impersonate"] as const;

/** Returns the trust classes for which a configuration sets a certificate of the proxy's own. */
export function assertedIn(config: ConfigForCluster): readonly AssertedTrust[] {
  return trusts.filter((trust) => pairFilesIn(config, trust) !== undefined);
}

export class Credentials {
  readonly #parts: CredentialsParts;
  readonly #loaded = new Map<AssertedTrust, Loaded>();
  /** How listeners use each certificate. One that no listener uses any more stays, because clients still leave. */
  readonly #assertions = new Map<AssertedTrust, Assertion>();
  readonly #proofs: IdentityProofs;
  /** The answers to the canaries with the latest new certificate, by backend. */
  readonly #answers = new Map<AssertedTrust, ReadonlyMap<string, CanaryAnswer>>();
  /** The certificates whose files wait until a backend can test them. */
  readonly #untested = new Set<AssertedTrust>();
  /** The fingerprint of the certificate that new connections present. */
  readonly #presented = new Map<AssertedTrust, string | undefined>();
  /** The certificates that a backend has proven at any time. */
  readonly #everProven = new Set<AssertedTrust>();
  /** What the other process has told last, and what it told about the certificates before. */
  #told: ToldProofs = {};
  #toldBefore: ToldProofs = {};

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
    const { clock, random } = parts;
    this.#proofs = new IdentityProofs({
      clock,
      random,
      ask: (trust, backend) => this.#ask(trust, backend),
      changed: (trust, backend, now, was) => this.#changed(trust, backend, now, was),
    });
  }

  /**
   * Loads the certificates of another configuration, and returns a function that puts them into use. On a Failure,
   * nothing has changed. A certificate that is no longer configured stays loaded, because some clients still need it
   * while their listeners drain them.
   */
  async prepare(config: ConfigForCluster): Promise<(() => undefined) | Failure> {
    const assertions = assertionsIn(config);
    const outcomes = await Promise.all(
      trusts.map((trust) =>
        this.#load(trust, pairFilesIn(config, trust), assertions.get(trust) ?? this.#assertions.get(trust)),
      ),
    );
    const failure = outcomes.find((outcome) => outcome instanceof Failure);
    const loaded = outcomes.flatMap((one) => (one instanceof Failure || one === undefined ? [] : [one]));
    if (failure === undefined)
      return () => {
        for (const [trust, assertion] of assertions) this.#assert(trust, assertion);
        for (const [trust, one] of loaded) this.#take(trust, one);
        return undefined;
      };
    for (const [, { certificate }] of loaded) certificate.stop();
    return failure;
  }

  /** Returns the proxy's certificate for upstream connections of this trust class; undefined: none. */
  pairFor(trust: TrustClass | undefined): ServingPair | undefined {
    if (trust !== "front-proxy" && trust !== "impersonate") return undefined;
    return this.#loaded.get(trust)?.certificate.current?.pair;
  }

  get certificates(): readonly { readonly name: string; readonly notAfterMs: number }[] {
    return Array.from(this.#loaded, ([trust, { certificate }]) => ({
      name: this.#parts.prefix + names[trust],
      notAfterMs: certificate.current?.pair.notAfter ?? 0,
    }));
  }

  // --- what the canaries have shown ---

  /** True if each certificate that listeners use was proven at any time. A later refusal does not undo this. */
  get areAllProven(): boolean {
    return Array.from(this.#assertions.keys()).every((trust) => this.#everProven.has(trust));
  }

  /** True if listeners assert identities. */
  get isAsserting(): boolean {
    return this.#assertions.size > 0;
  }

  /** Returns a text for each certificate that listeners use, such as "front-proxy: proven". */
  identitiesOf(backend: string): readonly string[] {
    return Array.from(this.#assertions.keys(), (trust) => {
      const { verdict, problem, gap } = this.proofOf(trust, backend);
      return [`${names[trust]}: ${verdict}`, problem, gap].filter((part) => part !== "").join(", ");
    });
  }

  readonly isProven = (trust: AssertedTrust, backend: string): boolean =>
    this.proofOf(trust, backend).verdict === "proven";

  readonly areRefused = (trust: AssertedTrust): boolean =>
    this.#parts.backends().every(({ name }) => this.proofOf(trust, name).verdict === "refused");

  proofOf(trust: AssertedTrust, backend: string): IdentityProof {
    if (this.#parts.isTold !== true) return this.#proofs.of(trust, backend) ?? unasked;
    const fingerprint = this.pairFor(trust)?.fingerprint;
    const told = [this.#told[trust], this.#toldBefore[trust]].find((one) => one?.fingerprint === fingerprint);
    return told?.backends[backend] ?? unasked;
  }

  /** What another process must know to follow the canaries of this one. */
  get told(): ToldProofs {
    const of = (trust: AssertedTrust): ToldProofs => ({
      [trust]: {
        fingerprint: this.pairFor(trust)?.fingerprint ?? "",
        backends: Object.fromEntries(this.#proofs.all(trust)),
      },
    });
    return Object.assign({}, ...Array.from(this.#assertions.keys(), of));
  }

  /** Takes over what another process has told. A certificate that it has proven may be in a file that changed. */
  follow(told: ToldProofs): void {
    for (const trust of trusts) {
      const [before, now] = [this.#told[trust], told[trust]];
      if (before?.fingerprint === now?.fingerprint) continue;
      this.#toldBefore = { ...this.#toldBefore, ...(before && { [trust]: before }) };
      if (now?.fingerprint !== this.pairFor(trust)?.fingerprint)
        void this.#loaded.get(trust)?.certificate.reload();
    }
    this.#told = told;
    this.#parts.onProof();
  }

  /** Learns which backends there are, and at which addresses. */
  reconcile(): void {
    if (this.#parts.isTold === true) return;
    const all = this.#parts.backends();
    this.#proofs.reconcile(new Map(all.map(({ name, host, port }) => [name, `${host} ${port}`])));
  }

  /** Called when a backend has become ready: it may have other flags now, and it may test a certificate that waits. */
  readonly ready = (backend: string): void => {
    this.#proofs.askNow(backend);
    for (const trust of this.#untested) void this.#loaded.get(trust)?.certificate.reload();
  };

  stop(): void {
    for (const { certificate } of this.#loaded.values()) certificate.stop();
    this.#proofs.stop();
  }

  // --- loading ---

  async #load(
    trust: AssertedTrust,
    wanted: PairFiles | undefined,
    assertion: Assertion | undefined,
  ): Promise<readonly [AssertedTrust, Loaded] | undefined | Failure> {
    const was = this.#loaded.get(trust);
    if (wanted === undefined || isDeepStrictEqual(wanted, was?.files)) return undefined;
    const { clock, journal, prefix } = this.#parts;
    const { certFile, keyFile, reloadIntervalMs } = wanted;
    const certificate = await ServingCertificate.load({
      name: prefix + names[trust],
      use: "client",
      certFile,
      keyFile,
      reloadIntervalMs,
      clock,
      journal,
      onSwap: () => this.#swapped(trust),
      prove: (pair) => this.#objectionTo(pair, trust, this.#assertions.get(trust), true),
    });
    if (certificate instanceof Failure) return certificate;
    const pair = certificate.current?.pair;
    const objection = pair && (await this.#objectionTo(pair, trust, assertion, false));
    if (objection === undefined) return [trust, { files: wanted, certificate }];
    certificate.stop();
    return unusable(`"${certFile}" with "${keyFile}"`, objection);
  }

  /**
   * Returns why a new certificate must not replace the one in use; undefined: it may. `isRotation`: its files have
   * changed, and not the configuration. If no backend can test it then, the proven one stays until one can.
   */
  async #objectionTo(
    pair: ServingPair,
    trust: AssertedTrust,
    assertion: Assertion | undefined,
    isRotation: boolean,
  ): Promise<Failure | undefined> {
    this.#untested.delete(trust);
    if (this.#parts.isTold === true)
      return isRotation && this.#told[trust]?.fingerprint !== pair.fingerprint ? notTested : undefined;
    if (assertion === undefined) return undefined;
    const answers = await this.#askReady(pair, assertion);
    this.#answers.set(trust, answers);
    const all = Array.from(answers.values());
    if (all.some(({ kind }) => kind === "proven")) return undefined;
    const refusal = all.find((answer) => answer.kind === "refused");
    if (refusal !== undefined) return unsuitable(pair, refusal.problem);
    return this.#objectionToUntested(pair, trust, assertion, isRotation);
  }

  async #askReady(pair: ServingPair, { policy }: Assertion): Promise<ReadonlyMap<string, CanaryAnswer>> {
    const { backends, isReady, clock } = this.#parts;
    const ready = backends().filter(({ name }) => isReady(name));
    const asked = ready.map(
      async (address) => [address.name, await askCanary(pair, policy, { address, clock })] as const,
    );
    return new Map(await Promise.all(asked));
  }

  #objectionToUntested(
    pair: ServingPair,
    trust: AssertedTrust,
    assertion: Assertion,
    isRotation: boolean,
  ): Failure | undefined {
    const suspicion = this.#loaded.has(trust) ? suspicionOf(pair, trust, assertion) : undefined;
    if (suspicion !== undefined) return unsuitable(pair, suspicion);
    const isNeeded = Array.from(this.#proofs.all(trust).values()).some(({ verdict }) => verdict === "proven");
    if (!isRotation || !isNeeded) return undefined;
    this.#untested.add(trust);
    return notTested;
  }

  #take(trust: AssertedTrust, loaded: Loaded): void {
    const was = this.#loaded.get(trust);
    this.#loaded.set(trust, loaded);
    was?.certificate.stop();
    if (was !== undefined) return this.#swapped(trust);
    this.#presented.set(trust, this.pairFor(trust)?.fingerprint);
    if (this.#assertions.has(trust)) this.#begin(trust);
  }

  #swapped(trust: AssertedTrust): void {
    const shown = this.#presented.get(trust);
    const told = [this.#told[trust], this.#toldBefore[trust]].find((one) => one?.fingerprint === shown);
    const before = this.#parts.isTold === true ? told?.backends : Object.fromEntries(this.#proofs.all(trust));
    this.#presented.set(trust, this.pairFor(trust)?.fingerprint);
    if (this.#assertions.has(trust)) this.#begin(trust);
    this.#parts.onSwap(trust, (backend) => before?.[backend]?.verdict === "proven");
  }

  #assert(trust: AssertedTrust, assertion: Assertion): void {
    const was = this.#assertions.get(trust);
    this.#assertions.set(trust, assertion);
    if (this.#loaded.has(trust) && !isDeepStrictEqual(was?.policy, assertion.policy)) this.#begin(trust);
  }

  // --- canaries ---

  #begin(trust: AssertedTrust): void {
    if (this.#parts.isTold === true) return;
    this.#proofs.begin(trust, this.#answers.get(trust));
    this.#answers.delete(trust);
  }

  async #ask(trust: AssertedTrust, backend: string): Promise<CanaryAnswer> {
    const { backends, clock } = this.#parts;
    const address = backends().find(({ name }) => name === backend);
    const [pair, assertion] = [this.pairFor(trust), this.#assertions.get(trust)];
    if (address === undefined || pair === undefined || assertion === undefined)
      return { kind: "none", problem: "" };
    return askCanary(pair, assertion.policy, { address, clock });
  }

  #changed(trust: AssertedTrust, backend: string, now: IdentityProof, was: IdentityProof): void {
    const { journal, prefix, isReady, onProof } = this.#parts;
    if (now.verdict === "proven") this.#everProven.add(trust);
    const about = { name: prefix + names[trust], backend };
    const news = newsIn(now, was, isReady(backend));
    if (news === "proven") journal.write({ kind: "identity.proven", ...about, gap: now.gap });
    else if (news === "dropped") journal.write({ kind: "identity.dropped", ...about });
    else if (news === "refused")
      journal.write({ kind: "identity.refused", ...about, ...this.#pairNamed(trust), problem: now.problem });
    if (now.verdict !== was.verdict || now.problem !== was.problem) onProof();
  }

  #pairNamed(trust: AssertedTrust): { readonly file: string; readonly certificate: string } {
    const pair = this.pairFor(trust);
    const [certificate = ""] = pair === undefined ? [] : subjectsIn(pair.chain);
    return { file: this.#loaded.get(trust)?.files.certFile ?? "", certificate };
  }
}

const notTested = new Failure(
  "bad-file",
  "proxy",
  "no backend has tested it yet, so the last good one stays",
);

function unsuitable(pair: ServingPair, problem: string): Failure {
  const [subject = ""] = subjectsIn(pair.chain);
  return new Failure("bad-file", "proxy", `the certificate of ${quote(subject)} is unsuitable: ${problem}`);
}

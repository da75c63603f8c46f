/**
 * The proxy's own client certificates for backends, with which it asserts the identities of clients (D9). They are
 * watched, checked and replaced like a serving certificate. Canaries show which backends take the asserted identities
 * (D9).
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { PairFiles } from "../../ops/config/cluster.ts";
import type { ConfigForCluster } from "../../ops/config/config.ts";
import { quote } from "../../ops/config/problem.ts";
import type { AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import type { CanaryAnswer } from "../../upstream/identity/canary.ts";
import { type IdentityProof, newsIn, unasked } from "../../upstream/identity/identity-proof.ts";
import { isAsserted, type TrustClass } from "../../upstream/identity/trust.ts";
import type { BackendAddress } from "../../upstream/net/connect.ts";
import { type Assertion, assertionsIn, pairFilesIn, suspicionOf } from "./assertions.ts";
import { unusable } from "./ca-bundle.ts";
import { ServingCertificate } from "./certificates.ts";
import { IdentityProofs } from "./identity-proofs.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";
import { askCanary } from "./upstream-acceptance.ts";

type Told = {
  /** SHA-256 of the certificate with which the canaries were sent. */
  readonly fingerprint: string;
  readonly backends: Readonly<Record<string, IdentityProof>>;
};

/** What the canaries have shown about each backend. */
export type ToldProofs = { readonly [T in AssertedTrust]?: Told };

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

const names = { "front-proxy": "front-proxy", impersonate: "impersonator" } as const;
const trusts = ["front-proxy", "impersonate"] as const;

/** Returns the trust classes for which a configuration sets a certificate of the proxy's own. */
export function assertedIn(config: ConfigForCluster): readonly AssertedTrust[] {
  return trusts.filter((trust) => pairFilesIn(config, trust) !== undefined);
}

export class Credentials {
  readonly #parts: CredentialsParts;
  readonly #all: Readonly<Record<AssertedTrust, Credential>>;

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
    this.#all = {
      "front-proxy": new Credential("front-proxy", parts),
      impersonate: new Credential("impersonate", parts),
    };
  }

  /**
   * Loads the certificates of another configuration, and returns a function that puts them into use. On a Failure,
   * nothing has changed.
   */
  async prepare(config: ConfigForCluster): Promise<(() => undefined) | Failure> {
    const assertions = assertionsIn(config);
    const outcomes = await Promise.all(
      trusts.map((trust) => this.#all[trust].prepare(pairFilesIn(config, trust), assertions.get(trust))),
    );
    const failure = outcomes.find((outcome) => outcome instanceof Failure);
    const prepared = outcomes.flatMap((outcome) => (outcome instanceof Failure ? [] : [outcome]));
    if (failure === undefined)
      return () => {
        for (const { take } of prepared) take();
        return undefined;
      };
    for (const { drop } of prepared) drop();
    return failure;
  }

  /** Returns the proxy's certificate for upstream connections of this trust class; undefined: none. */
  pairFor(trust: TrustClass | undefined): ServingPair | undefined {
    return trust !== undefined && isAsserted(trust) ? this.#all[trust].pair : undefined;
  }

  get certificates(): readonly { readonly name: string; readonly notAfterMs: number }[] {
    return Object.values(this.#all).flatMap(({ name, pair }) =>
      pair === undefined ? [] : [{ name, notAfterMs: pair.notAfter }],
    );
  }

  /** The certificates that listeners use. */
  get #asserting(): readonly Credential[] {
    return Object.values(this.#all).filter(({ isAsserting }) => isAsserting);
  }

  /** True if each certificate that listeners use was proven at any time. A later refusal does not undo this. */
  get areAllProven(): boolean {
    return this.#asserting.every(({ wasProven }) => wasProven);
  }

  /** True if listeners assert identities. */
  get isAsserting(): boolean {
    return this.#asserting.length > 0;
  }

  /** Returns a text for each certificate that listeners use, such as "front-proxy: proven". */
  identitiesOf(backend: string): readonly string[] {
    return this.#asserting.map((credential) => {
      const { verdict, problem, gap } = credential.proofOf(backend);
      return [`${names[credential.trust]}: ${verdict}`, problem, gap]
        .filter((part) => part !== "")
        .join(", ");
    });
  }

  readonly isProven = (trust: AssertedTrust, backend: string): boolean =>
    this.#all[trust].proofOf(backend).verdict === "proven";

  readonly areRefused = (trust: AssertedTrust): boolean =>
    this.#parts.backends().every(({ name }) => this.#all[trust].proofOf(name).verdict === "refused");

  /** What another process must know to follow the canaries of this one. */
  get told(): ToldProofs {
    return Object.fromEntries(this.#asserting.map(({ trust, told }) => [trust, told]));
  }

  /** Takes over what another process has told. */
  follow(told: ToldProofs): void {
    for (const trust of trusts) this.#all[trust].follow(told[trust]);
    this.#parts.onProof();
  }

  /** Learns which backends there are, and at which addresses. */
  reconcile(): void {
    for (const credential of this.#asserting) credential.reconcile();
  }

  /** Called when a backend has become ready: it may have other flags now, and it may test a certificate that waits. */
  readonly ready = (backend: string): void => {
    for (const credential of Object.values(this.#all)) credential.ready(backend);
  };

  stop(): void {
    for (const credential of Object.values(this.#all)) credential.stop();
  }
}

type Prepared = { readonly take: () => void; readonly drop: () => void };

/** One of the proxy's certificates, with what is known of each backend that must take it. */
class Credential {
  readonly trust: AssertedTrust;
  /** The certificate's name in journal and metrics. */
  readonly name: string;
  readonly #parts: CredentialsParts;
  /** A certificate that is no longer configured stays, because clients still leave. */
  #files: PairFiles | undefined;
  #certificate: ServingCertificate | undefined;
  /** How listeners use the certificate; undefined: none has used it yet. */
  #assertion: Assertion | undefined;
  readonly #proofs: IdentityProofs;
  /** The answers to the canaries with the latest new certificate, by backend. */
  #answers: ReadonlyMap<string, CanaryAnswer> = new Map();
  /** True if the files hold a certificate that waits until a backend can test it. */
  #isUntested = false;
  /** The fingerprint of the certificate that new connections present. */
  #presented: string | undefined;
  /** True if a backend has proven the certificate at any time. */
  wasProven = false;
  /** What the other process has told about this certificate and the one before. */
  #told: readonly Told[] = [];

  constructor(trust: AssertedTrust, parts: CredentialsParts) {
    this.trust = trust;
    this.name = parts.prefix + names[trust];
    this.#parts = parts;
    this.#proofs = new IdentityProofs({
      ...parts,
      ask: (backend) => this.#ask(backend),
      changed: (backend, now, was) => this.#changed(backend, now, was),
    });
  }

  get pair(): ServingPair | undefined {
    return this.#certificate?.current?.pair;
  }

  get isAsserting(): boolean {
    return this.#assertion !== undefined;
  }

  // --- what the canaries have shown ---

  proofOf(backend: string): IdentityProof {
    return (this.#parts.isTold === true ? this.#shown[backend] : this.#proofs.of(backend)) ?? unasked;
  }

  /** What is known about each backend with the certificate that new connections present. */
  get #shown(): Readonly<Record<string, IdentityProof>> {
    if (this.#parts.isTold !== true) return this.#proofs.all;
    return this.#told.find(({ fingerprint }) => fingerprint === this.#presented)?.backends ?? {};
  }

  get told(): Told {
    return { fingerprint: this.pair?.fingerprint ?? "", backends: this.#shown };
  }

  follow(told: Told | undefined): void {
    if (told === undefined) return;
    const [last] = this.#told;
    const others = this.#told.filter(({ fingerprint }) => fingerprint !== told.fingerprint);
    this.#told = [told, ...others].slice(0, 2);
    // The certificate that the other process has proven may be in a file that has changed.
    if (told.fingerprint !== last?.fingerprint && told.fingerprint !== this.#presented)
      void this.#certificate?.reload();
  }

  reconcile(known?: ReadonlyMap<string, CanaryAnswer>): void {
    if (this.#parts.isTold === true) return;
    const all = this.#parts.backends();
    this.#proofs.reconcile(new Map(all.map(({ name, host, port }) => [name, `${host} ${port}`])), known);
  }

  ready(backend: string): void {
    this.#proofs.askNow(backend);
    if (this.#isUntested) void this.#certificate?.reload();
  }

  stop(): void {
    this.#certificate?.stop();
    this.#proofs.stop();
  }

  // --- loading ---

  /** Loads a certificate. On a Failure, and until `take` is called, nothing has changed. */
  async prepare(
    wanted: PairFiles | undefined,
    assertion: Assertion | undefined,
  ): Promise<Prepared | Failure> {
    if (wanted === undefined || isDeepStrictEqual(wanted, this.#files))
      return { take: () => this.#assert(assertion), drop() {} };
    const { certFile, keyFile } = wanted;
    const certificate = await ServingCertificate.load({
      ...this.#parts,
      ...wanted,
      name: this.name,
      use: "client",
      onSwap: () => this.#swapped(),
      prove: (pair) => this.#objectionTo(pair, this.#assertion, true),
    });
    if (certificate instanceof Failure) return certificate;
    const drop = (): void => certificate.stop();
    const pair = certificate.current?.pair;
    const objection = pair && (await this.#objectionTo(pair, assertion ?? this.#assertion, false));
    if (objection === undefined) return { take: () => this.#take(wanted, certificate, assertion), drop };
    drop();
    return unusable(`"${certFile}" with "${keyFile}"`, objection);
  }

  /**
   * Returns why a new certificate must not replace the one in use; undefined: it may. `isRotation`: its files have
   * changed, and not the configuration. If no backend can test it then, the proven one stays until one can.
   */
  async #objectionTo(
    pair: ServingPair,
    assertion: Assertion | undefined,
    isRotation: boolean,
  ): Promise<Failure | undefined> {
    this.#isUntested = false;
    if (this.#parts.isTold === true)
      return isRotation && this.#told[0]?.fingerprint !== pair.fingerprint ? notTested : undefined;
    if (assertion === undefined) return undefined;
    this.#answers = await this.#askReady(pair, assertion);
    const all = Array.from(this.#answers.values());
    if (all.some(({ kind }) => kind === "proven")) return undefined;
    const refusal = all.find((answer) => answer.kind === "refused");
    if (refusal !== undefined) return unsuitable(pair, refusal.problem);
    return this.#objectionToUntested(pair, assertion, isRotation);
  }

  #objectionToUntested(pair: ServingPair, assertion: Assertion, isRotation: boolean): Failure | undefined {
    const suspicion = this.#certificate && suspicionOf(pair, this.trust, assertion);
    if (suspicion !== undefined) return unsuitable(pair, suspicion);
    const isNeeded = Object.values(this.#shown).some(({ verdict }) => verdict === "proven");
    this.#isUntested = isRotation && isNeeded;
    return this.#isUntested ? notTested : undefined;
  }

  async #askReady(pair: ServingPair, { policy }: Assertion): Promise<ReadonlyMap<string, CanaryAnswer>> {
    const { backends, isReady, clock } = this.#parts;
    const ready = backends().filter(({ name }) => isReady(name));
    const asked = ready.map(
      async (address) => [address.name, await askCanary(pair, policy, { address, clock })] as const,
    );
    return new Map(await Promise.all(asked));
  }

  #take(files: PairFiles, certificate: ServingCertificate, assertion: Assertion | undefined): void {
    const was = this.#certificate;
    this.#files = files;
    this.#certificate = certificate;
    this.#assertion = assertion ?? this.#assertion;
    was?.stop();
    if (was !== undefined) return this.#swapped();
    this.#presented = this.pair?.fingerprint;
    this.#begin();
  }

  #swapped(): void {
    const before = this.#shown;
    this.#presented = this.pair?.fingerprint;
    this.#begin();
    this.#parts.onSwap(this.trust, (backend) => before[backend]?.verdict === "proven");
  }

  #assert(assertion: Assertion | undefined): void {
    const was = this.#assertion;
    this.#assertion = assertion ?? was;
    if (!isDeepStrictEqual(was?.policy, this.#assertion?.policy)) this.#begin();
  }

  // --- canaries ---

  /** Begins anew with another certificate, or another kind of assertion. */
  #begin(): void {
    this.#proofs.stop();
    if (this.#assertion !== undefined && this.pair !== undefined) this.reconcile(this.#answers);
    this.#answers = new Map();
  }

  async #ask(backend: string): Promise<CanaryAnswer> {
    const { backends, clock } = this.#parts;
    const address = backends().find(({ name }) => name === backend);
    if (address === undefined || this.pair === undefined || this.#assertion === undefined)
      return { kind: "none", problem: "" };
    return askCanary(this.pair, this.#assertion.policy, { address, clock });
  }

  #changed(backend: string, now: IdentityProof, was: IdentityProof): void {
    const { isReady, onProof } = this.#parts;
    this.wasProven ||= now.verdict === "proven";
    const news = newsIn(now, was, isReady(backend));
    if (news !== undefined) this.#journal(news, backend, now);
    if (now.verdict !== was.verdict || now.problem !== was.problem) onProof();
  }

  #journal(news: "proven" | "refused" | "dropped", backend: string, { gap, problem }: IdentityProof): void {
    const { journal } = this.#parts;
    const about = { name: this.name, backend };
    if (news === "proven") return journal.write({ kind: "identity.proven", ...about, gap });
    if (news === "dropped") return journal.write({ kind: "identity.dropped", ...about });
    const [certificate = ""] = subjectsIn(this.pair?.chain ?? "");
    const file = this.#files?.certFile ?? "";
    return journal.write({ kind: "identity.refused", ...about, file, certificate, problem });
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

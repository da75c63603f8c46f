/**
 * Records in the ledger (src/ops/ledger: the recent callers and their requests) which clients send requests to the
 * backends, and which clients hold leader leases.
 */
import type { Clock } from "../../base/clock.ts";
import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { type Field, type Role, role } from "../../h2/core/field.ts";
import { firstValue, queryOf } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { Caller, CallerName } from "../../ops/ledger/caller.ts";
import type { LeaseName } from "../../ops/ledger/lease.ts";
import { isImmediateDelete, leaseRecordIn } from "../../ops/ledger/lease-body.ts";
import { type LeaseReport, Leases, type LeaseWrite } from "../../ops/ledger/leases.ts";
import { Ledger } from "../../ops/ledger/ledger.ts";
import { type Subject, subjectOf } from "../../ops/ledger/subject.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { Asserted } from "../../upstream/identity/asserted-identity.ts";
import type { Bearer } from "../../upstream/identity/trust.ts";
import { resourceKey, type WatchContext } from "../../watch/session/watch-context.ts";

const KiB = 1024;

export const ledgerTapLimits = {
  /**
   * A relist storm is at least this many lists within `stormMs`, by at least `stormCallers` callers. Only lists of
   * resources that the caller had watched before count. A single restarted client may send as many lists, but causes no
   * storm.
   */
  stormRelists: 40,
  stormCallers: 5,
  stormMs: 10_000,
  /**
   * Maximum size in bytes of the copy of a write to a lease. A Lease is about 1 KiB long. A ConfigMap that holds a
   * leader lease in an annotation is a little longer.
   */
  leaseBodyBytes: 16 * KiB,
} as const;

export type LedgerRequest = {
  readonly caller: Caller;
  readonly client: Client;
  readonly info: RequestInfo;
  /** The client's own `:path`. */
  readonly target: string;
  readonly auditId: string;
};

/**
 * A fact that a worker process reports to its parent process. The parent's ledger tap judges the facts of all workers.
 */
export type LedgerFact =
  | ({ readonly of: "lease"; readonly caller: CallerName; readonly auditId: string } & Omit<
      LeaseWrite,
      "caller"
    >)
  | { readonly of: "relist"; readonly caller: CallerName; readonly resource: string }
  | { readonly of: "pod"; readonly namespace: string; readonly name: string; readonly isDeleted: boolean };

const writes: ReadonlySet<string> = new Set(["create", "update", "patch"]);
const leaseResources: ReadonlyMap<string, LeaseName["resource"]> = new Map([
  ["coordination.k8s.io/leases", "leases"],
  ["/configmaps", "configmaps"],
  ["/endpoints", "endpoints"],
]);

function valueOf(fields: readonly Field[], wanted: Role): string {
  for (const field of fields) if (field.role === wanted) return field.value;
  return "";
}

function assertedSubject({ user }: Asserted): Subject {
  const name = user.slice(0, limits.subjectChars).replace(/[^\x21-\x7e]/g, "?");
  const node = name.startsWith("system:node:") ? name.slice("system:node:".length) : "";
  return { name, source: "vouched", namespace: "", pod: "", node };
}

/**
 * Copies a request's body, up to a limit, and passes the copy on when a backend has accepted the request. Only requests
 * that show which client holds a leader lease, or which pods are gone, are copied.
 */
export class BodyCopy {
  readonly #taken: (body: Buffer) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  #isOver = false;

  /** `taken` is called once, with the whole copied body. */
  constructor(taken: (body: Buffer) => void) {
    this.#taken = taken;
  }

  add(bytes: Buffer, start: number, end: number): void {
    this.#length += end - start;
    if (this.#length > ledgerTapLimits.leaseBodyBytes) this.#drop();
    else if (!this.#isOver && end > start) this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
  }

  answered(status: number): void {
    if (this.#isOver || status < 200) return;
    const body = Buffer.concat(this.#pieces);
    this.#drop();
    if (status < 300) this.#taken(body);
  }

  #drop(): void {
    this.#isOver = true;
    this.#pieces = [];
  }
}

export class LedgerTap {
  readonly ledger: Ledger;
  readonly leases = new Leases();
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #storm = new RelistStorm();
  readonly #tell: ((fact: LedgerFact) => void) | undefined;
  /** The callers that workers report. The workers themselves count these callers' requests. */
  readonly #elsewhere: Ledger;

  /**
   * `tell`: set in a worker, whose parent judges leases and detects relist storms. Undefined: this process does both.
   */
  constructor(clock: Clock, journal: Journal, tell?: (fact: LedgerFact) => void) {
    this.#clock = clock;
    this.#journal = journal;
    this.#tell = tell;
    this.ledger = new Ledger(clock.now());
    this.#elsewhere = new Ledger(clock.now());
  }

  /** Records what a worker has reported. */
  learn(fact: LedgerFact): void {
    const now = this.#clock.now();
    if (fact.of === "pod") return this.#podSeen(fact.namespace, fact.name, fact.isDeleted);
    const caller = this.#elsewhere.of(fact.caller, now);
    if (fact.of === "relist") return this.#relisted(caller, fact.resource);
    const { name, record, session, isCreate, auditId } = fact;
    this.#judgeLease({ name, record, caller, session, isCreate }, auditId);
  }

  /** Returns the caller that sends the request. `word`: its bearer token, or the identity that the proxy asserts. */
  callerOf(client: Client, fields: readonly Field[], word: Bearer | Asserted | undefined): Caller {
    const memo = client.caller;
    const userAgent = valueOf(fields, role.userAgent);
    const isAlike = memo.word === word && memo.userAgent === userAgent;
    // If the token or the identity is the same object as in the connection's previous request, the caller is the same.
    // Otherwise the caller is looked up.
    if (isAlike && word !== undefined && memo.caller?.isForgotten === false) return memo.caller;
    const { address } = client;
    const subject =
      word !== undefined && "user" in word
        ? assertedSubject(word)
        : subjectOf(valueOf(fields, role.authorization));
    const caller = this.ledger.of({ subject, agent: agentOf(userAgent), address }, this.#clock.now());
    // The connection keeps this caller as long as it lives, so a caller with an overlong User-Agent is not kept (A26).
    if (userAgent.length <= limits.targetChars) client.remember({ word, userAgent, caller });
    return caller;
  }

  /** Records that a caller requests a watch or a list. */
  asked({ caller, info, target }: LedgerRequest, watch: WatchContext | undefined): void {
    if (watch !== undefined) {
      if (caller.watched(watch.resource, watch.start !== "exact")) this.#relisted(caller, watch.resource);
    } else if (info.verb === "list" && info.kind === "plain" && info.isResource) {
      const query = queryOf(target);
      const resource = resourceKey(info);
      // A request for the next page belongs to the same list, and does not count as another one.
      if (firstValue(query, "continue") === undefined && caller.listed(resource))
        this.#relisted(caller, resource);
    }
  }

  /**
   * Returns an object that copies the request's body. Returns undefined for nearly all requests, because the ledger
   * needs only the bodies of writes to leases and of some writes to pods.
   */
  copyFor(request: LedgerRequest): BodyCopy | undefined {
    const { info } = request;
    if (!info.isResource || info.kind !== "plain") return undefined;
    if (info.resource === "pods" && info.group === "") return this.#podCopy(request);
    if (info.subresource !== "" || !writes.has(info.verb)) return undefined;
    const resource = leaseResources.get(resourceKey(info));
    if (resource === undefined) return undefined;
    return new BodyCopy((body) => this.#written(request, resource, body));
  }

  #podCopy({ info, target }: LedgerRequest): BodyCopy | undefined {
    const { namespace, name, verb, subresource } = info;
    if (verb === "delete" && subresource === "") {
      const isNow = firstValue(queryOf(target), "gracePeriodSeconds") === "0";
      return new BodyCopy((body) => {
        if (isNow || isImmediateDelete(body)) this.#podSeen(namespace, name, true);
      });
    }
    // A pod exists if the scheduler binds it, or if a kubelet writes its status.
    const isThere = (subresource === "status" || subresource === "binding") && writes.has(verb);
    return isThere ? new BodyCopy(() => this.#podSeen(namespace, name, false)) : undefined;
  }

  #podSeen(namespace: string, name: string, isDeleted: boolean): void {
    const { pods } = this.leases;
    if (isDeleted) pods.deleted(namespace, name, this.#clock.now());
    else pods.exists(namespace, name);
    this.#tell?.({ of: "pod", namespace, name, isDeleted });
  }

  #written(
    { caller, client, info, auditId }: LedgerRequest,
    resource: LeaseName["resource"],
    body: Buffer,
  ): void {
    const record = leaseRecordIn(body, resource === "leases");
    if (record === undefined) return;
    const name = { resource, namespace: info.namespace, name: info.name || record.name };
    const session = client.alpn === "h2" ? client.port : 0;
    const isCreate = info.verb === "create";
    this.#judgeLease({ name, record, caller, session, isCreate }, auditId);
    this.#tell?.({ of: "lease", caller: nameOf(caller), name, record, session, isCreate, auditId });
  }

  /**
   * Records the lease. A suspect write is journaled only by the parent process. A worker records leases for another
   * purpose: when it moves watches, the watches of lease holders are among the first.
   */
  #judgeLease(write: LeaseWrite, auditId: string): void {
    const suspicion = this.leases.written(write, this.#clock.now());
    if (suspicion !== undefined && this.#tell === undefined)
      this.#journalLease(suspicion, write.caller, auditId);
  }

  #journalLease(
    { lease, judgement }: LeaseReport,
    { subject, agent, address }: Caller,
    auditId: string,
  ): void {
    this.#journal.write({
      kind: "lease.suspect",
      ...judgement,
      lease: lease.text,
      holder: lease.holder,
      client: address,
      subject: subject.name,
      userAgent: agent,
      auditId,
    });
  }

  #relisted(caller: Caller, resource: string): void {
    if (this.#tell !== undefined) return this.#tell({ of: "relist", caller: nameOf(caller), resource });
    const storm = this.#storm.take(caller, resource, this.#clock.now());
    if (storm === undefined) return;
    const { stormRelists: limit, stormMs: withinMs } = ledgerTapLimits;
    this.#journal.write({ kind: "relist_storm.detected", limit, withinMs, ...storm });
  }
}

function nameOf({ subject, agent, address }: Caller): CallerName {
  return { subject, agent, address };
}

/** A list of a resource that the same caller had watched before. */
type Relist = { readonly caller: Caller; readonly resource: string; readonly at: number };

type Storm = {
  readonly relists: number;
  readonly resource: string;
  readonly clients: readonly string[];
};

export class RelistStorm {
  /** The latest relist for each caller and resource, oldest first; at most `stormRelists`. */
  #relists: Relist[] = [];
  #reportedAt = Number.NEGATIVE_INFINITY;

  /**
   * Records a relist. Returns the present relist storm, at most once in `stormMs`; undefined: there is no storm, or it
   * was returned recently.
   */
  take(caller: Caller, resource: string, at: number): Storm | undefined {
    const isOther = (one: Relist): boolean => one.caller !== caller || one.resource !== resource;
    this.#relists = this.#relists.filter((one) => at - one.at < ledgerTapLimits.stormMs && isOther(one));
    this.#relists.push({ caller, resource, at });
    if (this.#relists.length > ledgerTapLimits.stormRelists) this.#relists.shift();
    const callers = new Set(this.#relists.map((one) => one.caller));
    const isStorm =
      this.#relists.length >= ledgerTapLimits.stormRelists && callers.size >= ledgerTapLimits.stormCallers;
    if (!isStorm || at - this.#reportedAt < ledgerTapLimits.stormMs) return undefined;
    this.#reportedAt = at;
    const clients = new Set(Array.from(callers, ({ address, agent }) => `${address} ${agent}`));
    return {
      relists: this.#relists.length,
      resource: mostOf(this.#relists),
      clients: [...clients].slice(0, limits.incidentClients / 4),
    };
  }
}

function mostOf(relists: readonly Relist[]): string {
  const counts = new Map<string, number>();
  for (const { resource } of relists) counts.set(resource, (counts.get(resource) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? "";
}

/**
 * Returns the program's name in a User-Agent (RFC 9110 §10.1.5), so that all builds and hosts of a program count as
 * one: "kubelet" for "kubelet/v1.36.1 (linux/amd64)"; "unknown" if there is none. client-go's controllers append a
 * component (`.../leader-election`), which is kept: it distinguishes two clients of one controller.
 */
export function agentOf(userAgent: string): string {
  const product = /^[^\s/()]+/.exec(clipped(userAgent, limits.userAgentChars))?.[0] ?? "";
  const clean = product.slice(0, limits.agentChars).replace(/[^\w.-]/g, "_");
  if (clean === "") return "unknown";
  return userAgent.endsWith("/leader-election") ? `${clean}/leader-election` : clean;
}

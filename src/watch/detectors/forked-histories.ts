/**
 * Finds a backend whose etcd has a history that differs from the one that clients have seen, for example after etcd
 * was restored from a backup. The proxy regularly requests a list of one object from each ready backend. The apiserver
 * reads this list from etcd. If the list's version is older than a version that some backend delivered before the
 * request, the list's backend has another history. Events can prove this, too: one backend's stream skips an event
 * that another backend has delivered.
 *
 * The history with the greatest version that clients have seen counts as the right one. A backend with another history
 * counts as dead until its lists show the right history again, and lists of a ready backend confirm this (`#confirm`).
 * Any process with a client that may list can confirm it. If no process can for `historyUncheckedMs`, an incident says
 * so, and the backend is used again as soon as no other one is ready.
 * If a watch got events of the wrong history, the proxy resets it, so that client-go lists again. Other watches move to
 * another backend. If no backend has the right history any more, the other history becomes the right one.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { Evidence } from "../../health/evidence.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import type { WatchSession } from "../session/watch-session.ts";
import { type ListAnswer, listAs } from "./list-request.ts";

type HistoriesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly caches: CacheTracker;
  readonly migrations: Migrations;
  readonly guard: () => { forgetSeen(): void };
};

type Question = {
  readonly watch: WatchSession;
  readonly resource: string;
  /** Newest version of the resource that clients had received before the list was requested. */
  readonly seen: string;
  /** True if clients have received no newer version of any other resource that can be listed. */
  readonly isNewest: boolean;
};

type Seen = { readonly name: string; readonly seen: string };

/**
 * The resource whose list or event has shown that the backend has another history. Other resources may be equal in both
 * histories.
 */
type Proof = {
  readonly resource: string;
  /**
   * True if a later list was at least as new as the version that clients have received, or if no client can list the
   * resource.
   */
  isRefuted: boolean;
  /** If an event is the proof: clock reading until which no list can refute the proof. Otherwise 0. */
  readonly until: number;
  /** How often in a row `#confirm` has found that the backend has the right history again. */
  confirmations: number;
  /** Number of runs of `#confirm` so far. The number decides which ready backend the next run uses. */
  runs: number;
};

/** One run of `#confirm`. `at`: clock reading at its start. `versions`: the versions of its lists, in turn. */
type Run = {
  readonly backend: string;
  readonly ready: string;
  readonly proof: Proof;
  readonly question: Question;
  readonly at: number;
  readonly versions: string[];
};

function proofOf(resource: string, until = 0): Proof {
  return { resource, isRefuted: false, until, confirmations: 0, runs: 0 };
}

export class ForkedHistories extends Interval {
  readonly #parts: HistoriesParts;
  readonly #listDueAt = new Map<string, number>();
  readonly #skippedUntil = new Map<string, number>();
  readonly #proofByBackend = new Map<string, Proof>();
  /** Backends for which a run of `#confirm` has not ended. Each run ends, because each of its lists has a timeout. */
  readonly #confirming = new Set<string>();
  /** By backend with another history: clock reading of its latest check by any process, and whether it is overdue. */
  readonly #checks = new Map<string, { at: number; isOverdue: boolean }>();
  #questions = 0;
  /**
   * Clock reading since which some backend has another etcd history and no backend is ready; -1: a backend is ready, or
   * no backend has another history.
   */
  #aloneSince = -1;

  constructor(parts: HistoriesParts) {
    super(parts.clock, watchLimits.historyLookMs, () => this.#look());
    this.#parts = parts;
    parts.migrations.anomalies.onUnlike = (resource, ours, theirs, version) =>
      this.#unlike(resource, ours, theirs, version);
  }

  /** Requests a list from a backend as soon as it becomes ready, before many watches move there. */
  returned(backend: string): void {
    this.#listDueAt.delete(backend);
    this.#askIfDue(backend);
  }

  #look(): void {
    const { backends, clock } = this.#parts;
    const { views } = backends;
    for (const name of this.#listDueAt.keys())
      if (!views.some((view) => view.name === name)) this.#forget(name);
    for (const { name, state } of views) {
      const { isForked } = backends.factsOf(name);
      if (state === "ready" || isForked) this.#askIfDue(name);
      if (isForked) this.#seeChecks(name);
      else this.#checks.delete(name);
    }
    this.#acceptIfAlone(clock.now());
  }

  /** Called when a process of the proxy has checked the history of a backend that has another one. */
  checked(backend: string): void {
    this.#checks.set(backend, { at: this.#parts.clock.now(), isOverdue: false });
  }

  #seeChecks(backend: string): void {
    const { clock, journal } = this.#parts;
    const check = this.#checks.get(backend);
    if (check === undefined) return this.checked(backend);
    const uncheckedMs = clock.now() - check.at;
    if (check.isOverdue || uncheckedMs < watchLimits.historyUncheckedMs) return;
    check.isOverdue = true;
    journal.write({ kind: "history.unchecked", backend, uncheckedMs });
  }

  #askIfDue(backend: string): void {
    const now = this.#parts.clock.now();
    if ((this.#listDueAt.get(backend) ?? 0) > now) return;
    const question = this.#question(now, !this.#listDueAt.has(backend), this.#proofByBackend.get(backend));
    const context = question?.watch.listed();
    if (question === undefined || context === undefined) return;
    this.#listDueAt.set(backend, now + watchLimits.historyAnswerMs);
    const { watch, resource } = question;
    const onAnswer = ({ status, version }: ListAnswer): void =>
      version === "" ? this.#notListed(backend, resource, status) : this.#listed(backend, question, version);
    listAs(watch, { backend, context, onAnswer }, this.#parts);
  }

  /**
   * Chooses the resource to list. A backend's first list is of the resource with the newest version, because a
   * comparison with that version is the most likely to show another history. After this, every second list is of that
   * resource. The lists between them go through all resources in turn, because the resource with the newest version may
   * be stored in an etcd of its own. If there is proof against the backend, the lists are of the proof's resource until
   * they have refuted the proof, and then of the resource with the newest version.
   */
  #question(now: number, isFirst: boolean, proof: Proof | undefined): Question | undefined {
    const readable = this.#readable(now);
    if (proof?.isRefuted === false) {
      const own = this.#firstListable(
        readable.filter(({ name }) => name === proof.resource),
        false,
      );
      if (own !== undefined) return own;
      // No client that watches the proof's resource may list it any more, so the proof cannot be checked.
      proof.isRefuted = true;
    }
    this.#questions += 1;
    const isNewest = isFirst || proof !== undefined || this.#questions % 2 === 0;
    const at = Math.floor(this.#questions / 2) % Math.max(1, readable.length);
    const inTurn = isNewest
      ? readable.toSorted((a, b) => compareVersions(b.seen, a.seen))
      : [...readable.slice(at), ...readable.slice(0, at)];
    return this.#firstListable(inTurn, isNewest);
  }

  #readable(now: number): readonly Seen[] {
    const { migrations, caches } = this.#parts;
    for (const [resource, until] of this.#skippedUntil) if (until <= now) this.#skippedUntil.delete(resource);
    return Array.from(migrations.watches.resources, (name) => ({ name, seen: caches.seen(name) })).filter(
      ({ name, seen }) => seen !== "" && !this.#skippedUntil.has(name),
    );
  }

  #firstListable(resources: readonly Seen[], isNewest: boolean): Question | undefined {
    for (const { name: resource, seen } of resources.slice(0, watchLimits.historyTries)) {
      const watch = this.#askerOf(resource);
      if (watch !== undefined) return { watch, resource, seen, isNewest };
    }
    return undefined;
  }

  #askerOf(resource: string): WatchSession | undefined {
    let tries: number = watchLimits.historyTries;
    for (const watch of this.#parts.migrations.watches.of(resource)) {
      if (!watch.isExpired && watch.listed() !== undefined) return watch;
      tries -= 1;
      if (tries === 0) break;
    }
    return undefined;
  }

  /** Called if a list has returned no version. If the backend answered, another resource is listed next. */
  #notListed(backend: string, resource: string, status: number): void {
    const now = this.#parts.clock.now();
    if (status > 0) this.#skippedUntil.set(resource, now + watchLimits.historyUnreadMs);
    this.#listDueAt.set(backend, now + watchLimits.historyLookMs);
  }

  #listed(backend: string, question: Question, version: string): void {
    const { clock, backends } = this.#parts;
    const { resource, seen } = question;
    const isForked = compareVersions(version, seen) < 0;
    const isKnown = backends.factsOf(backend).isForked;
    this.#listDueAt.set(
      backend,
      clock.now() + (isForked || isKnown ? watchLimits.historyLookMs : watchLimits.historyMs),
    );
    if (isForked) this.#proofByBackend.set(backend, proofOf(resource));
    // Watches leave the backend after each list and not only after the first, because a request that was pending at
    // the last list may have become a watch on this backend.
    if (isForked) this.#leave(backend, version);
    if (isForked) this.#proved(backend, { kind: "history", isForked, resource, version, seen });
    if (!isForked && isKnown && this.#isRefuted(backend, question)) this.#confirm(backend, question);
  }

  /** Reports the proof, and repeats it now and then, so that all processes know that the backend is checked. */
  #proved(backend: string, evidence: Evidence): void {
    const { clock, backends } = this.#parts;
    const check = this.#checks.get(backend);
    const isDue = check === undefined || clock.now() - check.at > watchLimits.historyUncheckedMs / 10;
    if (backends.factsOf(backend).isForked && !isDue) return;
    backends.learn(backend, evidence);
    this.checked(backend);
  }

  /**
   * Requests the same list from a ready backend, from `backend`, and from the ready backend again. Within one etcd,
   * none of these lists is older than the list before it. Otherwise `backend` still has another history. The
   * confirmation is needed because new writes may raise the versions of another history above those that clients have
   * seen. Each run asks the next ready backend, because one ready backend may be unable to answer this list. Without a
   * ready backend, the other history is not accepted here, but by `#acceptIfAlone`. A process that has no proof, because
   * it started later, confirms it as well: the process with the proof may be gone.
   */
  #confirm(backend: string, question: Question): void {
    const proof = this.#proofByBackend.get(backend) ?? proofOf(question.resource);
    this.#proofByBackend.set(backend, proof);
    if (this.#confirming.has(backend)) return;
    const ready = this.#parts.backends.views.filter(({ state }) => state === "ready");
    const peer = ready[proof.runs % Math.max(1, ready.length)];
    if (peer === undefined) return;
    proof.runs += 1;
    this.#confirming.add(backend);
    const at = this.#parts.clock.now();
    this.#confirmNext({ backend, ready: peer.name, proof, question, at, versions: [] });
  }

  #confirmNext(run: Run): void {
    const { backend, ready, proof, versions } = run;
    const { watch } = run.question;
    const context = watch.listed();
    if (context === undefined) {
      this.#confirming.delete(backend);
      return;
    }
    const onAnswer = ({ version }: ListAnswer): void => {
      const isCurrent = this.#proofByBackend.get(backend) === proof;
      if (version !== "") versions.push(version);
      if (version !== "" && isCurrent && versions.length < 3) return this.#confirmNext(run);
      this.#confirming.delete(backend);
      if (isCurrent && versions.length === 3) this.#confirmed(run);
    };
    listAs(watch, { backend: versions.length === 1 ? backend : ready, context, onAnswer }, this.#parts);
  }

  /**
   * At least `historyConfirmations` runs must confirm the history, because the version of another history may lie
   * between two versions of the right one by chance. A run that took long does not count, because the chance is greater
   * then.
   */
  #confirmed({ backend, proof, question, at, versions }: Run): void {
    const { resource, seen } = question;
    const [before = "", version = "", after = ""] = versions;
    if (compareVersions(version, before) < 0 || compareVersions(after, version) < 0) {
      this.#proofByBackend.set(backend, proofOf(resource));
      return;
    }
    if (this.#parts.clock.now() - at > watchLimits.historyConfirmMs) return;
    proof.confirmations += 1;
    if (proof.confirmations < watchLimits.historyConfirmations) return;
    this.#proofByBackend.delete(backend);
    this.#parts.backends.learn(backend, { kind: "history", isForked: false, resource, version, seen });
  }

  /**
   * True if two later lists have refuted the proof that the backend has another history. One is a list of the resource
   * that provided the proof. The other is a list of the resource with the newest version.
   */
  #isRefuted(backend: string, { resource, isNewest }: Question): boolean {
    const proof = this.#proofByBackend.get(backend);
    if (proof === undefined) return true;
    if (resource === proof.resource) proof.isRefuted = true;
    return proof.isRefuted && isNewest && this.#parts.clock.now() >= proof.until;
  }

  #forget(backend: string): void {
    this.#listDueAt.delete(backend);
    this.#checks.delete(backend);
    this.#proofByBackend.delete(backend);
  }

  /**
   * Called if the events of two ready backends differ. The history of `ours` is the right one, because the client has
   * received the events of `ours`.
   */
  #unlike(resource: string, ours: string, theirs: string, seen: string): void {
    const { backends, caches, clock } = this.#parts;
    if (backends.factsOf(theirs).isForked || backends.factsOf(ours).state !== "ready") return;
    const version = caches.of(theirs, resource).version;
    const now = clock.now();
    this.#proofByBackend.set(theirs, proofOf(resource, now + watchLimits.historyUnlikeMs));
    this.#leave(theirs, version);
    backends.learn(theirs, { kind: "history", isForked: true, resource, version, seen });
    this.#listDueAt.set(theirs, now + watchLimits.historyMs);
  }

  /**
   * Makes all watches leave the backend within one turn of the event loop, because an event that arrived between two
   * turns could be of either history. `version`: newest version of the wrong history.
   */
  #leave(backend: string, version: string): void {
    const { watches } = this.#parts.migrations;
    for (const resource of Array.from(watches.resources))
      for (const watch of Array.from(watches.of(resource))) watch.leaveHistory(backend, version);
  }

  /** Accepts another history if all backends have it, or if no backend was ready for `historyAloneMs`. */
  #acceptIfAlone(now: number): void {
    const { backends } = this.#parts;
    const { views } = backends;
    const others = views.filter(({ name }) => backends.factsOf(name).isForked);
    if (others.length === 0 || views.some(({ state }) => state === "ready")) {
      this.#aloneSince = -1;
      return;
    }
    if (this.#aloneSince < 0) this.#aloneSince = now;
    const isUnchecked = others.every(({ name }) => this.#checks.get(name)?.isOverdue === true);
    const isOver = isUnchecked || now - this.#aloneSince >= watchLimits.historyAloneMs;
    if (others.length < views.length && !isOver) return;
    for (const { name } of others) this.#accept(name);
    this.#aloneSince = -1;
  }

  #accept(backend: string): void {
    this.#forgetSeen(backend);
    const nothing = { resource: "", version: "", seen: "" };
    this.#parts.backends.learn(backend, { kind: "history", isForked: false, ...nothing });
    this.#forgetHistory();
  }

  /**
   * Called if another process of the proxy has judged a backend's etcd history. If the history is wrong, the watches
   * of this process leave the backend. If the other process has accepted it as the right one, all clients of this
   * process list again.
   */
  judged(
    backend: string,
    { isForked, resource, version, seen }: Extract<Evidence, { kind: "history" }>,
  ): void {
    if (isForked) this.#leave(backend, version);
    if (isForked) this.checked(backend);
    if (isForked && !this.#proofByBackend.has(backend)) this.#proofByBackend.set(backend, proofOf(resource));
    if (isForked) return;
    this.#proofByBackend.delete(backend);
    if (seen !== "") return;
    this.#forgetSeen(backend);
    this.#forgetHistory();
  }

  #forgetSeen(backend: string): void {
    this.#proofByBackend.delete(backend);
    this.#parts.caches.forgetSeen();
    this.#parts.guard().forgetSeen();
  }

  /**
   * Makes the clients of all watches list again, because they have received versions that are in no backend's history
   * any more.
   */
  #forgetHistory(): void {
    const { clock, migrations } = this.#parts;
    const all = Array.from(migrations.watches.resources, (name) => Array.from(migrations.watches.of(name)));
    inSlices(clock, all.flat(), (watch) => watch.forgetHistory());
  }
}

/**
 * READ FIRST: one exchange from head to end. The steps are in the order in which they happen, one file each:
 *
 *     listen -> classify -> identify -> choose -> dial -> relay -> respond
 *
 * When a backend falls ill on the way, `hedge` asks another, `hold` keeps who can go nowhere, and a watch goes on by
 * itself (`watching`); ARCHITECTURE.md has the order in which to read those.
 *
 * A request arrives here from `downstream.ts` (HTTP/2) or `h1.ts` (HTTP/1.1) with the side to answer on; whoever
 * called feeds the returned exchange with what the client sends from then on.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { faulted } from "../../events/faulted.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { Side, SideOwner } from "../../h2/core/side.ts";
import type { Backends } from "../../health/backends.ts";
import type { Probers } from "../../health/probers.ts";
import type { Origins } from "../../kube/api-origin.ts";
import { classify, isObjectRead, isOwnApi, type RequestInfo } from "../../kube/request-info.ts";
import { decoderFor } from "../../watch/codec/framing.ts";
import type { Migrations } from "../../watch/migration/migrations.ts";
import type { CacheTracker } from "../../watch/progress/cache-progress.ts";
import {
  answerOf,
  firstFields,
  resourceKey,
  type WatchContext,
  watchContextOf,
  withBookmarks,
  withPath,
} from "../../watch/session/watch-context.ts";
import { WatchSession } from "../../watch/session/watch-session.ts";
import type { Admission, Entry } from "../admission/admission.ts";
import type { Client } from "../context/client.ts";
import { userAgentOf } from "../context/client-key.ts";
import { identify } from "../context/identify.ts";
import { longHeadBytes, type Order } from "../context/order.ts";
import type { Vouched } from "../identity/identity.ts";
import { type Credential, isProvenAt, type Trust } from "../identity/trust.ts";
import { ListSide } from "../observe/list-side.ts";
import { type BodyCopy, copied, heard } from "../observe/lock-side.ts";
import type { Loops, Replay } from "../observe/loops.ts";
import type { Talk } from "../observe/talk.ts";
import type { Asking, Recall, TimeTravel } from "../observe/time-travel.ts";
import { choose, elsewhere } from "../upstream/choose.ts";
import { dial } from "../upstream/dial.ts";
import type { Leg } from "../upstream/leg.ts";
import type { PoolKey } from "../upstream/pool-key.ts";
import type { PoolSet } from "../upstream/pool-set.ts";
import { isShutdown } from "../upstream/refusal.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Hedges } from "./hedge.ts";
import type { Hold } from "./hold.ts";
import type { OriginAsks } from "./origin-asks.ts";
import { type AnsweredBy, Exchange, type ExchangeEnd, type ExchangeOwner } from "./relay.ts";
import { respond } from "./respond.ts";

/** What one path has; `hedges` and `hold` are shared by all its requests. */
export type ServeParts = {
  readonly probers: Pick<Probers, "hurry"> | undefined;
  readonly buffered: Buffered;
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly trust: Trust;
  readonly admission: Admission;
  readonly exchanges: Exchanges;
  readonly journal: Journal;
  readonly hedges: Hedges;
  readonly hold: Hold;
  readonly migrations: Migrations;
  readonly caches: CacheTracker;
  readonly timeTravel: TimeTravel;
  readonly origins: Origins;
  readonly originAsks: OriginAsks;
  readonly replays: Loops;
  readonly talk: Talk;
  /** Are bookmarks asked for on behalf of clients that do not? */
  readonly bookmarks: "always" | "as-asked";
};

/** `end`: no body follows the head. */
export type Serve = (request: RequestHead, end: boolean, side: Side, client: Client) => SideOwner;

/** Makes the way of every request, from its head to an exchange that is under way. */
export function createServe(parts: ServeParts): Serve {
  return (request, end, side, client) => {
    const info = classify(request.method, request.path);
    const identified = identify(request, client, parts.clock.wall());
    const isRefused = identified instanceof Failure;
    const { fields, auditId, vouched } = isRefused ? unknown(request) : identified;
    const credential = credentialOf(parts, request, client, vouched);
    const caller = parts.talk.callerOf(client, request.fields, vouched ?? credential);
    const asking = { info, target: request.path, client, caller, fields };
    const recall = isRefused || !end ? undefined : parts.timeTravel.recall(asking);
    const asked = end ? watchAsked(parts, asking, recall) : undefined;
    const order: Order = {
      client,
      caller,
      at: parts.clock.now(),
      resource: asked === undefined ? "" : asked.resource,
      method: request.method,
      kind: info.kind,
      verb: info.verb,
      isObjectRead: isObjectRead(info),
      isOwn: isOwnApi(info, request.path),
      fields: fieldsOf(fields, asked, recall),
      auditId,
      isBodiless: end,
      vouched,
    };
    const course = new Course(parts, { credential, info, asked, recall });
    course.avoid(info);
    const down = readSide(side, recall, asked);
    const copy = isRefused ? undefined : talkOf(parts, order, asking, asked);
    const exchange = new Exchange(order, heard(down, copy), course, parts.buffered);
    parts.exchanges.add(exchange);
    exchange.headBytes = longHeadBytes(request.fields);
    parts.buffered.add(exchange.headBytes);
    try {
      if (isRefused) course.refuse(exchange, identified);
      else course.place(exchange);
    } catch (error) {
      // It may be under way already: left alone it would run on with no stream that could end it.
      exchange.legFaulted(error);
    }
    return copied(exchange, copy);
  };
}

/** Of a list whose version is to be read in passing. */
function readSide(side: Side, recall: Recall | undefined, asked: WatchContext | undefined): Side {
  const isRead = recall !== undefined && asked === undefined;
  return isRead ? new ListSide(side, (version) => recall.shown(version)) : side;
}

/** A bearer beside a certificate is not sent, and proves nothing. */
function credentialOf(
  { trust }: ServeParts,
  request: RequestHead,
  client: Client,
  vouched: Vouched | undefined,
): Credential {
  return vouched === undefined ? trust.credentialOf(request, client.credential) : undefined;
}

/** Of somebody who is refused: nothing goes up. */
function unknown({ fields }: RequestHead): Pick<Order, "fields" | "auditId" | "vouched"> {
  return { fields, auditId: "", vouched: undefined };
}

/** Undefined for anything else. */
function watchAsked(
  { clock, bookmarks, origins }: ServeParts,
  asking: Asking,
  recall: Recall | undefined,
): WatchContext | undefined {
  if (asking.info.kind !== "watch" || asking.target.length > limits.changedTargetBytes) return undefined;
  const target = recall?.target ?? asking.target;
  const asked = watchContextOf(target, asking.info, clock.now(), { origin: origins.of(asking.info), recall });
  return bookmarks === "always" ? withBookmarks(asked, asking.fields) : asked;
}

/** What the request shows of who talks and who holds the locks; the copy that is to be made of its body. */
function talkOf(
  { talk }: ServeParts,
  { caller, auditId, client }: Order,
  { info, target }: Asking,
  watch: WatchContext | undefined,
): BodyCopy | undefined {
  const asker = { caller, client, info, target, auditId };
  if (watch !== undefined || info.verb === "list") talk.asked(asker, watch);
  return talk.copyFor(asker);
}

/** What goes up first. */
function fieldsOf(
  fields: readonly Field[],
  asked: WatchContext | undefined,
  recall: Recall | undefined,
): readonly Field[] {
  if (recall?.isDemanded === true) return withPath(fields, recall.target);
  return asked === undefined ? fields : firstFields(asked, fields);
}

const nobody: readonly string[] = [];

const noneAnswers = new Failure("no-backend", "proxy", "No backend answers");

type CourseOptions = {
  readonly credential: Credential;
  readonly info: RequestInfo;
  readonly asked: WatchContext | undefined;
  readonly recall: Recall | undefined;
};

/** The course of one exchange from backend to backend, until one answers or none is left. */
class Course implements ExchangeOwner {
  readonly #parts: ServeParts;
  readonly #credential: Credential;
  readonly #info: RequestInfo;
  /** Of a watch that may go on elsewhere. */
  readonly #asked: WatchContext | undefined;
  /** What its client had seen; undefined when that does not matter. */
  readonly #recall: Recall | undefined;
  /** From the time that it is answered, if it is a watch from a version. */
  #replay: Replay | undefined;
  /** Backends that stand still with the resource, or have forgotten the version: asked when nobody else is there. */
  #avoided: readonly string[] = nobody;
  #heldUntil = 0;
  /** While its bearer is not proven: its place among those that are not. */
  #entry: Entry | undefined;
  /** When it was given that place, if it had to wait for it: until then it was nobody's attempt. */
  #placedAt = 0;

  constructor(parts: ServeParts, { credential, info, asked, recall }: CourseOptions) {
    this.#parts = parts;
    this.#info = info;
    this.#asked = asked;
    this.#recall = recall;
    this.#credential = credential;
  }

  avoid(info: RequestInfo): void {
    const { caches, clock } = this.#parts;
    if (!caches.isClear) this.#avoided = caches.stalledWith(resourceKey(info), clock.now());
    const version = this.#asked?.request.version ?? "";
    const refusing = version === "" ? nobody : caches.refusing(resourceKey(info), version);
    if (refusing.length > 0) this.#avoided = [...this.#avoided, ...refusing];
  }

  place(exchange: Exchange): void {
    if (!this.#isAdmitted(exchange)) return;
    const { backends, pools } = this.#parts;
    const { client } = exchange.order;
    if (backends.areAllSilent) return this.#hold(exchange, noneAnswers);
    const loads = (name: string): number => pools.weightOf(name);
    const tried = this.#avoided === nobody ? exchange.legs.tried : [...exchange.legs.tried, ...this.#avoided];
    const backend = choose({ views: backends.views, loads, bound: client.backend, tried });
    if (backend instanceof Failure) return this.#hold(exchange, backend);
    client.backend = backend;
    dial(pools, exchange.legs.ask(backend));
  }

  /** False if the request waits for a place among those of the unproven, and is placed later, or was refused one. */
  #isAdmitted(exchange: Exchange): boolean {
    const { order } = exchange;
    // Nearly every request is decided here.
    if (order.vouched !== undefined || isProvenAt(this.#credential, order.at)) return true;
    if (this.#entry?.state === "open" || this.poolKey(exchange).trust !== "unproven") return true;
    this.#entry = this.#parts.admission.enter({
      address: order.client.address,
      bearer: this.#credential?.key ?? "",
      place: () => {
        this.#placedAt = this.#parts.clock.now();
        if (!exchange.isEnded) this.place(exchange);
      },
      refuse: () => this.#turnAway(exchange),
    });
    if (this.#entry === undefined) this.#turnAway(exchange);
    return this.#entry?.state === "open";
  }

  #turnAway(exchange: Exchange): void {
    const message = "Too many requests are under way with credentials that no backend has accepted yet";
    if (!exchange.isEnded) this.failed(exchange, new Failure("overload", "proxy", message));
  }

  /** Nobody can be asked now: whoever comes back in time is. While all are silent the wait has a bound of its own (D14). */
  #hold(exchange: Exchange, failure: Failure): void {
    const { hold, backends } = this.#parts;
    if (backends.areAllSilent) this.#heldUntil = backends.silentUntil;
    else if (this.#heldUntil === 0) this.#heldUntil = hold.until;
    const place = (): void => {
      if (failure === noneAnswers) this.#heldUntil = 0;
      if (!exchange.isEnded) this.place(exchange);
    };
    const stop = hold.wait(this.#heldUntil, place, () => this.failed(exchange, failure));
    if (stop === undefined) this.failed(exchange, failure);
    else exchange.stopWaiting = stop;
  }

  poolKey({ order }: Exchange): PoolKey {
    const { pools, trust, admission } = this.#parts;
    const kind = order.kind === "plain" ? "plain" : "long";
    const of = order.vouched?.trust ?? trust.classOf(this.#credential);
    // Their answers bring GOAWAYs, which would send newcomers with a good bearer away from a connection that they share.
    const isApart =
      of === "unproven" && (this.#credential === undefined || admission.isRejected(order.client.address));
    return pools.keyFor({ trust: isApart ? "rejected" : of, kind }, order.client);
  }

  suspected(exchange: Exchange, leg: Leg): void {
    const { backends, hedges } = this.#parts;
    // Attempts that met the silence of all say nothing of any backend (D14).
    if (backends.areAllSilent) exchange.legs.tried = nobody;
    hedges.suspected(exchange, leg);
  }

  refusalHeld(exchange: Exchange): void {
    exchange.stopWaiting = this.#parts.clock.after(limits.refusalHeldMs, () => exchange.settle());
  }

  mayLeave(exchange: Exchange, leg: Leg, refusal: readonly Field[]): boolean {
    const { backends, hedges } = this.#parts;
    const view = backends.views.find(({ name }) => name === leg.backend);
    if (!isShutdown(refusal, leg.isConnectionRetiring || view?.state === "draining")) return false;
    return exchange.legs.tried.length + 1 < limits.attempts && hedges.otherFor(exchange) !== undefined;
  }

  /** Nothing was sent, or it may be sent again: the next backend is asked, a few times at most. */
  replace(exchange: Exchange, failure: Failure, isSentAway = false): void {
    const { clock, backends } = this.#parts;
    const { areAllSilent } = backends;
    // Nor does a GOAWAY: there is one behind each 401, whoever earned it.
    const { legs, order } = exchange;
    const isLimit = legs.tried.length === limits.attempts;
    const since = Math.max(order.at, this.#placedAt);
    if (isSentAway && isLimit && clock.now() - since < limits.sentAwayMs) legs.tried = legs.tried.slice(1);
    if (areAllSilent || exchange.legs.tried.length < limits.attempts) return this.place(exchange);
    if (failure.code !== "backend-lost") return this.failed(exchange, failure);
    // What comes here may be asked again, by its client too: 503 says when, and a watch is not relisted (watch.md §5.1).
    const message = `Asked ${exchange.legs.tried.join(", ")} in vain: ${failure.message}`;
    this.failed(exchange, new Failure("no-backend", "backend", message, failure));
  }

  answered(exchange: Exchange, status: number, by: AnsweredBy): void {
    this.learnt(status);
    exchange.order.client.answered();
    if (this.#entry !== undefined) this.#parts.admission.answered(this.#entry, status);
    this.#parts.hedges.answered(exchange, status, by);
    const recall = this.#recall;
    if (recall === undefined) return;
    recall.backend = exchange.backend;
    if (status === 504 && recall.isDemanded) this.#tooOld(exchange, recall);
  }

  /** The backend is behind: its client's next try goes to another one. */
  #tooOld({ order, backend }: Exchange, recall: Recall): void {
    const { backends, pools } = this.#parts;
    recall.refused();
    const other = elsewhere(backends.views, (name) => pools.weightOf(name), [backend]);
    if (other !== undefined && order.client.backend === backend) order.client.backend = other;
  }

  /** As an apiserver does (GOAWAY behind each 401): only another connection can show another certificate. */
  refuse(exchange: Exchange, failure: Failure): void {
    this.failed(exchange, failure);
    if (failure.code === "unauthenticated") exchange.order.client.sendAway();
  }

  failed(exchange: Exchange, failure: Failure): void {
    const { code, origin, message } = failure;
    const { auditId, client, fields } = exchange.order;
    this.#parts.journal.write({
      kind: "request.failed",
      code,
      origin,
      message,
      auditId,
      client: client.address,
      userAgent: userAgentOf(fields),
      backend: exchange.backend,
    });
    this.answer(exchange, failure);
  }

  answer(exchange: Exchange, failure: Failure): void {
    exchange.refuse(respond(exchange.down, exchange.order.method, failure));
  }

  watchOf(exchange: Exchange, head: readonly Field[], leg: Leg): WatchSession | undefined {
    const { buffered, migrations } = this.#parts;
    const asked = this.#asked;
    const { contentType, contentEncoding } = answerOf(head);
    // A promised length binds this answer to this backend: a client would take any other end for a fault.
    if (head.some((field) => field.role === role.contentLength)) return undefined;
    if (asked === undefined || decoderFor(contentType, contentEncoding, asked.isRepeating) === undefined)
      return undefined;
    this.#replay = this.#parts.replays.answered(asked, exchange.order);
    const { originAsks } = this.#parts;
    asked.origin = originAsks.answered(this.#info, head);
    const watch = new WatchSession({ host: exchange, migrations, buffered, asked, contentType }, leg);
    originAsks.ask(this.#info, asked.origin, watch);
    return watch;
  }

  learnt(status: number): void {
    this.#parts.trust.learn(this.#credential, status);
  }

  faulted(error: unknown): void {
    faulted(this.#parts.journal, error);
  }

  ended(exchange: Exchange, end: ExchangeEnd): void {
    const { exchanges, probers, clock, buffered } = this.#parts;
    buffered.add(-exchange.headBytes);
    if (this.#entry !== undefined) this.#parts.admission.leave(this.#entry);
    exchanges.remove(exchange, end, clock.now());
    this.#replay?.ended();
    // No verdict by itself: it may be a webhook's, or this one stream's. But it is worth asking at once.
    if (end === "backend-gone" || exchange.status >= 500) probers?.hurry(exchange.backend);
  }
}

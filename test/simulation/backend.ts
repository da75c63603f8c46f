/**
 * One simulated apiserver. The embedded demo apiserver answers watches and lists, and planned responses answer requests
 * with a tag. Checks the requests as strictly as the clients check the responses.
 */
import { Apiserver } from "../../demo/apiserver/apiserver.ts";
import type { Store } from "../../demo/objects/store.ts";
import { Field } from "../../src/h2/core/field.ts";
import type { RequestHead } from "../../src/h2/core/fields.ts";
import { FlushScheduler } from "../../src/h2/core/flush-scheduler.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../src/h2/core/stream-writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import type { Stream } from "../../src/h2/session/stream.ts";
import { answerStream } from "./answer-stream.ts";
import type { End } from "./network.ts";
import { astray, digest, payload } from "./payload.ts";
import { headOf, interimHeadOf, type Plan } from "./plan.ts";
import type { Run, Said } from "./run-state.ts";

export type BackendOptions = {
  readonly name: string;
  readonly run: Run;
  readonly store: Store;
  readonly maxStreams: number;
  /** True if each upstream connection belongs to one client. */
  readonly isPrivate: boolean;
};

/** The clients and the trust classes of the requests that arrived on one connection (D2). */
type Carried = { readonly clients: Set<string>; readonly trust: Set<"proven" | "unproven"> };

export class Backend {
  readonly name: string;
  readonly #options: BackendOptions;
  readonly #apiserver: Apiserver;
  readonly #turn: FlushScheduler;
  readonly sessions = new Map<End, Session>();
  readonly #carried = new WeakMap<Session, Carried>();
  /** True while the backend refuses new connections. */
  isDown = false;

  constructor(options: BackendOptions) {
    this.name = options.name;
    this.#options = options;
    const { run, store, name } = options;
    this.#apiserver = new Apiserver({ store, clock: run.world, name });
    this.#turn = new FlushScheduler(run.world);
  }

  get watchCount(): number {
    return this.#apiserver.watchCount;
  }

  accept(end: End): void {
    const session = new Session({
      role: "server",
      clock: this.#options.run.world,
      turn: this.#turn,
      maxStreams: this.#options.maxStreams,
      owner: {
        opened: (stream, request, isWhole) => this.#opened(session, stream, request, isWhole),
        write: (buffers, written) => end.write(buffers, written),
        changed() {},
        ponged() {},
        ended: (error) => {
          // The proxy must follow the protocol, so a session that ends with a protocol error shows a bug.
          if (error !== undefined)
            this.#options.run.wrong(`${this.name} was sent a violation: ${error.message}`);
          session.flush();
          end.end();
        },
      },
    });
    this.sessions.set(end, session);
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => {
        this.sessions.delete(end);
        session.lose();
      },
    };
  }

  #opened(session: Session, stream: Stream, request: RequestHead, isWhole: boolean): StreamListener {
    const { run } = this.#options;
    const tag = Number(request.fields.find(({ name }) => name === "x-tag")?.value);
    const plan = run.plans.get(tag);
    if (plan === undefined)
      return answerStream(stream, request, isWhole, (ask, answer) => this.#apiserver.handle(ask, answer));
    this.#checkRequest(plan, request);
    this.#checkCompany(plan, session);
    const seen = run.attempted(plan);
    run.tell(() => `${this.name} is asked ${tag}`);
    const answering = new Answering(plan, stream, { run, isRefused: plan.fate === "refuse" && seen === 1 });
    if (plan.fate === "unauthorized") run.world.after(0, () => session.goAway());
    if (isWhole) answering.whole();
    else if (plan.answersEarly) answering.begin();
    return answering;
  }

  /**
   * An unproven request could provoke a GOAWAY, so it must share a connection only with requests of its trust class
   * (D2).
   */
  #checkCompany({ tag, credential }: Plan, session: Session): void {
    const { run, isPrivate } = this.#options;
    const asked = run.asked.get(tag);
    const carried = this.#carried.get(session) ?? { clients: new Set(), trust: new Set() };
    this.#carried.set(session, carried);
    carried.clients.add(asked?.client ?? "");
    // A token that was unproven when its request was sent may belong to either class: a backend may have accepted it
    // meanwhile.
    if (credential !== "own") carried.trust.add("unproven");
    else if (asked?.isProven === true) carried.trust.add("proven");
    if (isPrivate && carried.clients.size > 1) run.wrong(`tag ${tag} came on another client's session`);
    if (!isPrivate && carried.trust.size > 1) run.wrong(`tag ${tag} shares a session across trust`);
  }

  #checkRequest(plan: Plan, request: RequestHead): void {
    const { run } = this.#options;
    if (request.method !== plan.method || request.path !== plan.path)
      run.wrong(`tag ${plan.tag} arrived as ${request.method} ${request.path}`);
    const pairs = request.fields.map(({ name, value }) => [name, value] as const);
    const ours = pairs.filter(([name]) => !name.startsWith(":") && name !== "x-forwarded-for");
    const seen = digest(ours);
    if (seen !== run.sent.get(plan.tag))
      run.wrong(`tag ${plan.tag} arrived with other fields than were sent`);
  }
}

type Circumstances = { readonly run: Run; readonly isRefused: boolean };

/** Reads the body of one request and sends the planned response. */
class Answering implements StreamListener {
  readonly #plan: Plan;
  readonly #stream: Stream;
  readonly #circumstances: Circumstances;
  #received = 0;
  readonly #said: Said;
  #pieces = 0;
  #hasBegun = false;
  #isGone = false;

  constructor(plan: Plan, stream: Stream, circumstances: Circumstances) {
    this.#said = circumstances.run.answering(plan.tag);
    this.#plan = plan;
    this.#stream = stream;
    this.#circumstances = circumstances;
  }

  headers(): void {
    this.whole();
  }

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const { run } = this.#circumstances;
    run.astray += astray({ tag: this.#plan.tag, of: "request" }, this.#received, bytes, [start, end]);
    this.#received += end - start;
    // Some backends read slowly, so that request bodies wait in the proxy.
    if (this.#plan.readMs === 0) this.#stream.grant(end - start);
    else run.world.after(this.#plan.readMs, () => this.#stream.grant(end - start));
    if (isLast) this.whole();
  }

  reset(code: number): void {
    this.#circumstances.run.tell(() => `the backend is reset ${this.#plan.tag} ${code}`);
    this.#isGone = true;
  }

  sent(): void {}

  /** Called when the request is complete. */
  whole(): void {
    const { run } = this.#circumstances;
    if (this.#received !== this.#plan.uploadBytes)
      run.wrong(
        `tag ${this.#plan.tag}: ${this.#received} of ${this.#plan.uploadBytes} bytes passed as the whole body`,
      );
    this.begin();
  }

  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { run, isRefused } = this.#circumstances;
    const { fate, thinkMs } = this.#plan;
    if (isRefused) run.world.after(0, () => this.#reset(errorCode.REFUSED_STREAM));
    else if (fate === "reset-early") run.world.after(thinkMs, () => this.#reset(this.#plan.resetCode));
    else if (fate !== "silence") run.world.after(thinkMs, () => this.#head());
  }

  #reset(code: number): void {
    this.#circumstances.run.tell(() => `the backend resets ${this.#plan.tag} with ${code}`);
    if (!this.#isGone) this.#stream.reset(code);
    this.#isGone = true;
  }

  #head(): void {
    if (this.#isGone) return;
    const { answerBytes, hasTrailers, interimHeads, method } = this.#plan;
    for (let count = 0; count < interimHeads; count += 1)
      this.#stream.sendHeaders(fieldsOf(interimHeadOf(this.#plan)), false);
    const isBodiless = method === "HEAD" || (answerBytes === 0 && !hasTrailers);
    if (isBodiless) this.#said.hasEnded = true;
    this.#stream.sendHeaders(fieldsOf(headOf(this.#plan)), isBodiless);
    if (isBodiless) this.#ended();
    else this.#piece();
  }

  #piece(): void {
    if (this.#isGone) return;
    const { tag, answerBytes, pieces, thinkMs, fate } = this.#plan;
    this.#pieces += 1;
    const isLast = this.#pieces >= pieces;
    if (fate === "reset-late" && isLast) return this.#reset(this.#plan.resetCode);
    const upTo = isLast ? answerBytes : Math.floor((answerBytes * this.#pieces) / pieces);
    const bytes = payload({ tag, of: "answer" }, this.#said.sentBytes, upTo);
    this.#said.sentBytes = upTo;
    if (isLast) this.#said.hasEnded = true;
    this.#write(bytes, isLast);
    if (isLast) this.#ended();
    else this.#circumstances.run.world.after(thinkMs, () => this.#piece());
  }

  #ended(): void {
    const { run } = this.#circumstances;
    this.#isGone = true;
    if (this.#plan.fate !== "stop") return;
    run.tell(() => `the backend wants no more of ${this.#plan.tag}`);
    run.world.after(run.random.size(20), () => this.#stream.reset(errorCode.NO_ERROR));
  }

  /** Ends the response with its last bytes, or with trailers after them. */
  #write(bytes: Buffer, isLast: boolean): void {
    const { tag, hasTrailers } = this.#plan;
    const endsHere = isLast && !hasTrailers;
    if (bytes.length > 0 || endsHere) this.#stream.sendData(bytes, 0, bytes.length, endsHere);
    if (isLast && hasTrailers) this.#stream.sendHeaders([new Field("x-trailer", String(tag))], true);
  }
}

function fieldsOf(pairs: readonly (readonly [string, string])[]): Field[] {
  return pairs.map(([name, value]) => new Field(name, value));
}

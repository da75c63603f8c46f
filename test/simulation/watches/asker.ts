/**
 * A client that reads and writes all the time. Each response must be that of one backend, and each write must happen
 * only once.
 */
import { type JsonMap, mapOf, parseJson, textOf } from "../../../demo/objects/json.ts";
import type { Caller } from "./caller.ts";
import { type Answer, PlainCall } from "./plain-call.ts";
import type { Truth } from "./truth.ts";

const resource = "configmaps";

export type AskerStage = {
  readonly truth: Truth;
  /** True while any fault goes on. A failed read is no finding then. */
  readonly mayFail: () => boolean;
  /** The end of the last silence of all backends, if the run has no other faults. Undefined otherwise. */
  readonly carriedSince: () => number | undefined;
};

/** A read must be answered within this time after a silence of all backends. It includes one or two retransmissions. */
const carriedMs = 1_000;

export class Asker {
  readonly #caller: Caller;
  readonly #stage: AskerStage;
  readonly #everyMs: number;
  #stop: () => void = () => {};
  #isStopped = false;
  #written = 0;
  /** Duration in ms of the slowest read that succeeded. */
  slowestMs = 0;
  /** The longest time in ms from the end of a silence of all backends to the response to a read. */
  latestMs = 0;
  #open = 0;

  constructor(caller: Caller, stage: AskerStage, everyMs: number) {
    this.#caller = caller;
    this.#stage = stage;
    this.#everyMs = everyMs;
  }

  get openCount(): number {
    return this.#open;
  }

  start(): void {
    if (this.#isStopped) return;
    const { world, random } = this.#caller.findings;
    this.#stop = world.after(this.#everyMs * (0.5 + random.next()), () => {
      random.pick([() => this.#get(), () => this.#list(), () => this.#list(), () => this.#post()])();
      this.start();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stop();
  }

  #ask(method: string, path: string, body: Buffer | undefined, over: (answer: Answer) => void): void {
    const auditId = this.#caller.nextId();
    const asked = { method, path, accept: "application/json", auditId };
    this.#open += 1;
    const call = new PlainCall(this.#caller, body === undefined ? asked : { ...asked, body }, (answer) => {
      this.#open -= 1;
      this.#caller.findings.count(`${method} ${answer.isWhole ? answer.status : "cut"}`);
      this.#judgeCarried(auditId, method, answer);
      over(answer);
    });
    void call;
  }

  /**
   * A silence of all backends makes no request fail, and a read is answered within one second after it. A read is
   * exempt if its response head arrived before the silence: only the backend's retransmissions can bring the rest of
   * the body.
   */
  #judgeCarried(auditId: string, method: string, { status, isWhole, ms, headMs }: Answer): void {
    const since = this.#stage.carriedSince();
    if (since === undefined) return;
    const { findings } = this.#caller;
    const now = findings.world.now();
    const lateMs = now - Math.max(since, now - ms);
    const hasBegun = headMs !== undefined && now - ms + headMs < since;
    if (method === "GET" && !hasBegun) this.latestMs = Math.max(this.latestMs, lateMs);
    if (!isWhole || status >= 500) findings.wrong("carried", `${auditId} failed: ${status}`);
    else if (method === "GET" && !hasBegun && lateMs > carriedMs)
      findings.wrong("carried", `${auditId} was answered ${Math.round(lateMs)} ms after it could be`);
  }

  #get(): void {
    this.#ask("GET", "/api/v1/namespaces/default/configmaps/c-1", undefined, (answer) => {
      if (this.#isReadable(answer, [200, 404])) this.slowestMs = Math.max(this.slowestMs, answer.ms);
    });
  }

  #list(): void {
    const version = this.#caller.findings.random.chance(0.5) ? "?resourceVersion=0" : "";
    this.#ask("GET", `/api/v1/namespaces/default/${resource}${version}`, undefined, (answer) => {
      if (!this.#isReadable(answer, [200])) return;
      this.slowestMs = Math.max(this.slowestMs, answer.ms);
      this.#compare(mapOf(parseJson(answer.body)));
    });
  }

  #isReadable({ status, isWhole }: Answer, expected: readonly number[]): boolean {
    if (isWhole && expected.includes(status)) return true;
    this.#caller.findings.count(`failed read: ${status}${isWhole ? "" : " cut"}`);
    // A read without a response has no reason to fail while a backend could answer it.
    if (status !== 0 && status < 500) return false;
    if (!this.#stage.mayFail()) this.#caller.findings.count("failed read while a backend served");
    return false;
  }

  /** The listed objects must be those of the true history at the list's version. */
  #compare(list: JsonMap): void {
    const version = Number(textOf(mapOf(list["metadata"])["resourceVersion"]));
    const items = Array.isArray(list["items"]) ? list["items"] : [];
    const state = this.#stage.truth.stateAt({ resource, namespace: "default", app: undefined }, version);
    const told = items.map((item) => {
      const metadata = mapOf(mapOf(item)["metadata"]);
      return `${textOf(metadata["namespace"])}/${textOf(metadata["name"])}@${textOf(metadata["resourceVersion"])}`;
    });
    const expected = [...state].map(([key, at]) => `${key}@${at}`);
    if (told.toSorted().join() !== expected.toSorted().join())
      this.#caller.findings.wrong(
        "transparent",
        `${this.#caller.name} was told another list of version ${version}`,
      );
  }

  #post(): void {
    this.#written += 1;
    const name = `${this.#caller.name}-${this.#written}`;
    const body = Buffer.from(JSON.stringify({ metadata: { name }, data: { at: name } }));
    this.#ask("POST", "/api/v1/namespaces/kube-system/configmaps", body, (answer) => {
      const isThere = this.#stage.truth.store.get(resource, "kube-system", name) !== undefined;
      if (answer.isWhole && answer.status === 201 && !isThere)
        this.#caller.findings.wrong("whole", `${name} was said to be written and is not`);
      if (isThere && answer.retryAfterMs !== undefined)
        this.#caller.findings.wrong("once", `${name} is written and its client was told to try again`);
    });
  }
}

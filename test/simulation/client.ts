/** Simulated clients. They send the planned requests and watches, and check every byte that they receive. */
import { type JsonMap, mapOf, parseJson, textOf } from "../../demo/objects/json.ts";
import { Field } from "../../src/h2/core/field.ts";
import { FlushScheduler } from "../../src/h2/core/flush-scheduler.ts";
import { errorCode, lost } from "../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../src/h2/core/stream-writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import type { Stream } from "../../src/h2/session/stream.ts";
import type { End } from "./network.ts";
import { astray, digest, payload } from "./payload.ts";
import { headOf, interimHeadOf, type Plan } from "./plan.ts";
import type { Run } from "./run-state.ts";

export type Outcome = "waiting" | "whole" | "reset" | "cancelled" | "refused";

/**
 * True if only an apiserver that has authenticated the request sends this response. Proxied requests, logs and the
 * aggregated API are answered by other servers; so may be a write outside of the API.
 */
function isProof({ method, status, path }: Plan): boolean {
  const isAuthenticated = (status >= 200 && status < 300) || [403, 404, 409, 422].includes(status);
  if (path.startsWith("/tagged/") && method !== "GET" && method !== "HEAD") return false;
  return isAuthenticated && !/\/proxy\/|\/log\?|metrics\.k8s\.io/.test(path);
}

export class SimulatedClient {
  readonly name: string;
  readonly #run: Run;
  readonly #dial: () => End;
  readonly #turn: FlushScheduler;
  #session: Session | undefined;
  end: End | undefined;
  /** True once a backend has accepted the client's token. */
  isProven = false;
  /** True once a fault has struck the client itself. It may lose requests because of that. */
  isStruck = false;
  /**
   * True if the client's watches may end, or seem to end, within their first second: its socket was paused, or the
   * proxy stops.
   */
  isRushed = false;

  constructor(name: string, run: Run, dial: () => End) {
    this.name = name;
    this.#run = run;
    this.#dial = dial;
    this.#turn = new FlushScheduler(run.world);
  }

  ask(plan: Plan): Asking {
    const { method, path, extra, uploadBytes, cancelAfterMs } = plan;
    this.#run.plans.set(plan.tag, plan);
    this.#run.asked.set(plan.tag, { client: this.name, isProven: this.isProven });
    const token = plan.credential === "own" ? this.name : `${plan.tag}-bad`;
    const credential: (readonly [string, string])[] =
      plan.credential === "none" ? [] : [["authorization", `Bearer ${token}`]];
    const fields: (readonly [string, string])[] = [
      ...credential,
      ["user-agent", "simulated"],
      ["audit-id", `audit-${plan.tag}`],
      ...extra,
    ];
    this.#run.sent.set(plan.tag, digest(fields));
    this.#run.tell(() => `${this.name} asks ${plan.tag} ${method} ${path} ${plan.fate}`);
    const asking = new Asking(plan, this, this.#run);
    const stream = this.#open([method, path], fields, uploadBytes === 0, asking);
    asking.begin(stream);
    if (cancelAfterMs !== undefined) this.#run.world.after(cancelAfterMs, () => asking.cancel());
    return asking;
  }

  watch(version: number): Watching {
    const path = `/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`;
    const watching = new Watching(version, this, this.#run);
    watching.stream = this.#open(["GET", path], [["authorization", `Bearer ${this.name}`]], true, watching);
    return watching;
  }

  /** Sends GOAWAY. Open streams go on. */
  goAway(): void {
    this.#session?.goAway();
  }

  cut(): void {
    this.end?.destroy();
  }

  #open(
    [method, path]: readonly [string, string],
    extra: readonly (readonly [string, string])[],
    isWhole: boolean,
    owner: StreamListener,
  ): Stream {
    const fields = [
      new Field(":method", method),
      new Field(":scheme", "https"),
      new Field(":authority", "kubernetes"),
      new Field(":path", path),
      ...extra.map(([name, value]) => new Field(name, value)),
    ];
    return this.#openSession().open(fields, isWhole, owner, method === "HEAD");
  }

  #openSession(): Session {
    if (this.#session?.isOpen === true) return this.#session;
    const end = this.#dial();
    this.end = end;
    const session = new Session({
      role: "client",
      clock: this.#run.world,
      turn: this.#turn,
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => end.write(buffers, written),
        changed() {},
        ponged() {},
        ended: (error) => {
          if (error !== undefined) this.#run.wrong(`${this.name} was sent a violation: ${error.message}`);
          session.flush();
          end.end();
        },
      },
    });
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => session.lose(),
    };
    this.#session = session;
    return session;
  }
}

/** One planned request as its client sees it. */
export class Asking implements StreamListener {
  readonly plan: Plan;
  readonly client: SimulatedClient;
  readonly #run: Run;
  #stream: Stream | undefined;
  outcome: Outcome = "waiting";
  status = 0;
  /** True if the response came from a backend with a plan, so its bytes are known. */
  #isPlanned = false;
  resetCode: number | undefined;
  #received = 0;
  /** Bytes of the request body that were handed to the stream, and bytes that the stream has sent. */
  #given = 0;
  #uploaded = 0;

  constructor(plan: Plan, client: SimulatedClient, run: Run) {
    this.plan = plan;
    this.client = client;
    this.#run = run;
  }

  /** Describes the request in the report of a failed seed. */
  get description(): string {
    const { extra, ...plan } = this.plan;
    return `${this.client.name} ${this.outcome} ${this.status} ${JSON.stringify({ ...plan, extra: extra.length })}`;
  }

  begin(stream: Stream): void {
    this.#stream = stream;
    this.#upload();
  }

  cancel(): void {
    if (this.outcome !== "waiting") return;
    this.#run.tell(() => `${this.client.name} cancels ${this.plan.tag}`);
    this.outcome = "cancelled";
    this.#stream?.reset(errorCode.CANCEL);
  }

  headers(fields: Field[], end: boolean): void {
    if (this.outcome === "cancelled") return;
    const pairs = fields.map(({ name, value }) => [name, value] as const);
    const [first, second] = pairs;
    if (first?.[0] === ":status") this.#head(Number(first[1]), pairs);
    else if (first?.[1] !== String(this.plan.tag) || second !== undefined)
      this.#run.wrong(`tag ${this.plan.tag} was given other trailers`);
    if (end) this.#whole();
  }

  /**
   * Checks a response head. A response of the proxy itself has no tag. That of a backend must have this request's
   * planned fields.
   */
  #head(status: number, pairs: readonly (readonly [string, string])[]): void {
    this.status = status;
    this.#run.tell(() => `${this.client.name} is answered ${this.plan.tag} ${status}`);
    const isInterim = status < 200;
    this.#isPlanned = pairs.some(([name]) => name === "x-tag");
    if (!this.#isPlanned && !isInterim) return;
    if (!isInterim && this.plan.credential === "own" && isProof(this.plan)) this.client.isProven = true;
    const expected = isInterim ? interimHeadOf(this.plan) : headOf(this.plan);
    if (digest(pairs) !== digest(expected))
      this.#run.wrong(`tag ${this.plan.tag} was given another head: ${JSON.stringify(pairs)}`);
  }

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.outcome === "cancelled") return;
    if (this.#isPlanned)
      this.#run.astray += astray({ tag: this.plan.tag, of: "answer" }, this.#received, bytes, [start, end]);
    this.#received += end - start;
    const answers = this.#run.answersTo(this.plan.tag);
    if (this.#isPlanned && !answers.some(({ sentBytes }) => sentBytes >= this.#received))
      this.#run.wrong(`tag ${this.plan.tag} was given more than was sent`);
    const count = end - start;
    const { readMs } = this.plan;
    if (readMs === 0) this.#stream?.grant(count);
    else this.#run.world.after(readMs, () => this.#stream?.grant(count));
    if (isLast) this.#whole();
  }

  reset(code: number): void {
    this.#run.tell(() => `${this.client.name} is reset ${this.plan.tag} ${code}`);
    if (this.outcome !== "waiting") return;
    this.outcome = "reset";
    this.resetCode = code;
  }

  sent(count: number): void {
    this.#uploaded += count;
    if (this.outcome !== "cancelled") this.#upload();
  }

  #whole(): void {
    const { tag, answerBytes, method, fate } = this.plan;
    this.outcome = this.#isPlanned ? "whole" : "refused";
    // After an early response some clients finish the upload and some cancel it. Both occur in practice.
    if (this.#given < this.plan.uploadBytes && tag % 2 === 0) {
      this.#given = this.plan.uploadBytes;
      this.#run.world.after(0, () => this.#stream?.reset(errorCode.NO_ERROR));
    }
    const expected = method === "HEAD" ? 0 : answerBytes;
    if (!this.#isPlanned) return;
    if (!this.#run.answersTo(tag).some(({ hasEnded }) => hasEnded))
      this.#run.wrong(`tag ${tag} ended although its backend had not ended it`);
    if (this.#received !== expected)
      this.#run.wrong(`tag ${tag}: ${this.#received} of ${expected} bytes passed as the whole answer`);
    const isImpossible = fate === "reset-early" || (fate === "reset-late" && expected > 0);
    if (isImpossible) this.#run.wrong(`tag ${tag} ended well although its backend reset it`);
  }

  /** Keeps about 30,000 bytes in the stream, a little more than one frame. */
  #upload(): void {
    const { tag, uploadBytes } = this.plan;
    const stream = this.#stream;
    if (stream === undefined || uploadBytes === 0 || this.#given >= uploadBytes) return;
    while (this.#given - this.#uploaded < 30_000 && this.#given < uploadBytes) {
      const upTo = Math.min(uploadBytes, this.#given + 1 + this.#run.random.size(20_000));
      const bytes = payload({ tag, of: "request" }, this.#given, upTo);
      this.#given = upTo;
      stream.sendData(bytes, 0, bytes.length, upTo === uploadBytes);
    }
  }
}

/** One watch as its client sees it: the received events in order. */
export class Watching implements StreamListener {
  readonly from: number;
  readonly client: SimulatedClient;
  readonly #run: Run;
  stream: Stream | undefined;
  outcome: Outcome = "waiting";
  status = 0;
  /** Events other than bookmarks, as `TYPE name@version`. */
  readonly events: string[] = [];
  #partial = "";
  #answeredAt = 0;

  constructor(from: number, client: SimulatedClient, run: Run) {
    this.from = from;
    this.client = client;
    this.#run = run;
  }

  cancel(): void {
    if (this.outcome !== "waiting") return;
    this.outcome = "cancelled";
    this.stream?.reset(errorCode.CANCEL);
  }

  headers(fields: Field[], end: boolean): void {
    this.status = Number(fields.find(({ name }) => name === ":status")?.value ?? this.status);
    this.#answeredAt = this.#run.world.now();
    if (end && this.outcome === "waiting") this.outcome = "refused";
  }

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.outcome !== "waiting") return;
    this.stream?.grant(end - start);
    if (this.status === 200) this.#lines(bytes.toString("utf8", start, end));
    if (!isLast) return;
    this.outcome = this.status === 200 ? "whole" : "refused";
    this.#checkWhole();
    // client-go relists after a watch without events that ends this early (D5).
    if (
      this.outcome === "whole" &&
      this.events.length === 0 &&
      this.#run.world.now() - this.#answeredAt < 1_000 &&
      !this.client.isRushed
    )
      this.#run.wrong("a watch without events was ended within its first second");
  }

  reset(code: number): void {
    if (this.outcome !== "waiting") return;
    this.outcome = "reset";
    // A client's own broken connection may cut an event in half. A reset stream must not.
    if (code !== lost || !this.client.isStruck) this.#checkWhole();
  }

  sent(): void {}

  #lines(text: string): void {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop() ?? "";
    for (const line of lines) this.#event(mapOf(parseJson(line)));
  }

  #event({ type, object }: JsonMap): void {
    const metadata = mapOf(mapOf(object)["metadata"]);
    if (type === "BOOKMARK") return;
    this.events.push(`${textOf(type)} ${textOf(metadata["name"])}@${textOf(metadata["resourceVersion"])}`);
  }

  /** However a watch ends, it must not end within an event (D3). */
  #checkWhole(): void {
    if (this.#partial !== "") this.#run.wrong(`a watch ended in mid-event: ${this.#partial.slice(0, 80)}`);
  }
}

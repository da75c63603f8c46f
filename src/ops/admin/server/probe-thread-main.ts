/** The main file of the probe thread (probe-thread.ts): opens the port and reports its address, or a failure. */
import { parentPort, workerData } from "node:worker_threads";
import { wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { Journal } from "../../../events/journal.ts";
import type { AccessRequest, Admitted } from "../authorization/authorization.ts";
import type { Reply } from "../http/reply.ts";
import type { Check, ProbeName, ProbeSource } from "./answers.ts";
import { CachedProbes } from "./cached-probes.ts";
import type { Answer, FromThread, ProbeThreadOrder, Question, ToThread } from "./probe-thread.ts";
import { metricsGuard, startAdmin } from "./server.ts";

type Waiting = { resolve(answer: Answer): void; reject(error: Error): void };

class Loop implements ProbeSource {
  /**
   * Unanswered questions to the main thread, by id. There is at most one for each of /livez, /readyz and /metrics, and
   * one for each request that waits for its authorization. The limits on sockets in `adminLimits` bound the number of
   * these requests.
   */
  readonly #waiting = new Map<number, Waiting>();
  #id = 0;

  async checks(probe: ProbeName): Promise<readonly Check[]> {
    const answer = await this.#ask(probe);
    return Array.isArray(answer) ? answer : [];
  }

  async scrape(): Promise<string> {
    const answer = await this.#ask("metrics");
    return typeof answer === "string" ? answer : "";
  }

  async admit(request: AccessRequest): Promise<Admitted | Reply> {
    const answer = await this.#ask(request);
    if (typeof answer === "object" && ("username" in answer || "status" in answer)) return answer;
    throw new Error("The answer is not about an authorization");
  }

  heard(message: Extract<ToThread, { kind: "answer" | "refusal" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "answer") waiting?.resolve(message.answer);
    else waiting?.reject(new Error(message.message));
  }

  #ask(question: Question): Promise<Answer> {
    this.#id += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.set(this.#id, { resolve, reject });
    say({ kind: "asked", id: this.#id, question });
    return promise;
  }
}

function say(message: FromThread): void {
  parentPort?.postMessage(message, []);
}

const order: ProbeThreadOrder = workerData;
const journal = new Journal(wallClock);
journal.subscribe((entry) => say({ kind: "told", entry }));
const loop = new Loop();
const asker = new CachedProbes({ clock: wallClock, journal, loop, first: order.first });
const certificate = { current: order.tls?.pair && { pair: order.tls.pair } };
const guard = order.isGuarded ? metricsGuard(loop) : undefined;
const tls = order.tls && { certificate, options: order.tls.options };
const admin = await startAdmin({ ...order, journal, asker, tls, guard });
parentPort?.on("message", (message: ToThread) => {
  if (message.kind === "pair") certificate.current = { pair: message.pair };
  else if (message.kind === "known") asker.learn(message.probe, message.checks);
  else loop.heard(message);
});
if (admin instanceof Failure) say({ kind: "failed", message: admin.message });
else say({ kind: "opened", address: admin.address, descriptor: admin.descriptor });

/** The main file of the probe thread (probe-thread.ts): opens the port and reports its address, or a failure. */
import { parentPort, workerData } from "node:worker_threads";
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Journal } from "../../events/journal.ts";
import type { Check, ProbeName, ProbeSource } from "./answers.ts";
import { CachedProbes } from "./cached-probes.ts";
import type { FromThread, ProbeThreadOrder, ToThread } from "./probe-thread.ts";
import { startAdmin } from "./server.ts";

type Question = Extract<FromThread, { kind: "asked" }>["question"];
type Answer = readonly Check[] | string;
type Waiting = { resolve(answer: Answer): void; reject(error: Error): void };

class Loop implements ProbeSource {
  /** Unanswered questions, by id. There are at most three, because CachedProbes sends no question twice. */
  readonly #waiting = new Map<number, Waiting>();
  #id = 0;

  async checks(probe: ProbeName): Promise<readonly Check[]> {
    const answer = await this.#ask(probe);
    return typeof answer === "string" ? [] : answer;
  }

  async scrape(): Promise<string> {
    const answer = await this.#ask("metrics");
    return typeof answer === "string" ? answer : "";
  }

  heard(message: Exclude<ToThread, { kind: "known" }>): void {
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
const admin = await startAdmin({ ...order, journal, asker });
parentPort?.on("message", (message: ToThread) => {
  if (message.kind === "known") asker.learn(message.probe, message.checks);
  else loop.heard(message);
});
if (admin instanceof Failure) say({ kind: "failed", message: admin.message });
else say({ kind: "opened", address: admin.address, descriptor: admin.descriptor });

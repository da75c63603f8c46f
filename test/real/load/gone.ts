/**
 * Was a 410 true? Whenever a client gets one, or the proxy ends a watch because no backend knows its version any more,
 * every apiserver is asked directly, past the proxy. One that goes on from that version makes the 410 untrue; one that is
 * out of reach is asked again until it answers, for as long as the proxy itself may wait for it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Apiserver } from "../rig/apiserver.ts";
import { ask } from "../rig/ask.ts";
import { saidSince } from "../rig/said.ts";

export type Inquiry = { readonly what: string; readonly isTrue: boolean };

/** A move's budget (watch.md §5.2), and time to come back in. */
const patienceMs = 15_000;
const pauseMs = 250;

export class Gone {
  readonly #apiservers: readonly Apiserver[];
  readonly #token: string;
  readonly #logFile: string;
  readonly #inquiries: Promise<Inquiry>[] = [];
  readonly #timer: ReturnType<typeof setInterval>;
  /** Why watches ended, in the proxy's words. */
  readonly reasons = new Map<string, number>();
  #readTo: number;

  /** `logFile`: the proxy's journal. */
  constructor(apiservers: readonly Apiserver[], token: string, logFile: string) {
    this.#apiservers = apiservers;
    this.#token = token;
    this.#logFile = logFile;
    this.#readTo = Date.now();
    this.#timer = setInterval(() => this.#read(), 500);
  }

  #read(): void {
    const said = saidSince(this.#logFile, this.#readTo + 1);
    this.#readTo = said.at(-1)?.ts ?? this.#readTo;
    for (const { msg, reason, count, resource, resourceVersion: version } of said) {
      if (msg !== "watches.ended") continue;
      this.reasons.set(String(reason), (this.reasons.get(String(reason)) ?? 0) + Number(count));
      const plural = String(resource).split("/").at(-1) ?? "";
      if (reason === "expired") this.ask(plural, Number(version), "ended by the proxy");
    }
  }

  /** `prefix`: a resource, with its namespace or without. */
  readonly ask = (prefix: string, version: number, who: string): void => {
    const [resource = "", namespace = ""] = prefix.split("/");
    const scope = namespace === "" ? "" : `namespaces/${namespace}/`;
    const path = `/api/v1/${scope}${resource}?watch=true&resourceVersion=${version}&timeoutSeconds=1`;
    const at = new Date().toISOString();
    const asked = this.#apiservers.map((apiserver) => this.#askOne(apiserver, path));
    this.#inquiries.push(
      Promise.all(asked).then((answers) => ({
        what: `${at} ${who}: ${resource} from ${version}: ${answers.map(({ words }) => words).join("; ")}`,
        isTrue: answers.every(({ knows }) => !knows),
      })),
    );
  };

  async #askOne(apiserver: Apiserver, path: string): Promise<{ words: string; knows: boolean }> {
    const { name, url, caFile, pid } = apiserver;
    const began = Date.now();
    while (Date.now() - began < patienceMs) {
      const { status, text } = await ask({ url, caFile, token: this.#token }, { path }, 3_000).catch(() => ({
        status: 0,
        text: "",
      }));
      const isNew = apiserver.pid === pid ? "" : " (restarted since)";
      const after = `after ${Date.now() - began} ms${isNew}`;
      const oldest = /too old resource version: \d+ \((\d+)\)/.exec(text)?.[1];
      if (text.includes('"code":410'))
        return { words: `${name} knows ${oldest ?? "less"} on, ${after}`, knows: false };
      if (status === 200) return { words: `${name} KNOWS it, ${after}`, knows: true };
      await sleep(pauseMs);
    }
    return { words: `${name} did not answer`, knows: false };
  }

  async stop(): Promise<readonly Inquiry[]> {
    clearInterval(this.#timer);
    this.#read();
    return Promise.all(this.#inquiries);
  }
}

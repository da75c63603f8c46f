/**
 * Checks whether a 410 was correct. Whenever a client gets a 410, or the proxy ends a watch because no backend has its
 * version any more, every apiserver is asked directly. If one of them can continue from that version, the 410 was
 * wrong. An apiserver that cannot be reached is asked again, for as long as the proxy itself may wait for it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Apiserver } from "../rig/apiserver.ts";
import { ask } from "../rig/ask.ts";
import { saidSince } from "../rig/said.ts";

export type Inquiry = { readonly what: string; readonly isTrue: boolean };

/** Time limit of a watch migration (watch.md §5.2), plus time for an apiserver to return. */
const patienceMs = 15_000;
const pauseMs = 250;

export class Gone {
  readonly #apiservers: readonly Apiserver[];
  readonly #token: string;
  readonly #logFile: string;
  readonly #inquiries: Promise<Inquiry>[] = [];
  readonly #timer: ReturnType<typeof setInterval>;
  /** Number of ended watches by the reason in the proxy's log. */
  readonly reasons = new Map<string, number>();
  #readTo: number;

  /** `logFile` is the proxy's log. */
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

  /** `prefix` is a resource, with or without a namespace. */
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

/**
 * One client's watch through the whole data path, written as a dialogue: what each backend receives and sends, and how
 * it fails.
 */
import * as assert from "uvu/assert";
import type { Entry, EntryOf } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { type Asked, bearer, type PlayedBackend, type PlayedClient, PlayedPath } from "./path.ts";

export const json = new Field("content-type", "application/json");
export const ok = [new Field(":status", "200"), json];

const types = { "+": "ADDED", "~": "MODIFIED", "-": "DELETED", "=": "BOOKMARK" } as const;

/** Returns the JSON line of an event in the notation of watch-events.ts: `+5a`, `~7`, `-9b`, `=12`, `=12$`, `!410`. */
export function lineOf(word: string): string {
  const [, sign = "", version = "", name = ""] = /^(.)(\d*)(.*)$/.exec(word) ?? [];
  if (sign === "!") return `{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":${version}}}\n`;
  const type = types[sign as keyof typeof types];
  const isMarker = name === "$";
  const annotations = isMarker ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : "";
  const meta = isMarker || name === "" ? "" : `"name":"${name}","namespace":"n",`;
  return `{"type":"${type}","object":{"kind":"X","metadata":{${meta}"resourceVersion":"${version}"${annotations}}}}\n`;
}

export function linesOf(words: string): string {
  return words
    .split(" ")
    .filter((word) => word !== "")
    .map(lineOf)
    .join("");
}

/** Returns an empty list at this resourceVersion, in the apiserver's JSON. */
export function listOf(version: string): string {
  return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"${version}"},"items":[]}`;
}

export type WatchOptions = {
  readonly query?: string;
  readonly resource?: string;
  readonly fields?: readonly Field[];
  readonly client?: PlayedClient;
  readonly path?: PlayedPath;
};

/** A watch that the proxy has opened at the backend `from`. `to` is the other backend. */
export class PlayedWatch {
  readonly path: PlayedPath;
  readonly client: PlayedClient;
  readonly ear: ReturnType<PlayedClient["ask"]>;
  readonly from: PlayedBackend;
  readonly to: PlayedBackend;

  constructor({
    query = "resourceVersion=7",
    resource = "/api/v1/configmaps",
    fields = [bearer("t")],
    path = new PlayedPath(["a", "b"]),
    client = path.client(),
  }: WatchOptions = {}) {
    this.path = path;
    this.client = client;
    const counts = new Map(Array.from(path.played.values(), (one) => [one, one.asked.length]));
    this.ear = client.ask("GET", `${resource}?watch=true&${query}`, [...fields]);
    path.settle();
    const all = [...path.played.values()];
    const from = all.find((one) => one.asked.length > (counts.get(one) ?? 0));
    const to = all.find((one) => one !== from);
    if (from === undefined || to === undefined) throw new Error("Two backends are played, one was asked");
    this.from = from;
    this.to = to;
  }

  /** Accepts the latest request of this backend with the response head `head`, and sends these events. */
  serve(backend: PlayedBackend, words = "", head: Field[] = ok): Asked {
    if (head.length > 0) backend.last.side?.sendHeaders(head, false);
    this.say(backend, words);
    return backend.last;
  }

  say(backend: PlayedBackend, words: string): void {
    if (words !== "") backend.last.say(linesOf(words));
    this.path.settle();
  }

  /**
   * Answers the latest request, which must be a list, with an empty list at `version`, the present version of etcd. If
   * `version` is "", answers 403.
   */
  list(backend: PlayedBackend, version: string): void {
    const { path } = backend.last.request;
    assert.match(path, /[?&]limit=1$/);
    backend.last.answer(version === "" ? 403 : 200, version === "" ? "" : listOf(version), [json]);
    this.path.settle();
    this.advance(10);
  }

  end(backend: PlayedBackend): void {
    backend.last.say("", true);
    this.path.settle();
  }

  kill(backend: PlayedBackend): void {
    backend.kill();
    this.path.settle();
  }

  advance(ms: number): void {
    this.path.clock.advance(ms);
  }

  /** Asserts that the client has received exactly these events, and that its stream is in this state. */
  has(words: string, state: "open" | "ended" = "open"): void {
    assert.is(this.ear.body, linesOf(words));
    assert.equal([this.ear.isEnded, this.ear.resetCode], [state === "ended", undefined]);
  }

  /** Returns the query of the latest request of this backend, without `watch=true`. */
  queryOf(backend: PlayedBackend): string {
    return backend.last.request.path.replace(/^.*[?]watch=true&/, "");
  }

  entries<K extends Entry["kind"]>(kind: K): EntryOf<K>[] {
    return this.path.entries.filter((entry): entry is EntryOf<K> => entry.kind === kind);
  }
}

/** Drops all data of the backend, on open and on new sockets. */
export function blackHole(backend: PlayedBackend): void {
  for (const { cable } of backend.sessions) cable.blackHole();
  backend.isMute = true;
}

/** Holds back all data to and from the backend, until the returned function is called. */
export function hold(backend: PlayedBackend): () => void {
  const letGo = backend.sessions.map(({ cable }) => cable.hold());
  return () => {
    for (const go of letGo) go();
  };
}

/** Sends GOAWAY on every session of the backend. Open streams continue. */
export function goAway(backend: PlayedBackend): void {
  for (const { session } of backend.sessions) session.goAway();
}

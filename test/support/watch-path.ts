/** One client's watch through the whole path, as a dialogue: what each backend is asked, says and suffers. */
import * as assert from "uvu/assert";
import type { Entry, EntryOf } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { type Asked, bearer, type PlayedBackend, type PlayedClient, PlayedPath } from "./path.ts";

export const json = new Field("content-type", "application/json");
export const ok = [new Field(":status", "200"), json];

const types = { "+": "ADDED", "~": "MODIFIED", "-": "DELETED", "=": "BOOKMARK" } as const;

/** A line of JSON for a word of watch-events.ts: `+5a`, `~7`, `-9b`, `=12`, `=12$` (the marker), `!410`. */
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

/** An empty list of this version, as an apiserver writes it. */
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

/** A watch that one of two backends, `from`, was asked for. */
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

  /** Takes what it was asked last, and says these events. */
  serve(backend: PlayedBackend, words = "", head: Field[] = ok): Asked {
    if (head.length > 0) backend.last.side?.sendHeaders(head, false);
    this.say(backend, words);
    return backend.last;
  }

  say(backend: PlayedBackend, words: string): void {
    if (words !== "") backend.last.say(linesOf(words));
    this.path.settle();
  }

  /** Answers the list that it was asked last: etcd is at `version`. "" refuses it. */
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

  /** What the client has, in words; and its stream is as it should be. */
  has(words: string, state: "open" | "ended" = "open"): void {
    assert.is(this.ear.body, linesOf(words));
    assert.equal([this.ear.isEnded, this.ear.resetCode], [state === "ended", undefined]);
  }

  /** The query that a backend was asked with last, without what every watch has. */
  queryOf(backend: PlayedBackend): string {
    return backend.last.request.path.replace(/^.*[?]watch=true&/, "");
  }

  entries<K extends Entry["kind"]>(kind: K): EntryOf<K>[] {
    return this.path.entries.filter((entry): entry is EntryOf<K> => entry.kind === kind);
  }
}

/** Nothing comes from it any more, neither on what is open nor on what is dialled. */
export function blackHole(backend: PlayedBackend): void {
  for (const { cable } of backend.sessions) cable.blackHole();
  backend.isMute = true;
}

/** What is on its way to and from it waits; the returned function lets it arrive. */
export function hold(backend: PlayedBackend): () => void {
  const letGo = backend.sessions.map(({ cable }) => cable.hold());
  return () => {
    for (const go of letGo) go();
  };
}

/** GOAWAY on every session of it: what is open lives on. */
export function goAway(backend: PlayedBackend): void {
  for (const { session } of backend.sessions) session.goAway();
}

/**
 * Transcripts of watches that move. Each line is an event. The lines below it are its effects: the session's state, the
 * requests at each backend, what the client received, and counts. This command rewrites the effects, and the diff then
 * shows what changed:
 *
 *     node test/watch/migration/transcripts.test.ts --write
 *
 *     watch QUERY            a client sends a watch, with the backends a and b; `compared` before it: with a sentinel,
 *                            `bookmarked` before it: the proxy requests bookmarks
 *     serve BACKEND EVENTS   the backend accepts its last request and sends these events (lineOf in watch-path.ts)
 *     say BACKEND N EVENTS   the backend sends these events on the stream of its Nth request
 *     answer BACKEND STATUS  the backend answers its last request with this status
 *     list BACKEND VERSION   the backend answers its last list request with this version
 *     kill, hole, goaway BACKEND · hold, release BACKEND · reset BACKEND · end BACKEND
 *     wait MS · finish (the proxy drains)
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, hold, json, linesOf, listOf, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("migration transcripts");
const folder = new URL("transcripts/", import.meta.url);
const signs = new Map([
  ["ADDED", "+"],
  ["MODIFIED", "~"],
  ["DELETED", "-"],
  ["BOOKMARK", "="],
  ["ERROR", "!"],
]);

type Line = {
  readonly type: string;
  readonly object: {
    readonly code?: number;
    readonly metadata: { readonly name?: string; readonly resourceVersion?: string };
  };
};

/** The inverse of `linesOf`. */
function wordsOf(body: string): string {
  const words = body.split("\n").slice(0, -1);
  return words
    .map((text) => {
      const { type, object } = JSON.parse(text) as Line;
      const { name = "", resourceVersion = "" } = object.metadata;
      return `${signs.get(type)}${object.code ?? resourceVersion}${name}`;
    })
    .join(" ");
}

class Transcript {
  #watch: PlayedWatch | undefined;
  #isCompared = false;
  #isBookmarked = false;
  #sent = 0;
  #isEnded = false;
  #state = "";
  readonly #asked = new Map<PlayedBackend, number>();
  readonly #counts = new Map<string, number>();
  readonly #releases = new Map<string, () => void>();

  /** Executes one line and returns its effects. */
  take(line: string): string[] {
    const [command = "", name = "", ...rest] = line.split(" ");
    if (command === "compared") this.#isCompared = true;
    else if (command === "bookmarked") this.#isBookmarked = true;
    else if (command === "watch")
      this.#watch = new PlayedWatch({
        path: new PlayedPath(["a", "b"], {
          ...(this.#isCompared ? { compares: "watches" } : {}),
          alwaysRequestBookmarks: this.#isBookmarked,
        }),
        query: name,
      });
    else this.#act(command, name, rest);
    return this.#watch === undefined ? [] : this.#follows(this.#watch);
  }

  #act(command: string, name: string, rest: readonly string[]): void {
    const watch = this.#watch;
    if (watch === undefined) throw new Error("Begin with `watch`");
    if (command === "wait") watch.advance(Number(name));
    else if (command === "finish") watch.path.exchanges.live[0]?.watch?.finish();
    else this.#tell(watch, command, name, rest);
    watch.path.settle();
  }

  #tell(watch: PlayedWatch, command: string, name: string, rest: readonly string[]): void {
    const backend = watch.path.backend(name);
    const commands: Record<string, () => void> = {
      serve: () => watch.serve(backend, rest.join(" ")),
      say: () => backend.asked[Number(rest[0]) - 1]?.say(linesOf(rest.slice(1).join(" "))),
      answer: () => backend.last.answer(Number(rest[0]), "", [json]),
      list: () => backend.last.answer(200, listOf(rest[0] ?? ""), [json]),
      kill: () => watch.kill(backend),
      hole: () => blackHole(backend),
      goaway: () => goAway(backend),
      reset: () => backend.last.side?.reset(errorCode.INTERNAL_ERROR),
      end: () => watch.end(backend),
      hold: () => this.#releases.set(name, hold(backend)),
      release: () => this.#releases.get(name)?.(),
    };
    const run = commands[command];
    if (run === undefined) throw new Error(`No such line: ${command}`);
    run();
  }

  #follows(watch: PlayedWatch): string[] {
    const out: string[] = [];
    for (const [name, backend] of watch.path.played) {
      for (const { request } of backend.asked.slice(this.#asked.get(backend) ?? 0))
        out.push(`asked ${name}: ${request.path.replace(/^.*[?]watch=true&/, "")}`);
      this.#asked.set(backend, backend.asked.length);
    }
    const [exchange] = watch.path.exchanges.live;
    const state = exchange?.watch === undefined ? "no session" : String(exchange.watch);
    if (state !== this.#state) out.push(state);
    this.#state = state;
    const words = wordsOf(watch.ear.body.slice(this.#sent));
    this.#sent = watch.ear.body.length;
    if (words !== "") out.push(`client: ${words}`);
    if (watch.ear.isEnded && !this.#isEnded) out.push("client: END_STREAM");
    this.#isEnded = watch.ear.isEnded;
    const { moves, ends } = watch.path.migrations;
    for (const [kind, counts] of [
      ["moved", moves],
      ["ended", ends],
    ] as const)
      for (const [reason, count] of counts) {
        const key = `${kind}: ${reason}`;
        if (this.#counts.get(key) !== count) out.push(key);
        this.#counts.set(key, count);
      }
    return out;
  }
}

for (const file of readdirSync(folder).toSorted()) {
  const written = readFileSync(new URL(file, folder), "utf8");
  const transcript = new Transcript();
  test(file, () => {
    const inputs = written.split("\n").filter((line) => !line.startsWith("  ") && line !== "");
    const played = inputs
      .flatMap((line) =>
        line.startsWith("#") ? [line] : [line, ...transcript.take(line).map((text) => `  ${text}`)],
      )
      .join("\n");
    if (process.argv.includes("--write")) writeFileSync(new URL(file, folder), `${played}\n`);
    else assert.fixture(played, written.trimEnd());
  });
}

test("there are transcripts", () => assert.ok(readdirSync(folder).length >= 8));

test.run();

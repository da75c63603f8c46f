/** Plays one event of the proxy in virtual time between two debugger statements. walk.ts steps through it. */
import { Field } from "../../src/h2/core/field.ts";
import { bearer, PlayedPath } from "../support/path.ts";
import { json } from "../support/watch-path.ts";

const flow = process.argv[2] ?? "get";
const path = new PlayedPath(["a", "b", "c"], { isProbed: true });
settle(200);
const client = path.client();

/** Lets the clock advance by `times` times 10 ms. */
function settle(times: number): void {
  for (let i = 0; i < times; i++) {
    path.clock.advance(10);
    path.settle();
  }
}

/** Asks for `target`, and returns the request as the backend has it, and the backend's name. */
function ask(target: string) {
  const before = new Map([...path.played].map(([name, backend]) => [name, backend.asked.length]));
  client.ask("GET", target, [bearer("t")]);
  path.settle();
  for (const [name, backend] of path.played) {
    const request = backend.asked.at(-1);
    if (request !== undefined && backend.asked.length > (before.get(name) ?? 0)) return { name, request };
  }
  throw new Error(`No backend was asked for ${target}`);
}

function get(): void {
  ask("/api/v1/namespaces/default/pods/p").request.answer(200, "{}", [json]);
  path.settle();
}

for (let i = 0; i < 30; i++) {
  get();
  settle(1);
}
if (flow === "get") {
  // oxlint-disable-next-line no-debugger
  debugger;
  get();
  // oxlint-disable-next-line no-debugger
  debugger; // end
  process.exit(0);
}
const watch = ask("/api/v1/namespaces/default/pods?watch=true&resourceVersion=100&allowWatchBookmarks=true");
watch.request.side?.sendHeaders([new Field(":status", "200"), json], false);
for (let version = 101; version < 140; version++) {
  say(version);
  settle(1);
}
if (flow === "watch") {
  // oxlint-disable-next-line no-debugger
  debugger;
  say(200);
  path.settle();
  // oxlint-disable-next-line no-debugger
  debugger; // end
  process.exit(0);
}
// oxlint-disable-next-line no-debugger
debugger;
path.played.get(watch.name)?.kill();
path.settle();
// oxlint-disable-next-line no-debugger
debugger; // end
process.exit(0);

/** The backend sends an event of the watch. */
function say(version: number): void {
  const metadata = `{"name":"p","uid":"u","resourceVersion":"${version}"}`;
  watch.request.say(`{"type":"MODIFIED","object":{"kind":"Pod","metadata":${metadata}}}\n`);
}

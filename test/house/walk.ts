/**
 * Counts the files that one event crosses: steps through the event, statement by statement, with the inspector.
 *
 * node test/house/walk.ts get|watch|lost|reload
 *
 * The inspector's session lives in a worker, because it pauses the main thread, which plays the event (event.ts). A step
 * belongs to the proxy itself if the nearest file of its stack outside of src/h2 and src/base is one of src: the played
 * client and backends use src/h2 as well. Figures differ by a few per cent from run to run.
 */

import { readFileSync, writeSync } from "node:fs";
import { type Debugger, Session } from "node:inspector";
import { join } from "node:path";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

const root = join(import.meta.dirname, "../..");
const event = "test/house/event.ts";

if (isMainThread) {
  const stepper = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  await new Promise((ready) => stepper.once("message", ready));
  await import("./event.ts");
} else {
  walk(process.argv[2] ?? "get");
}

function walk(flow: string): void {
  const session = new Session();
  session.connectToMainThread();
  const urls = new Map<string, string>();
  const lines = readFileSync(join(root, event), "utf8").split("\n");
  /** The file of each step of the proxy itself, in order. */
  const steps: string[] = [];
  let isStepping = false;
  let count = 0;
  const path = (frame: Debugger.CallFrame): string =>
    (urls.get(frame.location.scriptId) ?? "").split(`${root}/`).at(-1) ?? "";
  session.on("Debugger.scriptParsed", ({ params }) => urls.set(params.scriptId, params.url));
  session.on("Debugger.paused", ({ params: { callFrames } }) => {
    const [top] = callFrames;
    if (top === undefined) return;
    const file = path(top);
    const isEnd = file === event && lines[top.location.lineNumber]?.includes("// end") === true;
    if (isStepping && isEnd && count > 50) {
      report(flow, steps);
      session.disconnect();
      return;
    }
    if (isStepping) {
      count++;
      const owner = callFrames.map(path).find((one) => !/^src\/(h2|base)\//.test(one));
      if (file.startsWith("src/") && owner?.startsWith("src/") === true) steps.push(file);
    }
    const isOutside = isStepping && (file === "" || file.startsWith("node:"));
    isStepping = true;
    session.post(isOutside ? "Debugger.stepOut" : "Debugger.stepInto");
  });
  session.post("Debugger.enable", () => parentPort?.postMessage("ready", []));
  // Keeps the worker alive while the main thread plays the event.
  setInterval(() => {}, 1_000_000);
}

/** Prints one line: `flow files changes (without h2 and base: files changes)`. */
function report(flow: string, steps: readonly string[]): void {
  const visits = (files: readonly string[]): string[] => files.filter((file, at) => file !== files[at - 1]);
  const all = visits(steps);
  const upper = visits(steps.filter((file) => !/^src\/(h2|base)\//.test(file)));
  const counts = (files: readonly string[]): string =>
    `${new Set(files).size} files, ${files.length} changes`;
  writeSync(1, `${flow}: ${counts(all)} (without h2 and base: ${counts(upper)})\n`);
  if (process.argv.includes("--visits")) {
    const times = new Map<string, number>();
    for (const file of all) times.set(file, (times.get(file) ?? 0) + 1);
    const rows = [...times].toSorted((a, b) => b[1] - a[1]).map(([file, count]) => `  ${count} ${file}`);
    writeSync(1, `${rows.join("\n")}\n`);
  }
}

/**
 * The naive proxy in a process of its own (naive-process.ts), so that a crash ends nothing else. It checks its hosts'
 * files every second and applies changes without validation, as a simple implementation would.
 */
import { readFileSync } from "node:fs";
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { NaiveHost, NaiveOrder, NaiveWord } from "./naive-process.ts";
import { NaiveProxy } from "./naive-proxy.ts";

const lookMs = 1_000;

function tell(word: NaiveWord): void {
  if (process.connected) process.send?.(word);
}

async function serve({ backends, ca, pair, hosts, port }: NaiveOrder): Promise<void> {
  const proxy = new NaiveProxy({ backends, ca, pair, clock: wallClock, onChange: () => {} });
  const seen = new Map<string, string>();
  const show = ({ name, certFile, keyFile }: NaiveHost): void => {
    const shown = { certificate: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
    const text = shown.certificate + shown.key;
    if (seen.get(name) === text) return;
    seen.set(name, text);
    proxy.show(name, shown);
  };
  const look = (): void => {
    for (const host of hosts) show(host);
    wallClock.after(lookMs, look);
  };
  look();
  const bound = await proxy.start(port);
  tell(
    bound instanceof Failure ? { kind: "failed", message: bound.message } : { kind: "serving", port: bound },
  );
}

process.on("message", (order: NaiveOrder) => void serve(order));
process.on("disconnect", () => process.exit());
// Ctrl-C reaches every process of a terminal: the parent process ends this one.
process.on("SIGINT", () => {});

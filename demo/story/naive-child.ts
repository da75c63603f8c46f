/**
 * The main file of the naive proxy's process (naive-process.ts). Reads the certificate files of its hosts every second,
 * and applies changes without validation, as a simple implementation would.
 */
import { readFileSync } from "node:fs";
import { wallClock } from "../../src/base/clock.ts";
import type { Failure } from "../../src/base/failure.ts";
import { endWithParent, reportToParent } from "../apiserver/loopback-server.ts";
import type { NaiveHost, NaiveOrder } from "./naive-process.ts";
import { NaiveProxy } from "./naive-proxy.ts";

const lookMs = 1_000;

function serve({ hosts, port, ...order }: NaiveOrder): Promise<number | Failure> {
  const proxy = new NaiveProxy({ ...order, clock: wallClock });
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
  return proxy.start(port);
}

process.on("message", (order: NaiveOrder) => void reportToParent(serve(order)));
endWithParent();

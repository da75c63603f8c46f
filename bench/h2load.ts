/** Runs h2load and reads its summary. */
import { smallPath } from "./peer.ts";
import { finish, loadCore } from "./processes.ts";
import { find } from "./tools.ts";

export type Amount = { readonly requests: number } | { readonly seconds: number };

export type Load = {
  readonly port: number;
  readonly clients: number;
  readonly streams: number;
  readonly path?: string;
  readonly uploadFile?: string;
} & Amount;

export type Loaded = { readonly requests: number; readonly perSecond: number };

/** The fields that a kubelet or a controller sends. The token is as long as a bootstrap token. */
const head = [
  "user-agent: kubelet/v1.36.1 (linux/amd64) kubernetes/bench",
  "accept: application/json",
  "accept-encoding: gzip",
  "authorization: Bearer bench1.0123456789abcdef0123456789abcdef",
];

/** Returns the summary's numbers. Fails if any request failed. */
export function summaryOf(said: string): Loaded {
  const count =
    /^requests: \d+ total, \d+ started, (\d+) done, \d+ succeeded, (\d+) failed, (\d+) errored/m.exec(said);
  const status = /^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$/m.exec(said);
  const pace = /^finished in [^,]+, ([\d.]+) req\/s/m.exec(said);
  if (count === null || status === null || pace === null)
    throw new Error(`h2load said something else:\n${said}`);
  const bad = [count[2], count[3], status[2], status[3], status[4]].reduce(
    (sum, word) => sum + Number(word),
    0,
  );
  if (bad > 0) throw new Error(`h2load saw ${bad} bad answers:\n${said}`);
  return { requests: Number(count[1]), perSecond: Number(pace[1]) };
}

/**
 * Runs h2load once with its default flow-control windows of 2^30 bytes, so that only the proxy's and the backend's
 * windows limit the flow.
 */
export async function h2load(load: Load): Promise<Loaded> {
  const amount = "requests" in load ? ["-n", String(load.requests)] : ["-D", String(load.seconds)];
  const body = load.uploadFile === undefined ? [] : ["-d", load.uploadFile];
  const command = [
    find("h2load") ?? "h2load",
    `-c${load.clients}`,
    `-m${load.streams}`,
    ...amount,
    ...body,
    ...head.flatMap((field) => ["-H", field]),
    `https://localhost:${load.port}${load.path ?? smallPath}`,
  ];
  return summaryOf(await finish(command, loadCore));
}

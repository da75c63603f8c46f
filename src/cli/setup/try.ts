/**
 * `watchkeeper try`: serves the current context's cluster at an address of this machine, until a signal. Tokens and
 * credential plugins stay with the client and pass through. The proxy presents a client certificate upstream for requests
 * with the written kubeconfig, which alone has a key for the proxy.
 */
import { X509Certificate } from "node:crypto";
import { parseArgs } from "node:util";
import { Log } from "../../admin/events/log.ts";
import { wallClock } from "../../base/clock.ts";
import { Failure, isPortTaken } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { parseConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import { Journal } from "../../events/journal.ts";
import { type Running, startWatchkeeper } from "../../main.ts";
import type { Pair } from "../../pki/pki.ts";
import { containFaults, exitCode, exitSoon, listenForSignals } from "../serve/signals.ts";
import { accessOf, kindOf, pairOf } from "./cluster-access.ts";
import { type Context, kubeconfigFiles, readContext } from "./kubeconfig.ts";
import { TryFiles, type Wanted } from "./try-files.ts";

const options = {
  kubeconfig: { type: "string" },
  context: { type: "string" },
  port: { type: "string" },
  discover: { type: "boolean", default: false },
} as const;

/** The default port; if it is taken, any free one. */
const usualPort = 7443;

/** Exit codes: 0 ended by a signal, 1 could not serve, 2 usage error or unsuitable kubeconfig. */
export async function tryOut(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options });
  const asked = askedOf(values);
  if (asked instanceof Failure) return complain(asked.message, 2);
  const { context, port = usualPort } = asked;
  const own = pairOf(context.user);
  const issued = own === undefined ? await askPlugin(context) : undefined;
  if (issued instanceof Failure) return complain(issued.message, 1);
  const pair = issued === undefined ? own : halves(issued);
  const files = await TryFiles.make(wallClock);
  // On every exit: keys must not stay on disk.
  process.once("exit", () => files.remove());
  const wanted = { ...asked, pair, port, discovers: values.discover };
  return serve(files, { wanted, mayMove: asked.port === undefined, issued });
}

type Values = {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly port?: string | undefined;
};
type Asked = Pick<Wanted, "context" | "access"> & { readonly port: number | undefined };

function askedOf(values: Values): Asked | Failure {
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
    return new Failure("bad-request", "client", `--port ${values.port ?? ""} is not a port`);
  const context = readContext(kubeconfigFiles(values.kubeconfig, process.env), values.context);
  if (context instanceof Failure) return context;
  const access = accessOf(context);
  return access instanceof Failure ? access : { context, access, port };
}

/** The code that runs plugins takes 85 MB of memory, so it is loaded only for users with a plugin. */
async function askPlugin(context: Context): Promise<Pair | undefined | Failure> {
  if (context.user["exec"] === undefined) return undefined;
  const { certificateFromPlugin } = await import("./exec-credential.ts");
  return certificateFromPlugin(context);
}

function halves({ certificate, key }: Pair): Wanted["pair"] {
  return { certificate: { text: certificate }, key: { text: key } };
}

type Serving = {
  readonly wanted: Wanted;
  /** True if no port was given, so that any free one will do. */
  readonly mayMove: boolean;
  /** A plugin's certificate; the plugin runs again before it expires. */
  readonly issued: Pair | undefined;
};

async function serve(files: TryFiles, { wanted, mayMove, issued }: Serving): Promise<number> {
  const journal = new Journal(wallClock);
  const log = new Log(journal, { out: process.stderr, clock: wallClock, format: "Text", accessLog: "None" });
  const signals = listenForSignals();
  containFaults(journal, signals.raise);
  const around = { journal, droppedLogLines: () => log.dropped };
  let running = await start(files, wanted, around);
  if (running instanceof Failure && mayMove && isPortTaken(running))
    running = await start(files, { ...wanted, port: 0 }, around);
  if (running instanceof Failure) {
    exitSoon(1);
    return complain(running.message, 1);
  }
  const address = running.addresses.get("try") ?? "";
  introduce(wanted, address, files.writeKubeconfig(wanted, address));
  const stopRenewing = issued === undefined ? () => {} : renew(files, wanted.context, issued);
  await signals.first;
  stopRenewing();
  await running.stop(signals.hurry);
  files.remove();
  exitSoon(exitCode());
  return exitCode();
}

type Around = Parameters<typeof startWatchkeeper>[1];

function start(files: TryFiles, wanted: Wanted, around: Around): Promise<Running | Failure> {
  const { text, file } = files.writeConfig(wanted);
  const config = parseConfig(text, file);
  if (!isProblems(config)) return startWatchkeeper(config, around);
  return Promise.resolve(new Failure("bad-file", "client", config.map(lineOf).join("\n")));
}

/** Only the line to copy goes to stdout. */
function introduce({ context, access, pair }: Wanted, address: string, kubeconfig: string): void {
  const as =
    pair === undefined
      ? `${kindOf(context.user)}, which passes through`
      : "a client certificate, which watchkeeper presents for you";
  process.stderr.write(`${context.name}: ${access.origin} behind https://${address}, as ${as}\n`);
  process.stderr.write("In another terminal (Ctrl-C here ends it and removes the file):\n");
  process.stdout.write(`export KUBECONFIG=${kubeconfig}\n`);
}

/** Runs the plugin again after four fifths of its certificate's lifetime, and soon again if that fails. */
function renew(files: TryFiles, context: Context, issued: Pair): () => void {
  const look = async (): Promise<void> => {
    const outcome = await askPlugin(context);
    if (outcome instanceof Failure) complain(outcome.message, 1);
    const fresh = outcome instanceof Failure ? undefined : outcome;
    if (fresh !== undefined) files.renew(fresh);
    cancel = after(fresh);
  };
  const after = (pair: Pair | undefined): (() => void) =>
    wallClock.after(
      Math.max(limits.execRetryMs, pair === undefined ? 0 : lifeMs(pair) * 0.8),
      () => void look(),
    );
  let cancel = after(issued);
  return () => cancel();
}

function lifeMs({ certificate }: Pair): number {
  return new X509Certificate(certificate).validToDate.getTime() - wallClock.wall();
}

function complain(text: string, code: number): number {
  process.stderr.write(`${text}\n`);
  return code;
}

/**
 * `watchkeeper try`: serves the cluster of the kubeconfig's current context at a local address, until a signal. Tokens
 * pass through the proxy, and the client runs its credential plugin itself. If the user has a client certificate, the
 * proxy presents it to the apiserver, but only for clients with the kubeconfig that `try` writes.
 */
import { X509Certificate } from "node:crypto";
import { wallClock } from "../../../base/clock.ts";
import { Failure, isPortTaken } from "../../../base/failure.ts";
import { type Running, startWatchkeeper } from "../../../main.ts";
import { parseConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import type { Pair } from "../../pki/pki.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { beginServing, exitCode, exitSoon } from "../serve/signals.ts";
import { accessOf, type Context, kindOf, kubeconfigFiles, pairOf, readContext } from "./kubeconfig.ts";
import { TryFiles, type TryOptions } from "./try-files.ts";

/** Minimum ms between two runs of the credential plugin, even if a run fails or its certificate expires sooner. */
const pluginRetryMs = 30_000;

const usualPort = 7443;

/** Exit codes: 0 ended by a signal, 1 could not serve, 2 usage error or unsuitable kubeconfig. */
export async function tryOut(args: string[]): Promise<number> {
  const options = given("try", args);
  if (options instanceof Failure) return failed(options);
  const port = options.whole("port", undefined, [0, 65_535]);
  if (port instanceof Failure) return failed(port);
  const context = readContext(
    kubeconfigFiles(options.text("kubeconfig"), process.env),
    options.text("context"),
  );
  if (context instanceof Failure) return complain(context.message, 2);
  const access = accessOf(context);
  if (access instanceof Failure) return complain(access.message, 2);
  const own = pairOf(context.user);
  const issued = own === undefined ? await askPlugin(context) : undefined;
  if (issued instanceof Failure) return complain(issued.message, 1);
  const pair = issued === undefined ? own : halves(issued);
  const files = await TryFiles.make(wallClock);
  // Removes the keys from the disk at any exit of the process.
  process.once("exit", () => files.remove());
  const wanted = { context, access, pair, port: port ?? usualPort, discovers: options.has("discover") };
  return serve(files, { wanted, mayMove: port === undefined, issued });
}

/**
 * Runs the user's credential plugin, if there is one. The code for this takes 85 MB of memory, so it is loaded only if
 * it is needed.
 */
async function askPlugin(context: Context): Promise<Pair | undefined | Failure> {
  if (context.user["exec"] === undefined) return undefined;
  const { certificateFromPlugin } = await import("./exec-credential.ts");
  return certificateFromPlugin(context);
}

function halves({ certificate, key }: Pair): TryOptions["pair"] {
  return { certificate: { text: certificate }, key: { text: key } };
}

type Serving = {
  readonly wanted: TryOptions;
  /** True if the user named no port, so that a free port may replace a default port that is in use. */
  readonly mayMove: boolean;
  /**
   * The credential plugin's certificate; undefined: there is no plugin. The plugin runs again before this certificate
   * expires.
   */
  readonly issued: Pair | undefined;
};

async function serve(files: TryFiles, { wanted, mayMove, issued }: Serving): Promise<number> {
  const { signals, parts } = beginServing({ out: process.stderr, format: "Text", accessLog: "None" });
  let running = await start(files, wanted, parts);
  if (running instanceof Failure && mayMove && isPortTaken(running))
    running = await start(files, { ...wanted, port: 0 }, parts);
  if (running instanceof Failure) return exitSoon(complain(running.message, 1));
  const address = running.addresses.get("try") ?? "";
  introduce(wanted, address, files.writeKubeconfig(wanted, address));
  const stopRenewing = issued === undefined ? () => {} : renew(files, wanted.context, issued);
  await signals.first;
  stopRenewing();
  await running.stop(signals.hurry);
  files.remove();
  return exitSoon(exitCode());
}

function start(
  files: TryFiles,
  wanted: TryOptions,
  parts: Parameters<typeof startWatchkeeper>[1],
): Promise<Running | Failure> {
  const { text, file } = files.writeConfig(wanted);
  const config = parseConfig(text, file);
  if (!isProblems(config)) return startWatchkeeper(config, parts);
  return Promise.resolve(new Failure("bad-file", "client", config.map(lineOf).join("\n")));
}

/** Only the line that the user copies goes to stdout. Everything else goes to stderr. */
function introduce({ context, access, pair }: TryOptions, address: string, kubeconfig: string): void {
  const as =
    pair === undefined
      ? `${kindOf(context.user)}, which passes through`
      : "a client certificate, which watchkeeper presents for you";
  process.stderr.write(`${context.name}: ${access.origin} behind https://${address}, as ${as}\n`);
  process.stderr.write("In another terminal (Ctrl-C here ends it and removes the file):\n");
  process.stdout.write(`export KUBECONFIG=${kubeconfig}\n`);
}

/**
 * Runs the credential plugin again after a failure, and after 80 % of its certificate's validity. Returns a function
 * that stops this.
 */
function renew(files: TryFiles, context: Context, issued: Pair): () => void {
  const look = async (): Promise<void> => {
    const outcome = await askPlugin(context);
    if (outcome instanceof Failure) complain(outcome.message, 1);
    const fresh = outcome instanceof Failure ? undefined : outcome;
    if (fresh !== undefined) files.renew(fresh);
    cancel = after(fresh);
  };
  const after = (pair: Pair | undefined): (() => void) =>
    wallClock.after(Math.max(pluginRetryMs, pair === undefined ? 0 : lifeMs(pair) * 0.8), () => void look());
  let cancel = after(issued);
  return () => cancel();
}

function lifeMs({ certificate }: Pair): number {
  return new X509Certificate(certificate).validToDate.getTime() - wallClock.wall();
}

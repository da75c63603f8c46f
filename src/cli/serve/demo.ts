import { parseArgs } from "node:util";
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { type FaultKind, faultKinds } from "../../demo/apiserver/embedded.ts";
import { Demo } from "../../demo/story/demo.ts";
import { Story } from "../../demo/story/story.ts";

const usage = "usage: watchkeeper demo [--port N] [--once] [--faults LIST]\n";
/** Long enough for the backend to be declared dead, and for the naive proxy's clients to notice. */
const faultMs = 5_000;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * `watchkeeper demo [--port N] [--once] [--faults LIST]`: starts two apiservers, the proxy in front of them and a client,
 * then plays the faults of LIST (default: all; "none") with and without watchkeeper. Serves until a signal. `--once` exits
 * after the last fault, with 1 if watchkeeper's client noticed one.
 */
export async function demo(args: string[]): Promise<number> {
  const options = optionsOf(args);
  if (options instanceof Failure) {
    process.stderr.write(`${options.message}\n${usage}`);
    return 2;
  }
  // Installed before any resource is made: an unhandled signal would leave its files and apiservers behind.
  const signals = untilSignal();
  const started = await Demo.start(options.port);
  if (started instanceof Failure) {
    signals.forget();
    process.stderr.write(`Cannot start the demo: ${started.message}\n`);
    return 1;
  }
  const isOver = (): boolean => signals.first.aborted;
  if (isOver()) {
    await started.stop(signals.second);
    signals.forget();
    return 0;
  }
  introduce(started);
  const client = started.client();
  const story = new Story({ client, clock: wallClock, say });
  const failure = await tell(started, story, { ...options, signal: signals.first });
  if (failure !== undefined) process.stderr.write(`The demo failed: ${failure.message}\n`);
  if (!options.once && !isOver()) {
    say("\nThe demo continues with a write every two seconds (Ctrl-C ends it).");
    signals.first.addEventListener("abort", () => story.end());
    await story.goOn();
  }
  story.end();
  client.close();
  await started.stop(signals.second);
  signals.forget();
  return failure === undefined ? 0 : 1;
}

async function tell(
  started: Demo,
  story: Story,
  { once, faults, signal }: Options & { readonly signal: AbortSignal },
): Promise<Failure | undefined> {
  const failure = await story.begin();
  if (failure !== undefined) return failure;
  if (!once) invite(started, faults.length > 0);
  if (faults.length === 0 || signal.aborted) return undefined;
  say("\nOne apiserver after the other fails, the one that serves most. The same client, 20 GETs a second");
  say("and 4 watches, runs through watchkeeper and through a naive proxy (node:http2, piped):");
  return started.playFaults({ faults, faultMs, say, signal });
}

type Options = {
  readonly port: number | undefined;
  readonly once: boolean;
  readonly faults: readonly FaultKind[];
};

function optionsOf(args: string[]): Options | Failure {
  try {
    const { values } = parseArgs({
      args,
      options: { port: { type: "string" }, once: { type: "boolean" }, faults: { type: "string" } },
    });
    const faults = faultsOf(values.faults);
    if (faults instanceof Failure) return faults;
    const port = values.port === undefined ? undefined : Number(values.port);
    if (port === undefined || (Number.isInteger(port) && port >= 0 && port <= 65_535))
      return { port, once: values.once === true, faults };
    return new Failure("bad-request", "client", `--port ${values.port ?? ""} is not a port`);
  } catch (reason) {
    return failureFrom(reason, "client");
  }
}

function faultsOf(list: string | undefined): readonly FaultKind[] | Failure {
  if (list === undefined) return faultKinds;
  if (list === "none") return [];
  const wanted = list.split(",");
  const known = wanted.flatMap((name) => faultKinds.filter((kind) => kind === name));
  if (known.length === wanted.length) return known;
  return new Failure("bad-request", "client", `--faults ${list}: they are ${faultKinds.join()} or none`);
}

function introduce({ address, adminAddress, pageAddress, backendPorts }: Demo): void {
  say("watchkeeper demo: two apiservers, each behind its own process, and the proxy in front of them");
  backendPorts.forEach((port, index) => say(`  apiserver-${index + 1}  https://127.0.0.1:${port}`));
  say(`  proxy        https://${address}  serving ${process.uptime().toFixed(2)} s after the start`);
  say(`  metrics      http://${adminAddress}/metrics`);
  say(`  admin page   http://${pageAddress}/`);
  say("\nA client writes and watches through the proxy:");
}

function invite({ kubeconfig }: Demo, hasFaults: boolean): void {
  const kubectl = `kubectl --kubeconfig ${kubeconfig}`;
  say(`\nTry it yourself${hasFaults ? ", also during the faults" : ""}:`);
  say(`  ${kubectl} get configmaps -w`);
  say(`  ${kubectl} create configmap hello --from-literal=from=me`);
}

/** The first signal ends the demo gracefully, the second at once. */
function untilSignal(): { first: AbortSignal; second: AbortSignal; forget: () => void } {
  const first = new AbortController();
  const second = new AbortController();
  const heard = (): void => {
    if (first.signal.aborted) second.abort();
    else first.abort();
  };
  process.on("SIGINT", heard);
  process.on("SIGTERM", heard);
  const forget = (): void => {
    process.off("SIGINT", heard);
    process.off("SIGTERM", heard);
  };
  return { first: first.signal, second: second.signal, forget };
}

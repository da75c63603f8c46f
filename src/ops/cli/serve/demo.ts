import { type FaultKind, faultKinds } from "../../../../demo/apiserver/embedded.ts";
import { Demo } from "../../../../demo/story/demo.ts";
import { Story } from "../../../../demo/story/story.ts";
import { wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { given, usage } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { listenForSignals } from "./signals.ts";

/** Duration of a fault in milliseconds, long enough for watchkeeper and the naive proxy to find the backend dead. */
const faultMs = 5_000;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * `watchkeeper demo [--port N] [--once] [--faults LIST]`: starts two apiservers, the proxy in front of them, and a
 * client. Then injects the faults in LIST (default: all; "none": no fault), compares watchkeeper with a naive proxy,
 * and serves until a signal. With `--once`, exits after the last fault. The exit code is then 1 if watchkeeper's client
 * noticed a fault.
 */
export async function demo(args: string[]): Promise<number> {
  const options = optionsOf(args);
  if (options instanceof Failure) return failed(options);
  // Signals are handled before anything is started. Otherwise a signal could leave files and apiservers behind.
  const { drain: signal, hurry } = listenForSignals();
  const isOver = (): boolean => signal.aborted;
  const started = await Demo.start(options.port);
  if (started instanceof Failure) return complain(`Cannot start the demo: ${started.message}`, 1);
  if (isOver()) {
    await started.stop(hurry);
    return 0;
  }
  introduce(started);
  const client = started.client();
  const story = new Story({ client, clock: wallClock, say });
  const failure = await play(started, story, { ...options, signal });
  if (failure !== undefined) complain(`The demo failed: ${failure.message}`, 1);
  if (!options.once && !isOver()) {
    say("\nThe demo continues with a write every two seconds (Ctrl-C ends it).");
    signal.addEventListener("abort", () => story.end());
    await story.goOn();
  }
  story.end();
  client.close();
  await started.stop(hurry);
  return failure === undefined ? 0 : 1;
}

async function play(
  started: Demo,
  story: Story,
  { once, faults, signal }: DemoOptions & { readonly signal: AbortSignal },
): Promise<Failure | undefined> {
  const failure = await story.begin();
  if (failure !== undefined) return failure;
  if (!once) invite(started, faults.length > 0);
  if (faults.length === 0 || signal.aborted) return undefined;
  say("\nOne apiserver after the other fails, the one that serves most. The same client, 20 GETs a second");
  say("and 4 watches, runs through watchkeeper and through a naive proxy (node:http2, piped):");
  return started.playFaults({ faults, faultMs, say, signal });
}

type DemoOptions = {
  readonly port: number | undefined;
  readonly once: boolean;
  readonly faults: readonly FaultKind[];
};

function optionsOf(args: string[]): DemoOptions | Failure {
  const options = given("demo", args);
  if (options instanceof Failure) return options;
  const port = options.whole("port", undefined, [0, 65_535]);
  const faults = faultsOf(options.text("faults"));
  if (port instanceof Failure) return port;
  return faults instanceof Failure ? faults : { port, once: options.has("once"), faults };
}

function faultsOf(list: string | undefined): readonly FaultKind[] | Failure {
  if (list === undefined) return faultKinds;
  if (list === "none") return [];
  const wanted = list.split(",");
  const known = wanted.flatMap((name) => faultKinds.filter((kind) => kind === name));
  if (known.length === wanted.length) return known;
  return usage(`--faults must be a list of ${faultKinds.join()}, or none, not ${quote(list)}`);
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

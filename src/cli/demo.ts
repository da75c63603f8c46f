import { parseArgs } from "node:util";
import { wallClock } from "../clock.ts";
import { Demo } from "../demo/demo.ts";
import { Story } from "../demo/story.ts";
import { Failure, failureFrom } from "../failure.ts";

const usage = "usage: watchkeeper demo [--port N] [--once]\n";
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * `watchkeeper demo [--port N] [--once]`: two apiservers in this process, the proxy in front of them, and a client that
 * shows it at work. Goes on until a signal; `--once` ends after the first writes.
 */
export async function demo(args: string[]): Promise<number> {
  const options = optionsOf(args);
  if (options instanceof Failure) {
    process.stderr.write(`${options.message}\n${usage}`);
    return 2;
  }
  const started = await Demo.start(options.port);
  if (started instanceof Failure) {
    process.stderr.write(`Cannot start the demo: ${started.message}\n`);
    return 1;
  }
  introduce(started);
  const signalled = untilSignal();
  const client = started.client();
  const story = new Story({ client, clock: wallClock, say });
  const failure = await story.begin();
  if (failure !== undefined) process.stderr.write(`The story went wrong: ${failure.message}\n`);
  if (!options.once && failure === undefined) {
    invite(started);
    await Promise.race([story.goOn(), signalled.first]);
  }
  story.end();
  client.close();
  await started.stop(signalled.second);
  signalled.forget();
  return failure === undefined ? 0 : 1;
}

type Options = { readonly port: number | undefined; readonly once: boolean };

function optionsOf(args: string[]): Options | Failure {
  try {
    const { values } = parseArgs({ args, options: { port: { type: "string" }, once: { type: "boolean" } } });
    const port = values.port === undefined ? undefined : Number(values.port);
    if (port === undefined || (Number.isInteger(port) && port >= 0 && port <= 65_535))
      return { port, once: values.once === true };
    return new Failure("bad-request", "client", `--port ${values.port ?? ""} is no port`);
  } catch (reason) {
    return failureFrom(reason, "client");
  }
}

function introduce({ address, adminAddress, backendPorts }: Demo): void {
  say("watchkeeper demo: everything runs in this process");
  backendPorts.forEach((port, index) => say(`  apiserver-${index + 1}  https://127.0.0.1:${port}`));
  say(`  proxy        https://${address}  serving ${process.uptime().toFixed(2)} s after the start`);
  say(`  metrics      http://${adminAddress}/metrics`);
  say("\nA client writes and watches through the proxy:");
}

function invite({ kubeconfig }: Demo): void {
  const kubectl = `kubectl --kubeconfig ${kubeconfig}`;
  say("\nIt goes on, a write every two seconds. Try it yourself (Ctrl-C ends the demo):");
  say(`  ${kubectl} get configmaps -w`);
  say(`  ${kubectl} create configmap hello --from-literal=from=me`);
}

/** The first signal ends the demo gracefully, the second one at once. */
function untilSignal(): { first: Promise<void>; second: AbortSignal; forget: () => void } {
  const hurry = new AbortController();
  const first = Promise.withResolvers<void>();
  let count = 0;
  const heard = (): void => {
    count += 1;
    if (count === 1) first.resolve();
    else hurry.abort();
  };
  process.on("SIGINT", heard);
  process.on("SIGTERM", heard);
  const forget = (): void => {
    process.off("SIGINT", heard);
    process.off("SIGTERM", heard);
  };
  return { first: first.promise, second: hurry.signal, forget };
}

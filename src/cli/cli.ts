/** The commands, by name. Exit codes: 0 ok, 1 the answer is bad, 2 usage or invalid config, 3 admin unreachable. */
import { failureFrom } from "../failure.ts";
import { isSuccessor } from "./handover.ts";

type Command = {
  readonly summary: string;
  /** What may stand behind the name. */
  readonly options: string;
  readonly run: (args: string[]) => Promise<number>;
};

// Each loads what it needs and no more: `version` should not wait for the whole proxy.
const commands: Record<string, Command> = {
  demo: {
    summary: "show it at work, no cluster needed",
    options: "[--port N] [--once] [--faults LIST]",
    run: async (args) => (await import("./demo.ts")).demo(args),
  },
  run: {
    summary: "serve, as a configuration file says",
    options: "--config FILE [--pid-file FILE]",
    run: async (args) => (await import("./run.ts")).run(args),
  },
  sidecar: {
    summary: "serve one pod, without a configuration",
    options: "[--print-config] [--port N] [--metrics-port N] [--direct DIR] [--shared DIR] [--state DIR]",
    run: async (args) => (await import("./sidecar.ts")).sidecar(args),
  },
  manifest: {
    summary: "print a workload with a sidecar in it",
    options: "sidecar -f FILE [--image IMAGE] [--port N] [--metrics-port N]",
    run: async (args) => (await import("./manifest.ts")).manifest(args),
  },
  try: {
    summary: "serve the current kubectl context on this machine",
    options: "[--kubeconfig FILE] [--context NAME] [--port N] [--discover]",
    run: async (args) => (await import("./try.ts")).tryOut(args),
  },
  check: {
    summary: "say whether a configuration would serve",
    options: "--config FILE [--offline]",
    run: async (args) => (await import("./check.ts")).check(args),
  },
  config: {
    summary: "print a commented configuration to start from",
    options: "",
    run: async (args) => withoutArguments(args) ?? (await import("./config.ts")).config(),
  },
  pki: {
    summary: "make certificates, or a request for one",
    options: "init|csr [--dir DIR] [--host NAME]... [--signer NAME] [--name NAME]",
    run: async (args) => (await import("./pki.ts")).pki(args),
  },
  version: {
    summary: "print the version",
    options: "",
    run: async (args) => withoutArguments(args) ?? (await import("./version.ts")).version(),
  },
};

function usage(): string {
  const rows = Object.entries(commands).map(([name, { summary, options }]) =>
    `  ${name.padEnd(10)}${summary.padEnd(48)}${options}`.trimEnd(),
  );
  return `usage: watchkeeper COMMAND [options]\n\n${rows.join("\n")}\n`;
}

function usageOf(name: string, { summary, options }: Command): string {
  return `${`usage: watchkeeper ${name} ${options}`.trimEnd()}\n\n  ${summary}\n`;
}

function complain(text: string): number {
  process.stderr.write(text);
  return 2;
}

/** Undefined when there are none; else the exit code, with the first of them named. */
function withoutArguments([first]: string[]): number | undefined {
  return first === undefined ? undefined : complain(`Unexpected argument "${first}"\n`);
}

async function runCommand(name: string, command: Command, args: string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(usageOf(name, command));
    return 0;
  }
  try {
    return await command.run(args);
  } catch (reason) {
    // parseArgs' own message names the option; anything else that gets here is a fault and shows its stack.
    const isUsage =
      reason instanceof TypeError && "code" in reason && String(reason.code).startsWith("ERR_PARSE_ARGS");
    if (!isUsage) throw reason;
    return complain(`${failureFrom(reason, "client").message}\n${usageOf(name, command)}`);
  }
}

function main([name = "", ...args]: string[]): Promise<number> {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return runCommand(name, command, args);
  if (["--version", "-v"].includes(name)) return main(["version"]);
  if (["help", "--help", "-h"].includes(name)) {
    process.stdout.write(usage());
    return Promise.resolve(0);
  }
  return Promise.resolve(complain(`${name === "" ? "" : `Unknown command "${name}"\n\n`}${usage()}`));
}

process.channel?.unref();
// Started through bin/watchkeeper.js by an older Node: when that one is gone, nobody can signal us any more. A successor
// outlives who started it.
if (!isSuccessor()) process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));

process.exitCode = await main(process.argv.slice(2));

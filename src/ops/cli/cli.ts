/** Runs a command. Exit codes: 0 success, 1 negative result, 2 invalid usage or configuration, 3 API unreachable. */
import { wallClock } from "../../base/clock.ts";
import { Failure, wordsOf } from "../../base/failure.ts";
import { ownVersion } from "../program/version.ts";
import { type CommandName, commands, isCommand } from "./commands/commands.ts";
import { unsafeEnvironment } from "./commands/environment.ts";
import { helpOf, overview } from "./commands/help.ts";
import { given } from "./commands/options.ts";
import { complain, failed } from "./commands/screen.ts";
import { isSuccessor } from "./serve/handover.ts";

/** Each command imports its own modules, so that `version` does not load the whole proxy. */
const runs: Readonly<Record<CommandName, (args: string[]) => Promise<number>>> = {
  demo: async (args) => (await import("./serve/demo.ts")).demo(args),
  incident: async (args) => (await import("./serve/incident.ts")).incident(args),
  run: async (args) => (await import("./serve/run.ts")).run(args),
  sidecar: async (args) => (await import("./deploy/sidecar.ts")).sidecar(args),
  manifest: async (args) => (await import("./deploy/manifest.ts")).manifest(args),
  import: async (args) => (await import("./setup/import.ts")).importFile(args),
  try: async (args) => (await import("./setup/try.ts")).tryOut(args),
  check: async (args) => (await import("./serve/check.ts")).check(args),
  config: async (args) => (await import("./serve/config.ts")).config(args),
  pki: async (args) => (await import("./setup/pki.ts")).pki(args),
  status: async (args) => (await import("./client/status.ts")).status(args),
  get: async (args) => (await import("./client/get.ts")).get(args),
  explain: async (args) => (await import("./client/explain.ts")).explain(args),
  top: async (args) => (await import("./client/top.ts")).top(args),
  tap: async (args) => (await import("./client/tap.ts")).tap(args),
  drain: async (args) => (await import("./client/operate.ts")).operate("drain", args),
  undrain: async (args) => (await import("./client/operate.ts")).operate("undrain", args),
  move: async (args) => (await import("./client/operate.ts")).operate("move", args),
  limit: async (args) => (await import("./client/limit.ts")).limit(args),
  limits: async (args) => (await import("./client/get.ts")).get(["limits", ...args]),
  unlimit: async (args) => (await import("./client/operate.ts")).operate("unlimit", args),
  reload: async (args) => (await import("./client/operate.ts")).operate("reload", args),
  bundle: async (args) => (await import("./bundle/bundle.ts")).bundle(args),
  docs: async (args) => (await import("./docs.ts")).docs(args),
  completion: async (args) => (await import("./completion.ts")).completion(args),
  version: (args) => Promise.resolve(version(args)),
};

function version(args: string[]): number {
  const options = given("version", args);
  if (options instanceof Failure) return failed(options);
  process.stdout.write(`watchkeeper ${ownVersion()} (node ${process.versions.node})\n`);
  return 0;
}

/** The commands that connect to backends. They do not start in an environment that weakens TLS or HTTP. */
const connecting: ReadonlySet<CommandName> = new Set(["run", "check", "try", "demo", "incident"]);

function runCommand(name: CommandName, args: string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(helpOf(name, commands[name]));
    return Promise.resolve(0);
  }
  const problem = connecting.has(name) ? unsafeEnvironment(process.env, process.execArgv) : undefined;
  return problem === undefined ? runs[name](args) : Promise.resolve(complain(problem, 2));
}

function main([name = "", ...args]: string[]): Promise<number> {
  if (isCommand(name)) return runCommand(name, args);
  if (["--version", "-v"].includes(name)) return main(["version"]);
  if (["help", "--help", "-h"].includes(name)) {
    process.stdout.write(overview());
    return Promise.resolve(0);
  }
  const unknown = name === "" ? "" : `Unknown command "${name}"\n\n`;
  return Promise.resolve(complain(`${unknown}${overview()}`.trimEnd(), 2));
}

process.channel?.unref();
// If Node is too old, bin/watchkeeper.js starts this process with a newer Node and passes signals on to it. Once that
// parent has exited, no more signals arrive, so this process ends. Only a successor outlives its parent.
if (!isSuccessor()) process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));

// Without this listener, `get watches | head` would end with an error when `head` closes the pipe.
process.stdout.on("error", () => {});

process.exitCode = await main(process.argv.slice(2)).catch((reason: unknown) => {
  wallClock.after(100, () => process.exit(1));
  return complain(`An internal error ended the command: ${wordsOf(reason)}`, 1);
});

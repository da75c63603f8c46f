/** The commands, by name. Exit codes: 0 ok, 1 the answer is bad, 2 usage or invalid config, 3 admin unreachable. */
type Command = { readonly summary: string; readonly run: (args: string[]) => Promise<number> };

// Each loads what it needs and no more: `version` should not wait for the whole proxy.
const commands: Record<string, Command> = {
  demo: {
    summary: "show it at work, no cluster needed: [--port N] [--once]",
    run: async (args) => (await import("./demo.ts")).demo(args),
  },
  run: {
    summary: "serve, as a configuration file says: --config FILE",
    run: async (args) => (await import("./run.ts")).run(args),
  },
  check: {
    summary: "say whether a configuration would serve: --config FILE [--offline]",
    run: async (args) => (await import("./check.ts")).check(args),
  },
  config: {
    summary: "print a commented configuration to start from",
    run: async () => (await import("./config.ts")).config(),
  },
  version: { summary: "print the version", run: async () => (await import("./version.ts")).version() },
};

function usage(): string {
  const rows = Object.entries(commands).map(([name, command]) => `  ${name.padEnd(12)}${command.summary}`);
  return `usage: watchkeeper COMMAND [options]\n\n${rows.join("\n")}\n`;
}

const [name = "", ...args] = process.argv.slice(2);
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (command === undefined) {
  const isHelp = name === "help" || name === "--help" || name === "-h";
  (isHelp ? process.stdout : process.stderr).write(usage());
  process.exitCode = isHelp ? 0 : 2;
} else {
  process.exitCode = await command.run(args);
}

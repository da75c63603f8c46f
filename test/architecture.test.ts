import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("architecture");

/** folder -> folders it may import from. "root" is src/*.ts except main.ts. */
const may: Record<string, readonly string[]> = {
  root: ["root"],
  h2: ["h2", "root"],
  watch: ["watch", "root"],
  health: ["health", "root"],
  incidents: ["incidents", "root"],
  ledger: ["ledger", "root"],
  proxy: ["proxy", "h2", "watch", "health", "ledger", "root"],
  admin: ["admin", "incidents", "root"],
  main: ["root", "proxy", "h2", "health", "watch", "admin"],
  // `check` judges certificates with the listener's own eyes, and a list of backends with discovery's.
  // `explain` says what a kind of incident means.
  cli: ["cli", "root", "main", "demo", "proxy", "health", "admin", "incidents"],
  demo: ["demo", "root", "main", "h2", "proxy"],
};

/** Whose types anyone of these may see, since they only show what the others do. */
const onlookers = new Set(["admin", "cli", "demo"]);

/** The only files that may open a socket, a file or a child process; folders end in a slash. */
const io = [
  "src/version.ts",
  "src/main.ts",
  "src/read-text.ts",
  "src/descriptors.ts",
  "src/watch-files.ts",
  // node:net as the judge of what is an IP address; it opens nothing.
  "src/address.ts",
  "src/proxy/listen.ts",
  "src/proxy/intake.ts",
  "src/proxy/detect.ts",
  "src/proxy/h1.ts",
  "src/proxy/connect.ts",
  "src/proxy/read-into.ts",
  "src/proxy/socket.ts",
  "src/proxy/splice.ts",
  "src/proxy/passthrough.ts",
  "src/proxy/certificates.ts",
  // Contexts and their options; it opens nothing.
  "src/proxy/server-context.ts",
  "src/proxy/handshake.ts",
  // TLS between two ends of a pipe inside the process.
  "src/proxy/self-handshake.ts",
  "src/admin/server/server.ts",
  "src/admin/http/page-files.ts",
  "src/admin/server/secure-server.ts",
  "src/health/probes/",
  "src/health/discover.ts",
  "src/health/kubernetes-child.ts",
  "src/health/account-request.ts",
  "src/health/discover-child.ts",
  "src/cli/",
  "src/demo/",
];
const ioModule =
  /^(node:(net|tls|http|https|http2|dgram|dns|fs|child_process)(\/.*)?|undici|http2-proxy|@kubernetes\/client-node)$/;

type Import = { readonly from: string; readonly typeOnly: boolean };

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(import|export)( type)?\b[^;]*?from "([^"]+)";$/gm)].map((match) => ({
    from: match[3] ?? "",
    typeOnly: match[2] !== undefined,
  }));
}

function folderOf(file: string): string {
  const parts = file.split("/");
  if (file === "src/main.ts") return "main";
  return parts.length === 2 ? "root" : (parts[1] ?? "");
}

const sources = globSync("src/**/*.ts");

test("every import stays inside the layers", () => {
  const broken: string[] = [];
  for (const file of sources) {
    for (const { from, typeOnly } of importsOf(file)) {
      if (!from.startsWith(".")) continue;
      const target = folderOf(normalize(join(dirname(file), from)));
      const folder = folderOf(file);
      if (onlookers.has(folder) && typeOnly) continue;
      if (may[folder]?.includes(target) !== true) broken.push(`${file} -> ${from}`);
    }
  }
  assert.equal(broken, []);
});

/** Files that still import each other in a circle. The list only ever shrinks. */
const circles: string[][] = [];

test("no files import each other in a circle, type imports counted", () => {
  const graph = new Map(
    sources.map((file) => [
      file,
      importsOf(file)
        .filter(({ from }) => from.startsWith("."))
        .map(({ from }) => normalize(join(dirname(file), from))),
    ]),
  );
  assert.equal(circlesIn(graph), circles);
});

/** Strongly connected components of more than one file, each sorted (Tarjan 1972). */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    let lowest = index.size;
    index.set(file, lowest);
    const depth = stack.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!index.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next)) lowest = Math.min(lowest, index.get(next) ?? 0);
    }
    if (lowest === index.get(file)) {
      const circle = stack.splice(depth - 1);
      if (circle.length > 1) found.push(circle.toSorted());
    }
    return lowest;
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return found;
}

test("only the named files touch the outside world", () => {
  const broken: string[] = [];
  for (const file of sources) {
    const allowed = io.some((place) => file === place || (place.endsWith("/") && file.startsWith(place)));
    for (const { from, typeOnly } of importsOf(file)) {
      if (ioModule.test(from) && !typeOnly && !allowed) broken.push(`${file} -> ${from}`);
    }
  }
  assert.equal(broken, []);
});

/** Read by more than one file on purpose: undici by probes and the CLI's admin client. */
const shared = new Map([
  ["undici", 2],
  // As values of ours, and as text of somebody else's that is edited.
  ["yaml", 2],
  // In the discovery's child, and for the CLI's `try`, which runs credential plugins.
  ["@kubernetes/client-node", 2],
]);

/** A package is reached through one file, so replacing it is one file's work. */
test("every package is imported by exactly one source file", () => {
  const users = new Map<string, string[]>();
  for (const file of sources) {
    for (const { from } of importsOf(file)) {
      if (!from.startsWith(".") && !from.startsWith("node:"))
        users.set(from, [...(users.get(from) ?? []), file]);
    }
  }
  assert.equal(
    [...users].filter(([name, files]) => files.length > (shared.get(name) ?? 1)),
    [],
  );
});

/** The steps in reading order: a step may import an earlier one's types, nothing else of a step. */
const steps = ["listen", "classify", "identify", "choose", "dial", "relay", "respond"];

test("a step of the data path imports no other step", () => {
  const broken: string[] = [];
  for (const file of sources) {
    const at = steps.findIndex((step) => file === `src/proxy/${step}.ts`);
    if (at < 0) continue;
    for (const { from, typeOnly } of importsOf(file)) {
      const other = steps.findIndex((step) => from === `./${step}.ts`);
      if (other >= 0 && !(typeOnly && other < at)) broken.push(`${file} -> ${from}`);
    }
  }
  assert.equal(broken, []);
});

test("no file of the repository names a path of the machine it was written on", () => {
  const broken = globSync("{src,test,bench,config,bin}/**/*.{ts,js,yaml,json,md,sh}", {
    exclude: ["**/node_modules/**"],
  }).filter((file) => /["'` ]\/(work|farm)\//.test(readFileSync(file, "utf8")));
  assert.equal(broken, []);
});

test("every source file is named in ARCHITECTURE.md", () => {
  const page = readFileSync("ARCHITECTURE.md", "utf8");
  const unnamed = sources.filter(
    (file) => !page.includes(`\`${file.split("/").at(-1)}\``) && !page.includes(`\`${file}\``),
  );
  assert.equal(unnamed, []);
});

test("every test file runs its suite", () => {
  const silent = globSync("test/**/*.test.ts").filter(
    (file) => !/^\w+\.run\(\);$/m.test(readFileSync(file, "utf8")),
  );
  assert.equal(silent, []);
});

test("every source file has a test of the same name", () => {
  const exempt = new Set([
    "src/main.ts",
    "src/clock.ts",
    "src/limits.ts",
    "src/window-limits.ts",
    "src/demo/objects/demo-limits.ts",
    "src/cli/cli.ts",
  ]);
  const untested = sources.filter((file) => !exempt.has(file) && hasCode(file) && !hasTest(file));
  assert.equal(untested, []);
});

/** A file of types alone has nothing to run. */
function hasCode(file: string): boolean {
  return /^export (async )?(function|class|const)\b/m.test(readFileSync(file, "utf8"));
}

function hasTest(file: string): boolean {
  const path = file.replace(/^src\//, "").replace(/\.ts$/, ".test.ts");
  return globSync(`test/{processes/,}${path}`).length === 1;
}

test.run();

import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { count } from "./house/count.ts";
import { budgets, type Room, roomFor } from "./house/rooms.ts";

const test = suite("architecture");

/**
 * For each folder below src, the folders that its files may import. The rows are in order: a folder imports only from
 * folders of rows above its own. "src" is src/main.ts.
 */
const mayImport: Readonly<Record<string, string>> = {
  base: "",
  events: "base",
  config: "base",
  kube: "base",
  x509: "base",
  "h2/core": "base",
  "h2/hpack": "base h2/core",
  "h2/frame": "h2/core h2/hpack",
  "h2/session": "base h2/core h2/hpack h2/frame",
  health: "base events",
  "health/probes": "base events health",
  program: "",
  http: "base x509",
  discovery: "base events config program http",
  ledger: "base",
  incidents: "base events",
  pki: "base",
  watch: "",
  "watch/codec": "base kube",
  "watch/cache": "base kube watch watch/codec",
  "proxy/h1": "base kube h2/core",
  "proxy/net": "base events x509",
  "proxy/identity": "base config h2/core x509",
  "proxy/context": "base kube h2/core ledger proxy/net proxy/identity",
  "proxy/tls": "base events config health/probes x509 proxy/net proxy/identity",
  "proxy/load": "base kube h2/core",
  "proxy/upstream": "base events h2/core h2/session health proxy/net proxy/identity proxy/context",
  "watch/session":
    "base events kube h2/core watch watch/codec watch/cache proxy/identity proxy/context proxy/upstream",
  "watch/migration": "base events health ledger watch watch/cache proxy/upstream watch/session",
  "proxy/admission": "base",
  "proxy/limits": "base config events kube health ledger proxy/context proxy/upstream proxy/admission",
  "proxy/observe":
    "base events kube h2/core ledger watch/codec watch/cache proxy/identity proxy/context watch/session",
  "proxy/request":
    "base events config kube h2/core health watch/codec watch/cache proxy/identity proxy/context proxy/upstream watch/session watch/migration proxy/load proxy/admission proxy/limits proxy/observe",
  "watch/detectors":
    "base events kube h2/core health watch watch/cache proxy/context proxy/upstream watch/session watch/migration proxy/request",
  "proxy/balance": "base proxy/context proxy/upstream watch/session watch/migration proxy/request",
  "proxy/overload": "base events h2/core proxy/request",
  "proxy/tunnel":
    "base events config kube h2/core health health/probes proxy/h1 proxy/net proxy/identity proxy/context proxy/upstream proxy/limits proxy/request proxy/overload",
  "proxy/downstream":
    "base events config h2/core h2/session proxy/h1 proxy/net proxy/identity proxy/context proxy/tls proxy/admission proxy/request proxy/tunnel",
  "proxy/cluster":
    "base events config kube h2/core health health/probes discovery watch/cache proxy/net proxy/identity proxy/context proxy/tls proxy/load proxy/upstream watch/migration proxy/admission proxy/limits proxy/observe proxy/request watch/detectors proxy/balance proxy/overload proxy/tunnel proxy/downstream",
  workers: "base events config discovery health program proxy/tls proxy/observe proxy/cluster",
  "admin/http": "base events program",
  "admin/metrics": "base events incidents kube proxy/tunnel proxy/cluster",
  "admin/events": "base events kube admin/http",
  "admin/history": "base events ledger proxy/request admin/http admin/metrics",
  "admin/replicas": "base config events discovery http x509 admin/http",
  "admin/api":
    "base ledger incidents program watch/session proxy/limits proxy/observe proxy/request proxy/cluster admin/http admin/metrics admin/events admin/history admin/replicas",
  "admin/authorization": "base events kube discovery admin/http",
  "admin/server":
    "base events config program proxy/net proxy/tls admin/http admin/metrics admin/events admin/authorization",
  "admin/tracing": "base events program proxy/observe admin/events",
  "admin/workers":
    "base events workers proxy/cluster proxy/limits proxy/request admin/http admin/metrics admin/history admin/api",
  admin:
    "base events config incidents proxy/limits proxy/request proxy/cluster admin/http admin/metrics admin/events admin/history admin/replicas admin/api admin/authorization admin/server admin/workers",
  src: "base events config program h2/core proxy/net proxy/observe proxy/request proxy/overload proxy/downstream proxy/cluster workers admin/server admin/tracing admin/workers admin",
  "demo/objects": "base kube",
  "demo/apiserver": "base pki program demo/objects",
  "demo/story": "base events config pki program src demo/objects demo/apiserver",
  "demo/incidents": "base events pki src demo/objects demo/apiserver demo/story",
  "cli/commands": "base config program",
  "cli/serve":
    "base events config discovery incidents program proxy/net proxy/identity proxy/tls proxy/cluster admin/events workers src demo/apiserver demo/story demo/incidents cli/commands",
  "cli/deploy": "base events config pki program proxy/tls src cli/commands cli/serve",
  "cli/setup": "base config pki src cli/commands cli/serve cli/deploy",
  "cli/client": "base config incidents program http admin/http cli/commands",
  "cli/bundle": "base program admin/events cli/commands cli/client",
  cli: "base program cli/commands cli/serve",
  "page/data": "admin/api",
};
const mostFiles = { folder: 15, root: 10 };

/**
 * The only files that may open a socket, a file or a child process. An entry that ends in a slash stands for all files
 * of that folder.
 */
const io = [
  "src/program/version.ts",
  "src/main.ts",
  "src/base/read-text.ts",
  "src/proxy/net/bind.ts",
  "src/proxy/net/descriptors.ts",
  "src/proxy/net/handle-channel.ts",
  "src/proxy/cluster/peer-sockets.ts",
  "src/base/file-watcher.ts",
  // Uses node:net only to check IP addresses, and opens no socket.
  "src/base/address.ts",
  "src/proxy/downstream/listen.ts",
  "src/workers/worker-process.ts",
  "src/proxy/downstream/h1-connection.ts",
  "src/proxy/downstream/intake.ts",
  "src/proxy/net/connect.ts",
  "src/proxy/net/read-into.ts",
  "src/proxy/net/tls-writer.ts",
  "src/proxy/net/socket.ts",
  "src/proxy/tunnel/upgrade-handler.ts",
  "src/proxy/tunnel/passthrough.ts",
  "src/proxy/tls/certificates.ts",
  // Creates TLS contexts and their options, and opens no socket.
  "src/proxy/tls/server-context.ts",
  "src/proxy/tls/handshake.ts",
  // Compares the names of a certificate, and opens no socket.
  "src/x509/trust.ts",
  // Uses TLS only over an in-memory pipe inside the process.
  "src/admin/server/server.ts",
  "src/admin/http/page-files.ts",
  "src/admin/server/secure-server.ts",
  "src/admin/replicas/replica-client.ts",
  "src/health/probes/",
  "src/discovery/discover.ts",
  "src/discovery/kubernetes-child.ts",
  "src/discovery/transport.ts",
  "src/http/http-client.ts",
  "src/discovery/discover-child.ts",
  "src/cli/",
  "src/demo/",
];
const ioModule =
  /^(node:(net|tls|http|https|http2|dgram|dns|fs|child_process)(\/.*)?|http2-proxy|@kubernetes\/client-node)$/;

type Import = { readonly from: string; readonly typeOnly: boolean };

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(import|export)( type)?\b[^;]*?from "([^"]+)";$/gm)].map((match) => ({
    from: match[3] ?? "",
    typeOnly: match[2] !== undefined,
  }));
}

/** Returns the folder of a file: "proxy/tls" for "src/proxy/tls/pem.ts", and "src" for a file directly in src. */
function folderOf(file: string): string {
  const folder = dirname(file);
  return folder === "src" ? folder : folder.slice("src/".length);
}

const sources = globSync("src/**/*.ts");

function namesIn(row: string | undefined): string[] {
  return row === undefined || row === "" ? [] : row.split(" ");
}

test("every folder of src has a row in the table, and every row a folder", () => {
  assert.equal(Object.keys(mayImport).toSorted(), [...new Set(sources.map(folderOf))].toSorted());
});

test("a row names only rows above it, and only what the folder really imports", () => {
  const order = Object.keys(mayImport);
  const used = new Map<string, Set<string>>();
  for (const file of sources) {
    const targets = used.get(folderOf(file)) ?? new Set();
    used.set(folderOf(file), targets);
    for (const target of importedFolders(file)) targets.add(target);
  }
  const broken: string[] = [];
  for (const [at, folder] of order.entries()) {
    for (const name of namesIn(mayImport[folder])) {
      if (order.indexOf(name) >= at || order.indexOf(name) < 0)
        broken.push(`${folder}: ${name} stands below it`);
      if (used.get(folder)?.has(name) !== true) broken.push(`${folder}: ${name} is not imported`);
    }
  }
  assert.equal(broken, []);
});

test("a file imports only from the folders of its row, type imports counted", () => {
  const broken: string[] = [];
  for (const file of sources) {
    const row = namesIn(mayImport[folderOf(file)]);
    for (const target of importedFolders(file))
      if (!row.includes(target)) broken.push(`${file} -> ${target}`);
  }
  assert.equal(broken, []);
});

test("every file of src belongs to a room, and no room is longer than its budget", () => {
  assert.equal(
    sources.filter((file) => roomFor(file) === undefined),
    [],
  );
  const { lines } = count(join(import.meta.dirname, ".."));
  const longer = Object.entries(budgets).filter(([room, most]) => lines[room as Room] > most);
  assert.equal(
    longer.map(([room, most]) => `${room}: ${lines[room as Room]} lines, at most ${most}`),
    [],
  );
});

test("a folder has at most 15 files, and src itself at most 10", () => {
  const counts = new Map<string, number>();
  for (const file of sources) counts.set(folderOf(file), (counts.get(folderOf(file)) ?? 0) + 1);
  const most = (folder: string): number => (folder === "src" ? mostFiles.root : mostFiles.folder);
  assert.equal(
    [...counts].filter(([folder, files]) => files > most(folder)),
    [],
  );
});

/** The folders of src, other than its own, that the file imports from. */
function importedFolders(file: string): string[] {
  return importsOf(file)
    .filter(({ from }) => from.startsWith("."))
    .map(({ from }) => normalize(join(dirname(file), from)))
    .filter((target) => target.startsWith("src/"))
    .map(folderOf)
    .filter((folder) => folder !== folderOf(file));
}

test("no files import each other in a circle, type imports counted", () => {
  const graph = new Map(
    sources.map((file) => [
      file,
      importsOf(file)
        .filter(({ from }) => from.startsWith("."))
        .map(({ from }) => normalize(join(dirname(file), from))),
    ]),
  );
  assert.equal(circlesIn(graph), []);
});

/** Returns the strongly connected components of more than one file, each sorted (Tarjan 1972). */
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

/** Packages that more than one file imports on purpose, with the number of files. */
const shared = new Map([
  // One file parses the proxy's own YAML to values; the other edits the text of other projects' YAML.
  ["yaml", 2],
  // One file runs in the discovery's child process; the other, for `watchkeeper try`, runs credential plugins.
  ["@kubernetes/client-node", 2],
]);

/** Only one file imports each package, so replacing a package changes only one file. */
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

test("no file of the repository names a path of the machine it was written on", () => {
  const broken = globSync("{src,test,bench,config,bin}/**/*.{ts,js,yaml,json,md,sh}", {
    exclude: ["**/node_modules/**"],
  }).filter((file) => /["'` ]\/(work|farm)\//.test(readFileSync(file, "utf8")));
  assert.equal(broken, []);
});

test("every folder of src is named in ARCHITECTURE.md", () => {
  const page = readFileSync("ARCHITECTURE.md", "utf8");
  assert.equal(
    Object.keys(mayImport).filter((folder) => !page.includes(`\`${folder}\``)),
    [],
  );
});

test("ARCHITECTURE.md has at most 1,200 words", () => {
  const words = readFileSync("ARCHITECTURE.md", "utf8").match(/\S*\w\S*/g) ?? [];
  assert.ok(words.length <= 1_200, `${words.length} words`);
});

test("every test file runs its suite", () => {
  const silent = globSync("test/**/*.test.ts").filter(
    (file) => !/^\w+\.run\(\);$/m.test(readFileSync(file, "utf8")),
  );
  assert.equal(silent, []);
});

test.run();

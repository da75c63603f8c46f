import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { count } from "./house/count.ts";
import { budgets, exceptions, layerOf, layers, type Room, roomFor } from "./house/rooms.ts";

const test = suite("architecture");

/**
 * For each folder below src, the folders that its files may import. The rows are in order: a folder imports only from
 * folders of rows above its own. "src" is src/main.ts.
 */
const mayImport: Readonly<Record<string, string>> = {
  base: "",
  events: "base",
  "ops/config": "base",
  kube: "base",
  x509: "base",
  "h2/core": "base",
  "h2/hpack": "base h2/core",
  "h2/frame": "h2/core h2/hpack",
  "h2/session": "base h2/core h2/hpack h2/frame",
  health: "base events",
  "health/probes": "base events health",
  "ops/program": "",
  "ops/http": "base x509",
  "ops/discovery": "base events ops/config ops/program ops/http",
  "ops/ledger": "base",
  "ops/incidents": "base events",
  "ops/pki": "base",
  watch: "",
  "watch/codec": "base kube",
  "watch/cache": "base kube watch watch/codec",
  "proxy/h1": "base kube h2/core",
  "upstream/net": "base events x509",
  "upstream/identity": "base ops/config h2/core x509",
  "upstream/context": "base kube h2/core ops/ledger upstream/net upstream/identity",
  "proxy/tls": "base events ops/config health/probes x509 upstream/net upstream/identity",
  "proxy/load": "base kube h2/core",
  "upstream/pool": "base events h2/core h2/session health upstream/net upstream/identity upstream/context",
  "watch/session":
    "base events kube h2/core watch watch/codec watch/cache upstream/identity upstream/context upstream/pool",
  "watch/migration": "base events health ops/ledger watch watch/cache upstream/pool watch/session",
  "proxy/admission": "base",
  "proxy/limits":
    "base ops/config events kube health ops/ledger upstream/context upstream/pool proxy/admission",
  "proxy/observe":
    "base events kube h2/core ops/ledger watch/codec watch/cache upstream/identity upstream/context watch/session",
  "proxy/request":
    "base events ops/config kube h2/core health watch/codec watch/cache upstream/identity upstream/context upstream/pool watch/session watch/migration proxy/load proxy/admission proxy/limits proxy/observe",
  "watch/detectors":
    "base events kube h2/core health watch watch/cache upstream/context upstream/pool watch/session watch/migration proxy/request",
  "proxy/balance": "base upstream/context upstream/pool watch/session watch/migration proxy/request",
  "proxy/overload": "base events h2/core proxy/request",
  "proxy/tunnel":
    "base events ops/config kube h2/core health health/probes proxy/h1 upstream/net upstream/identity upstream/context upstream/pool proxy/limits proxy/request proxy/overload",
  "proxy/downstream":
    "base events ops/config h2/core h2/session proxy/h1 upstream/net upstream/identity upstream/context proxy/tls proxy/admission proxy/request proxy/tunnel",
  "proxy/cluster":
    "base events ops/config kube h2/core health health/probes ops/discovery watch/cache upstream/net upstream/identity upstream/context proxy/tls proxy/load upstream/pool watch/migration proxy/admission proxy/limits proxy/observe proxy/request watch/detectors proxy/balance proxy/overload proxy/tunnel proxy/downstream",
  "fleet/workers":
    "base events ops/config ops/discovery health ops/program proxy/tls proxy/observe proxy/cluster",
  "ops/admin/http": "base events ops/program",
  "ops/admin/metrics": "base events ops/incidents kube proxy/tunnel proxy/cluster",
  "ops/admin/events": "base events kube ops/admin/http",
  "ops/admin/history": "base events ops/ledger proxy/request ops/admin/http ops/admin/metrics",
  "fleet/replicas": "base ops/config events ops/discovery ops/http x509 ops/admin/http",
  "ops/admin/api":
    "base ops/ledger ops/incidents ops/program watch/session proxy/limits proxy/observe proxy/request proxy/cluster ops/admin/http ops/admin/metrics ops/admin/events ops/admin/history fleet/replicas",
  "ops/admin/authorization": "base events kube ops/discovery ops/admin/http",
  "ops/admin/server":
    "base events ops/config ops/program upstream/net proxy/tls ops/admin/http ops/admin/metrics ops/admin/events ops/admin/authorization",
  "ops/admin/tracing": "base events ops/program proxy/observe ops/admin/events",
  "fleet/reports":
    "base events fleet/workers proxy/cluster proxy/limits proxy/request ops/admin/http ops/admin/metrics ops/admin/history ops/admin/api",
  "ops/admin":
    "base events ops/config ops/incidents proxy/limits proxy/request proxy/cluster ops/admin/http ops/admin/metrics ops/admin/events ops/admin/history fleet/replicas ops/admin/api ops/admin/authorization ops/admin/server fleet/reports",
  src: "base events ops/config ops/program h2/core upstream/net proxy/observe proxy/request proxy/overload proxy/downstream proxy/cluster fleet/workers ops/admin/server ops/admin/tracing fleet/reports ops/admin",
  "demo/objects": "base kube",
  "demo/apiserver": "base ops/pki ops/program demo/objects",
  "demo/story": "base events ops/config ops/pki ops/program src demo/objects demo/apiserver",
  "demo/incidents": "base events ops/pki src demo/objects demo/apiserver demo/story",
  "ops/cli/commands": "base ops/config ops/program",
  "ops/cli/serve":
    "base events ops/config ops/discovery ops/incidents ops/program upstream/net upstream/identity proxy/tls proxy/cluster ops/admin/events fleet/workers src demo/apiserver demo/story demo/incidents ops/cli/commands",
  "ops/cli/deploy": "base events ops/config ops/pki ops/program proxy/tls src ops/cli/commands ops/cli/serve",
  "ops/cli/setup": "base ops/config ops/pki src ops/cli/commands ops/cli/serve ops/cli/deploy",
  "ops/cli/client": "base ops/config ops/incidents ops/program ops/http ops/admin/http ops/cli/commands",
  "ops/cli/bundle": "base ops/program ops/admin/events ops/cli/commands ops/cli/client",
  "ops/cli": "base ops/program ops/cli/commands ops/cli/serve",
  "ops/page/data": "ops/admin/api",
};
const mostFiles = { folder: 15, root: 10 };

/**
 * The only files that may open a socket, a file or a child process. An entry that ends in a slash stands for all files
 * of that folder.
 */
const io = [
  "src/ops/program/version.ts",
  "src/main.ts",
  "src/base/read-text.ts",
  "src/upstream/net/bind.ts",
  "src/upstream/net/descriptors.ts",
  "src/upstream/net/handle-channel.ts",
  "src/proxy/cluster/peer-sockets.ts",
  "src/base/file-watcher.ts",
  // Uses node:net only to check IP addresses, and opens no socket.
  "src/base/address.ts",
  "src/proxy/downstream/listen.ts",
  "src/fleet/workers/worker-process.ts",
  "src/proxy/downstream/h1-connection.ts",
  "src/proxy/downstream/intake.ts",
  "src/upstream/net/connect.ts",
  "src/upstream/net/read-into.ts",
  "src/upstream/net/tls-writer.ts",
  "src/upstream/net/socket.ts",
  "src/proxy/tunnel/upgrade-handler.ts",
  "src/proxy/tunnel/passthrough.ts",
  "src/proxy/tls/certificates.ts",
  // Creates TLS contexts and their options, and opens no socket.
  "src/proxy/tls/server-context.ts",
  "src/proxy/tls/handshake.ts",
  // Compares the names of a certificate, and opens no socket.
  "src/x509/trust.ts",
  // Uses TLS only over an in-memory pipe inside the process.
  "src/ops/admin/server/server.ts",
  "src/ops/admin/http/page-files.ts",
  "src/ops/admin/server/secure-server.ts",
  "src/fleet/replicas/replica-client.ts",
  "src/health/probes/",
  "src/ops/discovery/discover.ts",
  "src/ops/discovery/kubernetes-child.ts",
  "src/ops/discovery/transport.ts",
  "src/ops/http/http-client.ts",
  "src/ops/discovery/discover-child.ts",
  "src/ops/cli/",
  "demo/",
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

/** Returns the folder of a file: "proxy/tls" for "src/proxy/tls/pem.ts", "src" for a file directly in src. */
function folderOf(file: string): string {
  const folder = dirname(file);
  return folder.startsWith("src/") ? folder.slice("src/".length) : folder;
}

const sources = globSync(["src/**/*.ts", "demo/**/*.ts"]);

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

test("rooms have one-way doors, but for the imports that are counted as exceptions", () => {
  const found: Record<string, number> = {};
  for (const file of sources) {
    for (const { from } of importsOf(file)) {
      const target = normalize(join(dirname(file), from));
      if (!from.startsWith(".") || !/^(src|demo)\//.test(target)) continue;
      const pair = [layerOf(file), layerOf(target)];
      assert.ok(
        pair.every((layer) => layers.includes(layer)),
        `${file} -> ${target}`,
      );
      if (layers.indexOf(pair[1] ?? "") > layers.indexOf(pair[0] ?? ""))
        found[pair.join(" to ")] = (found[pair.join(" to ")] ?? 0) + 1;
    }
  }
  assert.equal(found, exceptions);
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
    .filter((target) => /^(src|demo)\//.test(target))
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

/**
 * Every TLS client of the program refuses a server of a foreign CA, even if NODE_TLS_REJECT_UNAUTHORIZED=0 tells Node to
 * accept any server.
 */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { DemoClient } from "../../demo/story/client.ts";
import { wallClock } from "../../src/base/clock.ts";
import { Failure, wordsOf } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { replicaClient } from "../../src/fleet/replicas/replica-client.ts";
import { TraceExporter } from "../../src/ops/admin/tracing/trace-exporter.ts";
import { AdminClient } from "../../src/ops/cli/client/admin-client.ts";
import { askBackend } from "../../src/ops/cli/serve/ask-backend.ts";
import { KubernetesChild } from "../../src/ops/discovery/kubernetes-child.ts";
import { AccountTransport } from "../../src/ops/discovery/transport.ts";
import { createAuthority } from "../../src/ops/pki/pki.ts";
import { type BackendAddress, connectUpgrade, openSocket } from "../../src/upstream/net/connect.ts";
import { testPki } from "../support/pki.ts";
import { traceOf } from "../support/trace.ts";
import { within } from "../support/within.ts";

const test = suite("flows/server-verification");

const untrusted = /unable to verify|self.signed|UNABLE_TO_VERIFY|another CA|certificate/i;
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-foreign-"));
const foreignCa = join(directory, "ca.crt");
const kubeconfig = join(directory, "kubeconfig");
let server: http2.Http2SecureServer;
let requests = 0;
let port = 0;
let address: BackendAddress;
let ca: string;

test.before(async () => {
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  const { serving } = await testPki();
  ca = (await createAuthority({ name: "foreign", clock: wallClock })).certificate;
  writeFileSync(foreignCa, ca);
  writeFileSync(join(directory, "token"), "a-token");
  server = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  server.on("request", (_request, response) => {
    requests += 1;
    response.end("{}");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  ({ port } = server.address() as AddressInfo);
  address = { name: "b", host: "127.0.0.1", port, tls: { ca, serverName: "localhost", source: undefined } };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        { name: "c", cluster: { server: `https://localhost:${port}`, "certificate-authority": foreignCa } },
      ],
      users: [{ name: "u", user: { token: "a-token" } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    }),
  );
});

test.after(() => {
  Reflect.deleteProperty(process.env, "NODE_TLS_REJECT_UNAUTHORIZED");
  server.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Returns what a socket reports first: "connected", or the message of its error. */
function outcomeOf(alpn: "h2" | "http/1.1"): Promise<string> {
  const socket = openSocket(address, alpn);
  return new Promise((resolve) => {
    socket.once("secureConnect", () => resolve("connected"));
    socket.once("error", (reason) => resolve(reason.message));
  }).finally(() => socket.destroy()) as Promise<string>;
}

function told(outcome: unknown): string {
  return outcome instanceof Failure ? outcome.message : JSON.stringify(outcome);
}

const request = { path: "/api", timeoutMs: 5000 };
const access = () => ({ servers: [], caFile: foreignCa, serverName: "localhost" });

const clients: Readonly<Record<string, () => Promise<string>>> = {
  "upstream connection": () => outcomeOf("h2"),
  "probe, acceptance test": () => outcomeOf("http/1.1"),
  Upgrade: async () =>
    told(
      await connectUpgrade(address, { keepalive: { idleMs: 10_000, intervalMs: 10_000, count: 3 } }, 5000),
    ),
  check: async () => told(await askBackend(address, wallClock, 5000)),
  "in-pod discovery and reviews": () => {
    const transport = new AccountTransport(access, directory);
    return transport.ask(`https://localhost:${port}`, request).then(told, wordsOf);
  },
  "discovery with a kubeconfig": () => {
    const child = new KubernetesChild({ kubeconfigFile: kubeconfig, access, name: "discovery" });
    return child
      .ask("", request)
      .then(told, wordsOf)
      .finally(() => child.abort());
  },
  replicas: async () => {
    const target = {
      name: "r",
      address: { host: "localhost", port },
      tls: { caFile: foreignCa, serverName: undefined },
    };
    return told(
      await replicaClient(wallClock)(target, { path: "/", headers: {}, timeoutMs: 5000, mostBytes: 100 }),
    );
  },
  "command line": async () => {
    const client = AdminClient.at(`https://localhost:${port}`, {}, { ca: foreignCa });
    return client instanceof Failure ? client.message : told(await client.list("backends", {}, 10));
  },
  traces: async () => {
    const journal = new Journal(wallClock);
    const { promise, resolve } = Promise.withResolvers<string>();
    journal.subscribe((entry) => {
      if (entry.kind === "tracing.failed") resolve(entry.reason);
    });
    const exporter = new TraceExporter({ clock: wallClock, journal });
    exporter.configure(`https://localhost:${port}/v1/traces`);
    exporter.take(traceOf());
    const reason = await promise;
    await exporter.stop();
    return reason;
  },
  demo: async () => {
    const client = new DemoClient({ port, ca });
    return (await client.ask("GET /api")) === 0 ? "the certificate was refused" : "connected";
  },
};

for (const [name, ask] of Object.entries(clients))
  test(`${name}: a server of a foreign CA is refused although the environment turns verification off`, async () => {
    const before = requests;
    const outcome = await within(20_000, "an outcome", ask());
    assert.match(outcome, untrusted, outcome);
    assert.is(requests, before, "no request has reached the server");
  });

/** The files with a TLS client, and where each states that it verifies the server. */
const stated: Readonly<Record<string, string>> = {
  "src/ops/admin/tracing/export-thread-main.ts": "deleteProperty",
  "demo/story/client.ts": "rejectUnauthorized: true",
  "demo/story/naive-proxy.ts": "rejectUnauthorized: true",
  "src/ops/http/http-client.ts": "rejectUnauthorized: options.rejectUnauthorized !== false",
  "src/upstream/net/connect.ts": "rejectUnauthorized: true",
  // `clientTls` itself.
  "src/x509/trust.ts": "rejectUnauthorized: true",
  // Connects only to itself, over a pipe in memory, to test a certificate.
  "src/proxy/tls/certificates.ts": "rejectUnauthorized: false",
  // The socket comes from openSocket in upstream/net/connect.ts.
  "src/ops/cli/serve/ask-backend.ts": "openSocket",
};

test("each file with a TLS client is known here, and says that it verifies its server", () => {
  const opens =
    /\btls\.connect\(|\bhttp2\.connect\(|\bhttps\.(request|get)\(|httpsRequest\(|request: open|OTLPTraceExporter\(|\bfetch\(`?https|undici/;
  const found = globSync(["src/**/*.ts", "demo/**/*.ts"], { exclude: ["src/**/*.d.ts"] }).filter((file) =>
    opens.test(readFileSync(file, "utf8")),
  );
  assert.equal([...found, "src/x509/trust.ts"].toSorted(), Object.keys(stated).toSorted());
  for (const [file, text] of Object.entries(stated)) assert.match(readFileSync(file, "utf8"), text, file);
});

test.run();

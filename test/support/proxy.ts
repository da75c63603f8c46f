/** Starts a whole proxy on real sockets in front of backends that echo the request line. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { Reloads } from "../../src/ops/cli/serve/reloads.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { testPki } from "./pki.ts";

export type TestProxy = {
  readonly running: Running;
  /** "https://localhost:…" of the TLS listener. */
  readonly url: string;
  readonly port: number;
  readonly plainPort: number;
  readonly ca: string;
  readonly directory: string;
  readonly entries: readonly Entry[];
  /** The entries that the log and the event stream get. */
  readonly paced: readonly Entry[];
  readonly backends: readonly TestBackend[];
  stop(): Promise<void>;
};

export type TestBackend = {
  readonly name: string;
  readonly port: number;
  readonly server: http2.Http2SecureServer;
  stop(): void;
};

/** Starts a backend that answers with its name and the request line. The path `/status/N` gets the status N. */
async function startBackend(name: string, isProbed: boolean): Promise<TestBackend> {
  const { serving } = await testPki();
  const server = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  if (isProbed)
    server.on("request", (request, response) => {
      // Health probes use HTTP/1.1. HTTP/2 streams are answered below.
      if (request.httpVersionMajor === 1) response.end("ok");
    });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.on("error", () => {});
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const asked = /^\/status\/(\d+)/.exec(headers[":path"] ?? "");
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      if (stream.destroyed) return;
      stream.respond({
        ":status": Number(asked?.[1] ?? 200),
        "content-type": "text/plain",
        "x-backend": name,
      });
      stream.end(`${name} ${headers[":method"]} ${headers[":path"]} ${Buffer.concat(chunks).length}`);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    name,
    port,
    server,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}

/** A backend that the test itself runs, and the CA of its certificate. */
export type PlayedTarget = { readonly name: string; readonly port: number; readonly ca: string };

export type ProxyOptions = {
  readonly backends?: number;
  /** If true, the backends started here answer health probes. Otherwise they become suspect after some seconds. */
  readonly isProbed?: boolean;
  /** More backends, in addition to those started here. */
  readonly targets?: readonly PlayedTarget[];
  /** YAML to append to the configuration file. */
  readonly extra?: string;
  /** More YAML lines of listeners. */
  readonly listeners?: string;
  readonly port?: number;
  /** More members of the TLS listener, as YAML in flow style: `identity: {clientCerts: FrontProxy}`. */
  readonly listener?: string;
  readonly listenerTls?: string;
  readonly upstreamTls?: string;
  /** Port of the JSON API; default: any free one. */
  readonly apiPort?: number;
  /** More members of the admin section, as YAML in flow style. */
  readonly admin?: string;
  /** More members of the drain section, as YAML in flow style. */
  readonly drain?: string;
  /** If true, the proxy reloads its configuration when the file changes and on request, as the command `run` does. */
  readonly isFollowing?: boolean;
  /** Files to write beside the configuration: content by name. */
  readonly files?: Readonly<Record<string, string>>;
};

export async function startProxy(options: ProxyOptions = {}): Promise<TestProxy> {
  const { authority, serving } = await testPki();
  const directory = mkdtempSync(join(tmpdir(), "watchkeeper-test-"));
  writeFileSync(join(directory, "tls.crt"), serving.certificate);
  writeFileSync(join(directory, "tls.key"), serving.key, { mode: 0o600 });
  for (const [name, content] of Object.entries(options.files ?? {}))
    writeFileSync(join(directory, name), content, { mode: 0o600 });
  const more = (text: string | undefined): string =>
    text === undefined ? "" : `, ${text.replaceAll(/\s*\n\s*/g, " ")}`;
  const targets = options.targets ?? [];
  const authorities = [authority.certificate, ...targets.map(({ ca }) => ca)];
  writeFileSync(join(directory, "ca.crt"), authorities.join("\n"));
  const backends = await Promise.all(
    Array.from({ length: options.backends ?? 1 }, (_, index) =>
      startBackend("abc"[index] ?? "z", options.isProbed === true),
    ),
  );
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners:
  - {name: kube, address: "127.0.0.1:${options.port ?? 0}", tls: {certFile: tls.crt, keyFile: tls.key${more(options.listenerTls)}}${more(options.listener)}}
  - {name: local, address: "127.0.0.1:0"}
${options.listeners ?? ""}
clusters:
  - name: default
    backends:
${[...backends, ...targets].map(({ name, port }) => `      - {name: ${name}, url: "https://localhost:${port}"}`).join("\n")}
    tls: {caFile: ca.crt${more(options.upstreamTls)}}
admin: {address: "127.0.0.1:${options.apiPort ?? 0}", metricsAddress: "127.0.0.1:0"${more(options.admin)}}
drain: {shutdownDelay: 10ms, timeout: 500ms${more(options.drain)}}
${options.extra ?? ""}`;
  const file = join(directory, "watchkeeper.yaml");
  writeFileSync(file, text);
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  const entries: Entry[] = [];
  const paced: Entry[] = [];
  const journal = new Journal(wallClock);
  journal.subscribe((entry) => entries.push(entry));
  journal.subscribePaced((entry) => paced.push(entry));
  const reloads = options.isFollowing === true ? new Reloads(file, journal) : undefined;
  const readAgain = reloads && { readAgain: () => reloads.now() };
  const running = await startWatchkeeper(config, { journal, ...readAgain });
  if (running instanceof Failure) {
    for (const backend of backends) backend.stop();
    throw new Error(running.message);
  }
  reloads?.apply(running);
  const portOf = (listener: string): number => Number(running.addresses.get(listener)?.split(":").at(-1));
  return {
    running,
    url: `https://localhost:${portOf("kube")}`,
    port: portOf("kube"),
    plainPort: portOf("local"),
    ca: authority.certificate,
    directory,
    entries,
    paced,
    backends,
    async stop() {
      reloads?.stop();
      await running.stop(AbortSignal.timeout(300));
      for (const backend of backends) backend.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

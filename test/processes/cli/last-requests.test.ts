/**
 * A stop that does not wait for the last requests, because of a second signal or `drain.timeout`. A write that an
 * apiserver may have started to process gets 504 without Retry-After, over HTTP/2 and HTTP/1.1, so that no client sends
 * it again (D17).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/cli/last-requests");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-last-"));
const { authority, serving } = await testPki();
const ca = authority.certificate;
for (const [name, text] of [
  ["ca.crt", ca],
  ["tls.crt", serving.certificate],
  ["tls.key", serving.key],
] as const)
  writeFileSync(join(directory, name), text);

/**
 * The backend answers /readyz and /version, which the proxy itself requests, at once. It answers everything else long
 * after the end of the test.
 */
const handled: string[] = [];
const backend = http2.createSecureServer({
  cert: serving.certificate,
  key: serving.key,
  allowHTTP1: true,
});
backend.on("sessionError", () => {});
backend.on("session", (session) => session.on("error", () => {}));
backend.on("request", (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => {
  request.on("error", () => {});
  if (["/readyz?verbose", "/version"].includes(request.url)) response.end("ok");
  else handled.push(`${request.method} ${request.url}`);
});
await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));

const children: ChildProcess[] = [];
test.after(() => {
  for (const child of children) child.kill("SIGKILL");
  backend.close();
  rmSync(directory, { recursive: true, force: true });
});

type Stopping = { readonly child: ChildProcess; readonly port: number; said(word: string): Promise<string> };

async function start(drainTimeout: string): Promise<Stopping> {
  const file = join(directory, "config.yaml");
  const backendPort = (backend.address() as AddressInfo).port;
  writeFileSync(
    file,
    `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners: [{name: local, address: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key}}]
clusters: [{name: default, backends: [{name: a, url: "https://localhost:${backendPort}"}], tls: {caFile: ca.crt}}]
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0"}
drain: {shutdownDelay: 0s, timeout: ${drainTimeout}}
`,
  );
  const child = spawn(process.execPath, ["bin/watchkeeper.js", "run", "--config", file]);
  children.push(child);
  let text = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      for (const look of waiting) look();
    });
  const said = (word: string): Promise<string> =>
    within(
      30_000,
      `${word} in the log`,
      new Promise((resolve) => {
        const look = (): void => {
          const line = text.split("\n").find((one) => one.includes(word));
          if (line === undefined) return;
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        look();
      }),
    );
  const port = Number(/:(\d+)"/.exec(await said('"listener":"local"'))?.[1]);
  await said('"to":"ready"');
  return { child, port, said };
}

type Told = { readonly status: number | string; readonly mayRepeat: boolean };

function told(status: number, headers: IncomingHttpHeaders): Told {
  return { status, mayRepeat: headers["retry-after"] !== undefined };
}

function overH2(port: number, method: string, path: string): Promise<Told> {
  const session = http2.connect(`https://localhost:${port}`, { ca });
  session.on("error", () => {});
  const stream = session.request({ ":method": method, ":path": path });
  if (method !== "GET") stream.end("{}");
  return new Promise((resolve) => {
    stream.on("response", (headers) => resolve(told(Number(headers[":status"]), headers)));
    // Go's transport retries a request that ended with REFUSED_STREAM.
    stream.on("error", () => resolve({ status: `reset ${stream.rstCode}`, mayRepeat: stream.rstCode === 7 }));
  });
}

function overH1(port: number, method: string, path: string): Promise<Told> {
  return new Promise((resolve) => {
    const options = { host: "localhost", port, method, path, ca, agent: false };
    const request = https.request(options, (response) => {
      response.resume();
      response.on("end", () => resolve(told(response.statusCode ?? 0, response.headers)));
    });
    // curl retries a request whose connection ended without a response.
    request.on("error", ({ message }) => resolve({ status: message, mayRepeat: true }));
    request.end(method === "GET" ? undefined : "{}");
  });
}

const collection = "/api/v1/namespaces/n/configmaps";

for (const [how, timeout] of [
  ["a second signal", "60s"],
  ["drain.timeout", "500ms"],
] as const) {
  test(`${how}: a write that was sent has an unknown outcome, and a read may be asked again`, async () => {
    handled.length = 0;
    const { child, port, said } = await start(timeout);
    const answers = Promise.all([
      overH2(port, "POST", `${collection}?h2`),
      overH1(port, "POST", `${collection}?h1`),
      overH2(port, "GET", `${collection}/h2`),
      overH1(port, "GET", `${collection}/h1`),
    ]);
    await within(
      10_000,
      "all at the backend",
      (async () => {
        while (handled.length < 4) await new Promise<void>((resolve) => setTimeout(resolve, 10));
      })(),
    );
    const exit = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await said("drain.started");
    if (timeout === "60s") child.kill("SIGTERM");
    const unknown = { status: 504, mayRepeat: false };
    const again = { status: 503, mayRepeat: true };
    assert.equal(await within(10_000, "the answers", answers), [unknown, unknown, again, again]);
    assert.is(await within(10_000, "the exit", exit), 0);
    assert.equal(handled.length, 4, "each was executed once");
  });
}

test.run();

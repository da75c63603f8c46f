import { readFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.ts";
import { serverName } from "./rig/apiserver.ts";
import { call } from "./rig/call.ts";
import { runFolder } from "./rig/folder.ts";
import { figure, pathOf, testWith } from "./rig/parts.ts";
import { Pki } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/h2spec");
const real = testWith(test, ["openssl", "setpriv", "h2spec"]);

/** 145 cases, and one more that h2spec runs only with --strict. */
const cases = 146;

/**
 * Starts a backend that answers every request with 200 after it has read the request. h2spec expects 200 for GET and
 * POST without credentials. It skips a flow-control test if the response body has less than five bytes.
 */
async function startBackend(pki: Pki): Promise<{ url: string; stop: () => void }> {
  const pair = pki.issue({
    name: "backend",
    subject: "/CN=backend",
    names: [`DNS:${serverName}`, "IP:127.0.0.1"],
  });
  const server: Http2SecureServer = createSecureServer(
    { key: readFileSync(pair.keyFile), cert: readFileSync(pair.certFile), allowHTTP1: true },
    (request, reply) => request.resume().on("end", () => reply.end("five bytes or more")),
  );
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined); // h2spec causes connection errors on purpose
  });
  const port = await freePort();
  const { promise, resolve } = Promise.withResolvers<undefined>();
  server.listen(port, "127.0.0.1", () => resolve(undefined));
  await promise;
  const stop = (): void => {
    server.close();
    for (const session of sessions) session.destroy();
  };
  return { url: `https://127.0.0.1:${port}`, stop };
}

real(`h2spec --strict passes ${cases} of ${cases} on the TLS listener`, async () => {
  const { folder, remove } = runFolder();
  const pki = new Pki(folder);
  const backend = await startBackend(pki);
  const proxy = await Proxy.start({ folder, pki, backends: [{ name: "yes", url: backend.url }] });
  try {
    const args = [
      "--strict",
      "--tls",
      "--insecure",
      "--host=127.0.0.1",
      `--port=${proxy.port}`,
      "--timeout=2",
    ];
    const { out } = await call(pathOf("h2spec"), args, { timeoutMs: 420_000 });
    const [, total, passed, skipped, failed] =
      /(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed/.exec(out) ?? [];
    figure(`h2spec ${passed ?? "?"} of ${total ?? "?"} passed`);
    assert.ok(proxy.isRunning, `the proxy ended:\n${proxy.tail()}`);
    const failures = out.slice(Math.max(0, out.indexOf("Failures:")));
    assert.is(`${total} ${passed} ${skipped} ${failed}`, `${cases} ${cases} 0 0`, failures);
  } finally {
    await proxy.stop();
    backend.stop();
    remove();
  }
});

test.run();

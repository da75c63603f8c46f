import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { discoveryLimits } from "../../../src/ops/discovery/limits.ts";
import { jsonFrom, serviceUrl } from "../../../src/ops/discovery/transport.ts";
import { testPki } from "../../support/pki.ts";
import { switching } from "../../support/replicas.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/transport");

test("the service's address is what the kubelet says, in brackets where it is IPv6", () => {
  const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" };
  assert.is(serviceUrl({ ...process, env }), "https://[fd00::1]:6443");
  assert.is(serviceUrl({ ...process, env: {} }), "https://kubernetes.default.svc:443");
});

test("an answer that is late, or has no end, is none", async () => {
  const { authority, serving } = await testPki();
  const server = createServer({ cert: serving.certificate, key: serving.key }, (request, response) => {
    if (request.url === "/mute") return;
    if (request.url === "/upgrade") {
      response.socket?.write(switching);
      return;
    }
    response.on("error", () => undefined);
    response.write("x".repeat(discoveryLimits.discoveryBytes + 1));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = (path: string): Promise<string> =>
    jsonFrom(
      { origin: url, serverName: "kubernetes.default.svc", tls: { ca: authority.certificate } },
      { path, headers: {}, timeoutMs: path === "/mute" ? 100 : 10_000 },
    ).then(String, (reason: Error) => reason.message);
  assert.is(await within(20_000, "the end", ask("/mute")), "no answer in 100 ms");
  assert.is(
    await within(20_000, "the end", ask("/endless")),
    `an answer of more than ${discoveryLimits.discoveryBytes} bytes`,
  );
  assert.is(await within(5000, "the end", ask("/upgrade")), "bad upgrade");
  server.closeAllConnections();
  server.close();
});

test.run();

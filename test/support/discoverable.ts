/** Fake apiservers that publish their own addresses, for tests of backend discovery. */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { testPki } from "./pki.ts";

const servers: Server[] = [];

/** The EndpointSlice default/kubernetes: one ready apiserver at 10.0.0.1:6443. */
export const goodSlice = {
  kind: "EndpointSlice",
  apiVersion: "discovery.k8s.io/v1",
  metadata: { name: "kubernetes" },
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true }, zone: "a" }],
  ports: [{ name: "https", port: 6443, protocol: "TCP" }],
};

/** The response to a request for the list of Leases: one live apiserver at 10.0.0.2:6443. */
export const goodLeases = {
  kind: "LeaseList",
  apiVersion: "coordination.k8s.io/v1",
  metadata: {},
  items: [
    {
      metadata: {
        name: "apiserver-abcdefghijklmnopqrstuvwxyz",
        annotations: { "kubernetes.io/peer-advertise-address": "10.0.0.2:6443" },
      },
      spec: { leaseDurationSeconds: 3600, renewTime: "2999-01-01T00:00:00.000000Z" },
    },
  ],
};

export type Played = { readonly url: string; readonly asked: string[] };

/**
 * Starts an apiserver that accepts only the token "good", and answers with its own address. If `isMute` is true, it
 * accepts requests and never answers. `leases`: the Leases of which it answers pages.
 */
export async function startApiserver(
  isMute = false,
  leases: readonly object[] = goodLeases.items,
): Promise<Played> {
  const { serving } = await testPki();
  const asked: string[] = [];
  const server = createServer({ cert: serving.certificate, key: serving.key }, (request, response) => {
    asked.push(request.url ?? "");
    if (isMute) return;
    const isKnown = request.headers.authorization === "Bearer good";
    const { searchParams } = new URL(request.url ?? "", "http://a");
    const [from, limit] = ["continue", "limit"].map((name) => Number(searchParams.get(name)));
    const to = (from ?? 0) + (limit ?? 0);
    const metadata = to < leases.length ? { continue: String(to) } : {};
    const page = { ...goodLeases, metadata, items: leases.slice(from, to) };
    const object = request.url?.includes("endpointslices") === true ? goodSlice : page;
    response.writeHead(isKnown ? 200 : 403, { "content-type": "application/json" });
    response.end(JSON.stringify(isKnown ? object : { kind: "Status", code: 403 }));
  });
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Closes all apiservers that were started. */
export function endApiservers(): void {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
}

/** A CRD with two versions, and the webhook that converts between them: `size: "3"` in v1 is `count: 3` in v2. */
import { readFileSync } from "node:fs";
import { createServer, type Server as HttpsServer } from "node:https";
import { freePort } from "../../support/free-port.ts";
import type { Cluster } from "../rig/cluster.ts";

export const group = "rig.example.com";
export type CrdVersion = "v1" | "v2";

export type Thing = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly spec: { readonly size?: string; readonly count?: number };
};

type Review = {
  readonly request: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly Thing[];
  };
};

/** True if the object has exactly the fields of this version. */
export function isOf({ apiVersion, spec }: Thing, version: CrdVersion): boolean {
  const keys = Object.keys(spec).join();
  return apiVersion === `${group}/${version}` && keys === (version === "v1" ? "size" : "count");
}

export function specOf(version: CrdVersion, count: number): Thing["spec"] {
  return version === "v1" ? { size: String(count) } : { count };
}

function convert(thing: Thing, apiVersion: string): Thing {
  const count = thing.spec.count ?? Number(thing.spec.size);
  const version = apiVersion.endsWith("/v1") ? "v1" : "v2";
  return { ...thing, apiVersion, spec: specOf(version, count) };
}

export class Webhook {
  readonly url: string;
  readonly caBundle: string;
  readonly #server: HttpsServer;
  /** Number of objects that the webhook has converted. */
  converted = 0;

  private constructor(url: string, caFile: string, server: HttpsServer) {
    this.url = url;
    this.caBundle = readFileSync(caFile).toString("base64");
    this.#server = server;
    server.on("request", (request, reply) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => reply.end(this.#answer(Buffer.concat(chunks).toString())));
      reply.setHeader("content-type", "application/json");
    });
  }

  /** Listens on the bridge, where the apiservers' network namespaces can reach it. */
  static async start({ etcdUrl, pki, caFile }: Cluster): Promise<Webhook> {
    const { hostname } = new URL(etcdUrl);
    const pair = pki.issue({ name: "webhook", subject: "/CN=webhook", names: [`IP:${hostname}`] });
    const server = createServer({ cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) });
    const port = await freePort();
    await new Promise<void>((resolve) => server.listen(port, hostname, resolve));
    return new Webhook(`https://${hostname}:${port}/convert`, caFile, server);
  }

  #answer(text: string): string {
    const { request } = JSON.parse(text) as Review;
    const { uid, desiredAPIVersion, objects } = request;
    this.converted += objects.length;
    const convertedObjects = objects.map((thing) => convert(thing, desiredAPIVersion));
    const response = { uid, result: { status: "Success" }, convertedObjects };
    return JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", response });
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export function crdVersions(storage: CrdVersion): readonly object[] {
  const versionOf = (name: CrdVersion, spec: object): object => ({
    name,
    served: true,
    storage: name === storage,
    schema: {
      openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: spec } } },
    },
  });
  return [versionOf("v1", { size: { type: "string" } }), versionOf("v2", { count: { type: "integer" } })];
}

export function crdWith({ url, caBundle }: Webhook, storage: CrdVersion): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "things", singular: "thing", kind: "Thing" },
      versions: crdVersions(storage),
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig: { url, caBundle }, conversionReviewVersions: ["v1"] },
      },
    },
  };
}

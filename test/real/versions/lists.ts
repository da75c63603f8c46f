/**
 * Lists through the proxy that are large enough for apiservers to compress, compared with lists directly from the
 * apiservers.
 */
import { gunzipSync } from "node:zlib";
import { Client, spread } from "../load/client.ts";
import type { Stage } from "../load/stage.ts";
import { order } from "../rig/ask.ts";
import { canonical } from "./cbor.ts";

const place = "/api/v1/namespaces/lists/configmaps";
/** Size in bytes of an annotation of each object. A Table and a PartialObjectMetadataList contain annotations too. */
const annotationBytes = 4_096;
/**
 * Number of objects, enough for a list of more than 128 KiB. From that size on, an apiserver compresses
 * (endpoints/handlers/responsewriters, defaultGzipThresholdBytes).
 */
const objects = 64;
/** Number of clients bound to each apiserver. */
const each = 2;

type Form = { readonly accept: string; readonly textOf: (body: Buffer) => string };

const latin = (body: Buffer): string => body.toString("latin1");

const listForms: readonly Form[] = [
  { accept: "application/json", textOf: latin },
  { accept: "application/vnd.kubernetes.protobuf", textOf: latin },
  { accept: "application/cbor,application/json", textOf: cborOrJson },
  { accept: "application/json;as=Table;v=v1;g=meta.k8s.io", textOf: withoutAges },
  { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", textOf: latin },
];

/** Returns the text of a list in CBOR, or in JSON if the apiserver does not have CBOR. */
function cborOrJson(body: Buffer): string {
  return body[0] === 0x7b ? latin(body) : canonical(body);
}

/** Replaces the age, which is the last cell of a row and changes each second. */
export function withoutAges(body: Buffer): string {
  return latin(body).replaceAll(/("cells":\[[^\]]*,)"[^"]*"\]/g, '$1"age"]');
}

export function isCompressed(body: Buffer): boolean {
  return body[0] === 0x1f && body[1] === 0x8b;
}

/** Returns the decompressed body, because two versions of Go may compress differently. */
export function inflated(body: Buffer): Buffer {
  return isCompressed(body) ? gunzipSync(body) : body;
}

type Pair = { readonly through: Buffer; readonly direct: Buffer };

/** Returns what is wrong with a list through the proxy, compared with the one directly from the same apiserver. */
export function differences({ through, direct }: Pair, textOf: Form["textOf"], isGzip: boolean): string[] {
  const both = [
    ["through the proxy", through],
    ["from the apiserver", direct],
  ] as const;
  const unasked = both.filter(([, one]) => isCompressed(one) !== isGzip);
  return [
    ...unasked.map(([way]) => `a list ${way} is ${isGzip ? "not " : ""}compressed`),
    ...(textOf(inflated(direct)) === textOf(inflated(through)) ? [] : ["a list differs"]),
  ];
}

export async function fillLists({ cluster: { admin } }: Stage): Promise<void> {
  await order(admin, { method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "lists" } } });
  for (let at = 0; at < objects; at += 1) {
    const annotations = { filler: String(at % 10).repeat(annotationBytes) };
    const body = { metadata: { name: `listed-${at}`, annotations }, data: { at: String(at) } };
    await order(admin, { method: "POST", path: place, body });
  }
}

/** Compares lists of one resource version, so that all of them must be equal. */
export async function compareLists({
  cluster,
  server,
}: Stage): Promise<{ compared: number; wrong: string[] }> {
  const text = await order(cluster.admin, { path: `${place}?limit=1` });
  const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? "";
  const path = `${place}?resourceVersion=${version}&resourceVersionMatch=Exact`;
  const addresses = cluster.apiservers.map(({ address }) => address);
  const through = await spread(server, addresses, each);
  const direct = new Map(
    cluster.apiservers.map(({ address, url }) => [address, new Client({ ...cluster.admin, url })]),
  );
  const wrong: string[] = [];
  let compared = 0;
  for (const { accept, textOf } of listForms) {
    for (const coding of ["identity", "gzip"]) {
      const headers = { accept, "accept-encoding": coding };
      for (const { client, address } of through) {
        const own = direct.get(address) as Client;
        const pair = {
          through: await bodyOf(client, path, headers),
          direct: await bodyOf(own, path, headers),
        };
        compared += 1;
        const found = differences(pair, textOf, coding === "gzip");
        wrong.push(...found.map((what) => `${accept}, ${coding}: ${what}`));
      }
    }
  }
  for (const client of [...direct.values(), ...through.map((one) => one.client)]) client.close();
  return { compared, wrong };
}

async function bodyOf(
  client: Client,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const { status, body, ending, why } = await client.ask({ path, headers });
  if (status !== 200 || ending !== "whole") throw new Error(`${path} got ${status} ${why}`);
  return body;
}

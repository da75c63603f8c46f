/** Lists through the proxy, of the size from which apiservers compress, compared with lists directly from the apiservers. */
import { gunzipSync } from "node:zlib";
import { Client } from "../load/client.ts";
import type { Stage } from "../load/stage.ts";
import { order, type Server } from "../rig/ask.ts";
import { canonical } from "./cbor.ts";

const place = "/api/v1/namespaces/lists/configmaps";
/** Each object has this in an annotation, which a Table and a PartialObjectMetadataList contain too. */
const annotationBytes = 4_096;
/** An apiserver compresses from 128 KiB on (endpoints/handlers/responsewriters, defaultGzipThresholdBytes). */
const objects = 64;
/** Of each form, so that both apiservers answer some. */
const clients = 4;

type Form = { readonly accept: string; readonly textOf: (body: Buffer) => string };

const latin = (body: Buffer): string => body.toString("latin1");

const listForms: readonly Form[] = [
  { accept: "application/json", textOf: latin },
  { accept: "application/vnd.kubernetes.protobuf", textOf: latin },
  { accept: "application/cbor,application/json", textOf: cborOrJson },
  { accept: "application/json;as=Table;v=v1;g=meta.k8s.io", textOf: withoutAges },
  { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", textOf: latin },
];

/** An apiserver without CBOR answers JSON. */
function cborOrJson(body: Buffer): string {
  return body[0] === 0x7b ? latin(body) : canonical(body);
}

/** The last cell of a row is the age, by the second. */
export function withoutAges(body: Buffer): string {
  return latin(body).replaceAll(/("cells":\[[^\]]*,)"[^"]*"\]/g, '$1"age"]');
}

export function isCompressed(body: Buffer): boolean {
  return body[0] === 0x1f && body[1] === 0x8b;
}

/** A body without its compression: two versions of Go may compress differently. */
export function inflated(body: Buffer): Buffer {
  return isCompressed(body) ? gunzipSync(body) : body;
}

/** What is wrong with a list through the proxy, beside those directly from the apiservers. */
export function differences(
  textOf: Form["textOf"],
  through: Buffer,
  direct: readonly Buffer[],
  isGzip: boolean,
): string[] {
  const notAsked = [through, ...direct].filter((one) => isCompressed(one) !== isGzip).length;
  const text = textOf(inflated(through));
  return [
    ...(notAsked === 0
      ? []
      : [`${notAsked} of ${1 + direct.length} lists are ${isGzip ? "not " : ""}compressed`]),
    ...(direct.some((one) => textOf(inflated(one)) === text) ? [] : ["a list differs"]),
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

/** Of one version, so that all are the same list. */
export async function compareLists({
  cluster,
  server,
}: Stage): Promise<{ compared: number; wrong: string[] }> {
  const text = await order(cluster.admin, { path: `${place}?limit=1` });
  const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? "";
  const path = `${place}?resourceVersion=${version}&resourceVersionMatch=Exact`;
  const wrong: string[] = [];
  let compared = 0;
  for (const { accept, textOf } of listForms) {
    for (const coding of ["identity", "gzip"]) {
      const headers = { accept, "accept-encoding": coding };
      const own = (one: Server): Promise<Buffer> => bodyOf(one, path, headers);
      const direct = await Promise.all(cluster.apiservers.map(({ url }) => own({ ...cluster.admin, url })));
      for (let client = 0; client < clients; client += 1) {
        const found = differences(textOf, await own(server), direct, coding === "gzip");
        compared += 1;
        wrong.push(...found.map((what) => `${accept}, ${coding}: ${what}`));
      }
    }
  }
  return { compared, wrong };
}

async function bodyOf(
  server: Server,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const client = new Client(server);
  const { status, body, ending, why } = await client.ask({ path, headers });
  client.close();
  if (status !== 200 || ending !== "whole") throw new Error(`${path} got ${status} ${why}`);
  return body;
}

/** The form of a response: negotiated from Accept once, for a list and for every event of a watch. */
import { type JsonMap, jsonOf, type KubeObject } from "./json.ts";
import { apiVersionOf, type Resource } from "./resources.ts";
import { partialOf, tableOf } from "./table.ts";

export type Form = "plain" | "partial" | "table";

const json = new Set(["application/json", "application/*", "*/*", ""]);
export const offered = "application/json";

/**
 * Returns the first supported entry of an Accept header, or undefined: 406. Protobuf and CBOR are not supported;
 * clients that prefer them accept JSON as well.
 */
export function formOf(accept: string): Form | undefined {
  for (const entry of accept.split(",")) {
    const [type = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const as = parameters.find((parameter) => parameter.startsWith("as="));
    if (!json.has(type)) continue;
    if (as === undefined) return "plain";
    if (!parameters.includes("g=meta.k8s.io")) continue;
    if (as === "as=Table") return "table";
    if (as.startsWith("as=PartialObjectMetadata")) return "partial";
  }
  return undefined;
}

/** What a response is rendered with: the resource, the form, and the time (for the Age column). */
export type Rendering = { readonly resource: Resource; readonly form: Form; readonly wallMs: number };

export function renderObject(object: KubeObject, rendering: Rendering, hasColumns = true): JsonMap {
  const { resource, form, wallMs } = rendering;
  if (form === "plain") return jsonOf(object);
  if (form === "partial") return partialOf(object);
  return tableOf(resource, [object], { version: object.metadata.resourceVersion, wallMs, hasColumns });
}

export function renderList(objects: readonly KubeObject[], version: number, rendering: Rendering): JsonMap {
  const { resource, form, wallMs } = rendering;
  if (form === "table")
    return tableOf(resource, objects, { version: String(version), wallMs, hasColumns: true });
  const partial = form === "partial";
  return {
    kind: partial ? "PartialObjectMetadataList" : `${resource.kind}List`,
    apiVersion: partial ? "meta.k8s.io/v1" : apiVersionOf(resource),
    metadata: { resourceVersion: String(version) },
    items: objects.map(partial ? partialOf : jsonOf),
  };
}

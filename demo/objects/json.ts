/** Immutable JSON, and objects with the metadata that every Kubernetes object has. */
import { isRecord } from "../../src/base/json.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonMap;
export type JsonMap = { readonly [key: string]: Json };

export type Metadata = {
  readonly name: string;
  /** Namespace of the object; "" for a cluster-scoped object, whose JSON omits it. */
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly labels: Readonly<Record<string, string>>;
  /** All other metadata, such as annotations and finalizers. */
  readonly rest: JsonMap;
};

export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  /** All other top-level fields, in their original order. */
  readonly fields: JsonMap;
};

export function isMap(value: unknown): value is JsonMap {
  return isRecord(value);
}

export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

export function parseJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** True if lists and maps nest at most `levels` deep. Deeper levels are not visited. */
export function isWithin(levels: number, value: Json): boolean {
  if (!isList(value) && !isMap(value)) return true;
  return levels > 0 && Object.values(value).every((child) => isWithin(levels - 1, child));
}

export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function mapOf(value: Json | undefined): JsonMap {
  return isMap(value) ? value : {};
}

/** Returns JSON with its keys in the same order as those of a real apiserver. */
export function jsonOf(object: KubeObject): JsonMap {
  return { kind: object.kind, apiVersion: object.apiVersion, metadata: metadataOf(object), ...object.fields };
}

export function metadataOf({ metadata }: KubeObject): JsonMap {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels, rest } = metadata;
  return {
    name,
    ...(namespace === "" ? {} : { namespace }),
    uid,
    resourceVersion,
    creationTimestamp,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...rest,
  };
}

/** Converts the body of a request to an object that can be stored, or to a Refusal with the reason. */
import { isMap, isWithin, type Json, type JsonMap, type KubeObject, mapOf, textOf } from "./json.ts";
import { apiVersionOf, type Resource, type Target } from "./resources.ts";
import { badRequest, invalid, Refusal } from "./status.ts";

const rfc1123Subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const longestName = 253;
/**
 * Maximum nesting depth of an object, in levels. A CRD's schema has about 60 levels. Recursive serialisation still
 * works with more than 500 levels.
 */
const jsonLevels = 500;

/** Keys of metadata that are not copied to `rest`: only the server writes them, or `Metadata` has a field for them. */
const ownedKeys = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "labels",
  "generateName",
]);

/** Returns the object in `body`, or a Refusal if it does not fit the target. `suffix` is added to a generateName. */
export function readObject(body: Json | undefined, target: Target, suffix: string): KubeObject | Refusal {
  if (!isMap(body)) return badRequest("the body of the request is not a JSON object");
  // The nesting depth is checked before the object is stored. Otherwise, a later list request, which serialises the
  // object recursively, could overflow the stack.
  if (!isWithin(jsonLevels, body)) return badRequest("the body of the request is nested too deep");
  const metadata = mapOf(body["metadata"]);
  const name = nameOf(metadata, target, suffix);
  if (name instanceof Refusal) return name;
  const labels = labelsOf(metadata["labels"], target.resource, name);
  if (labels instanceof Refusal) return labels;
  const { kind, apiVersion } = typeOf(body, target.resource);
  return (
    misplaced({ kind, apiVersion, namespace: textOf(metadata["namespace"]) }, target) ?? {
      kind,
      apiVersion,
      metadata: {
        name,
        namespace: target.namespace ?? "",
        uid: textOf(metadata["uid"]),
        resourceVersion: textOf(metadata["resourceVersion"]),
        creationTimestamp: textOf(metadata["creationTimestamp"]),
        labels,
        rest: without(metadata, ownedKeys),
      },
      fields: without(body, new Set(["kind", "apiVersion", "metadata"])),
    }
  );
}

/** Returns kind and version of the object. A body may omit them, because the request's path contains both. */
function typeOf(body: JsonMap, resource: Resource): { kind: string; apiVersion: string } {
  return {
    kind: textOf(body["kind"]) || resource.kind,
    apiVersion: textOf(body["apiVersion"]) || apiVersionOf(resource),
  };
}

type Claim = { readonly kind: string; readonly apiVersion: string; readonly namespace: string };

function misplaced({ kind, apiVersion, namespace }: Claim, target: Target): Refusal | undefined {
  const { resource } = target;
  if (kind !== resource.kind || apiVersion !== apiVersionOf(resource))
    return badRequest(`${kind} in version "${apiVersion}" cannot be handled as a ${resource.kind}`);
  if (namespace === "" || namespace === target.namespace) return undefined;
  return badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

function nameOf(metadata: JsonMap, target: Target, suffix: string): string | Refusal {
  const { resource } = target;
  const prefix = textOf(metadata["generateName"]);
  const name = textOf(metadata["name"]) || target.name || (prefix === "" ? "" : prefix + suffix);
  if (name === "")
    return invalid(resource, "", "metadata.name", "Required value: name or generateName is required");
  if (target.name !== undefined && name !== target.name) {
    const why = `the name of the object (${name}) does not match the name on the URL (${target.name})`;
    return badRequest(why);
  }
  if (name.length > longestName || !rfc1123Subdomain.test(name))
    return invalid(
      resource,
      name,
      "metadata.name",
      `Invalid value: "${name}": a lowercase RFC 1123 subdomain is needed`,
    );
  return name;
}

function labelsOf(
  value: Json | undefined,
  resource: Resource,
  name: string,
): Record<string, string> | Refusal {
  const labels: [string, string][] = [];
  for (const [key, label] of Object.entries(mapOf(value))) {
    if (typeof label !== "string")
      return invalid(resource, name, "metadata.labels", `Invalid value: "${key}": must be a string`);
    labels.push([key, label]);
  }
  return Object.fromEntries(labels);
}

function without(map: JsonMap, keys: ReadonlySet<string>): JsonMap {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !keys.has(key)));
}

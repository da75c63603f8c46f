/** Reads and writes objects for requests to the embedded apiserver. Returns a result or a Refusal. */
import { type Clock, timestampOf } from "../../src/base/clock.ts";
import {
  type Json,
  type JsonMap,
  jsonOf,
  type KubeObject,
  mapOf,
  parseJson,
  textOf,
} from "../objects/json.ts";
import { readObject } from "../objects/object.ts";
import { patches } from "../objects/patch.ts";
import { protobufType, readProtobuf } from "../objects/protobuf.ts";
import { namespaces, type Resource, type Target } from "../objects/resources.ts";
import { selectorOf } from "../objects/selector.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  methodNotAllowed,
  modified,
  notFound,
  Refusal,
  tooLargeVersion,
  unsupportedMediaType,
} from "../objects/status.ts";
import type { Source, Store } from "../objects/store.ts";

/** A request for objects, with its path and query parsed and its body as received. */
export type ObjectRequest = {
  readonly method: string;
  readonly target: Target;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: Buffer;
};

export type Result =
  | { readonly kind: "object"; readonly code: number; readonly object: KubeObject }
  | { readonly kind: "list"; readonly objects: readonly KubeObject[]; readonly version: number }
  | { readonly kind: "status"; readonly status: JsonMap };

export class Rest {
  readonly #store: Store;
  /** Serves reads with a resourceVersion, as the cache of a real apiserver does. All other reads use the store. */
  readonly #cache: Source;
  readonly #clock: Clock;
  readonly #verbs: ReadonlyMap<string, (request: ObjectRequest) => Result | Refusal> = new Map([
    ["GET object", (request: ObjectRequest) => this.#get(request)],
    ["GET collection", (request: ObjectRequest) => this.#list(request)],
    ["POST collection", (request: ObjectRequest) => this.#create(request)],
    ["PUT object", (request: ObjectRequest) => this.#update(request)],
    ["PATCH object", (request: ObjectRequest) => this.#patch(request)],
    ["DELETE object", (request: ObjectRequest) => this.#delete(request)],
    ["DELETE collection", (request: ObjectRequest) => this.#deleteAll(request)],
  ]);

  constructor(store: Store, clock: Clock, cache: Source = store) {
    this.#store = store;
    this.#cache = cache;
    this.#clock = clock;
  }

  answer(request: ObjectRequest): Result | Refusal {
    const { method, target, query } = request;
    if (query.has("dryRun")) return badRequest("the demo apiserver does no dry runs");
    // Only a GET may omit the namespace of a namespaced resource: it then reads all namespaces.
    if (method !== "GET" && target.resource.isNamespaced && target.namespace === undefined)
      return methodNotAllowed();
    const verb = `${method} ${target.name === undefined ? "collection" : "object"}`;
    return this.#verbs.get(verb)?.(request) ?? methodNotAllowed();
  }

  #find({ resource, namespace = "", name = "" }: Target, source: Source = this.#store): KubeObject | Refusal {
    return source.get(resource.plural, namespace, name) ?? notFound(resource, name);
  }

  #get({ target, query }: ObjectRequest): Result | Refusal {
    const isAny = (query.get("resourceVersion") ?? "") !== "";
    const object = this.#find(target, isAny ? this.#cache : this.#store);
    return object instanceof Refusal ? object : { kind: "object", code: 200, object };
  }

  #list({ target, query }: ObjectRequest): Result | Refusal {
    const selected = selectorOf(query, target.resource);
    if (selected instanceof Refusal) return selected;
    const version = query.get("resourceVersion") ?? "";
    if (!/^\d*$/.test(version)) return badRequest(`Invalid value: "${version}": resourceVersion`);
    const source = version === "" ? this.#store : this.#cache;
    const revision = source.revisionOf(target.resource.plural);
    if (Number(version) > revision) return tooLargeVersion(Number(version), revision);
    const objects = source.list(target.resource.plural, target.namespace).filter(selected);
    return { kind: "list", objects, version: revision };
  }

  #create(request: ObjectRequest): Result | Refusal {
    const body = readBody(request, "application/json");
    if (body instanceof Refusal) return body;
    const object = readObject(body, request.target, this.#suffix());
    if (object instanceof Refusal) return object;
    if (object.metadata.resourceVersion !== "")
      return badRequest("resourceVersion should not be set on objects to be created");
    return this.#add(request.target, object);
  }

  #add({ resource }: Target, object: KubeObject): Result | Refusal {
    const { name, namespace } = object.metadata;
    if (this.#store.get(resource.plural, namespace, name) !== undefined) return alreadyExists(resource, name);
    if (resource.isNamespaced && this.#store.get(namespaces.plural, "", namespace) === undefined)
      return notFound(namespaces, namespace);
    const stamped = { ...object, metadata: { ...object.metadata, ...this.#birth() } };
    const stored = this.#store.put(resource.plural, withDefaults(resource, stamped));
    return { kind: "object", code: 201, object: stored };
  }

  #update(request: ObjectRequest): Result | Refusal {
    const existing = this.#find(request.target);
    if (existing instanceof Refusal) return existing;
    const body = readBody(request, "application/json");
    return body instanceof Refusal ? body : this.#replace(request.target, existing, body);
  }

  #patch(request: ObjectRequest): Result | Refusal {
    const { target, contentType } = request;
    const patch = patches.get(contentType);
    if (patch === undefined) return unsupportedMediaType([...patches.keys()].join(", "));
    const body = readBody(request, contentType);
    if (body instanceof Refusal) return body;
    const existing = this.#find(target);
    if (existing instanceof Refusal) {
      // Only a server-side apply creates a missing object; all other patches fail.
      if (contentType !== "application/apply-patch+yaml") return existing;
      const object = readObject(body, target, "");
      return object instanceof Refusal ? object : this.#add(target, object);
    }
    const patched = patch(jsonOf(existing), body);
    if (patched === undefined) return badRequest("the patch does not fit the object");
    return this.#replace(target, existing, patched);
  }

  #replace(target: Target, existing: KubeObject, body: Json): Result | Refusal {
    const wanted = readObject(body, target, "");
    if (wanted instanceof Refusal) return wanted;
    const { name, uid, resourceVersion, creationTimestamp } = existing.metadata;
    const { metadata } = wanted;
    if (![resourceVersion, ""].includes(metadata.resourceVersion))
      return conflict(target.resource, name, modified);
    if (![uid, ""].includes(metadata.uid))
      return conflict(target.resource, name, `Precondition failed: UID in precondition: ${metadata.uid}`);
    const object = { ...wanted, metadata: { ...metadata, uid, resourceVersion, creationTimestamp } };
    // A write that changes nothing creates no version. Otherwise two controllers could trigger each other endlessly.
    if (JSON.stringify(jsonOf(object)) === JSON.stringify(jsonOf(existing)))
      return { kind: "object", code: 200, object: existing };
    return { kind: "object", code: 200, object: this.#store.put(target.resource.plural, object) };
  }

  #delete(request: ObjectRequest): Result | Refusal {
    const { target } = request;
    const existing = this.#find(target);
    if (existing instanceof Refusal) return existing;
    const options = request.body.length === 0 ? {} : readBody(request, "application/json");
    if (options instanceof Refusal) return options;
    const { name, uid, resourceVersion } = existing.metadata;
    const wanted = mapOf(mapOf(options)["preconditions"]);
    if (
      ![uid, ""].includes(textOf(wanted["uid"])) ||
      ![resourceVersion, ""].includes(textOf(wanted["resourceVersion"]))
    )
      return conflict(target.resource, name, "Precondition failed");
    this.#remove(target.resource, existing);
    const { plural, group } = target.resource;
    const details = { name, ...(group === "" ? {} : { group }), kind: plural, uid };
    return {
      kind: "status",
      status: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details },
    };
  }

  #deleteAll(request: ObjectRequest): Result | Refusal {
    const found = this.#list(request);
    if (found instanceof Refusal || found.kind !== "list") return found;
    for (const object of found.objects) this.#remove(request.target.resource, object);
    return found;
  }

  /** Removes an object. A namespace and all objects in it are removed at once, because there are no finalizers here. */
  #remove(resource: Resource, { metadata }: KubeObject): void {
    if (resource === namespaces) {
      for (const [plural, object] of this.#store.within(metadata.name))
        this.#store.remove(plural, metadata.name, object);
    }
    this.#store.remove(resource.plural, metadata.namespace, metadata.name);
  }

  #birth(): { uid: string; creationTimestamp: string } {
    const serial = (this.#store.revision + 1).toString(16).padStart(12, "0");
    return {
      uid: `00000000-0000-4000-8000-${serial}`,
      creationTimestamp: timestampOf(this.#clock.wall()),
    };
  }

  /**
   * Returns a suffix for generateName. The suffix is unique, because it is derived from the next version of the store.
   */
  #suffix(): string {
    return (this.#store.revision + 1).toString(36).padStart(5, "0");
  }
}

function readBody({ contentType, body }: ObjectRequest, expected: string): Json | Refusal {
  if (contentType === protobufType) return readProtobuf(body) ?? unsupportedMediaType(expected);
  if (contentType !== "" && contentType !== expected) return unsupportedMediaType(expected);
  return parseJson(body.toString()) ?? badRequest("the body of the request is not JSON");
}

/** Returns the object after adding the fields that a real cluster's defaulting and controllers would set at once. */
function withDefaults({ plural }: Resource, object: KubeObject): KubeObject {
  const { metadata, fields } = object;
  if (plural === "secrets") return { ...object, fields: { type: "Opaque", ...fields } };
  if (plural !== namespaces.plural) return object;
  const labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name };
  return { ...object, metadata: { ...metadata, labels }, fields: { ...fields, status: { phase: "Active" } } };
}

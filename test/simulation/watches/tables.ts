/**
 * Finds all tables (maps, sets and arrays) of an object and of the objects that it refers to, also those in private
 * fields. It thus finds tables that are added to the code later.
 */
import { type Runtime, Session } from "node:inspector";

/** Node's types lack `privateProperties`, which is experimental. */
type Properties = Runtime.GetPropertiesReturnType & {
  readonly privateProperties?: readonly Pick<Runtime.PropertyDescriptor, "name" | "value">[];
};

/** Of a table with more entries than this, only the oldest are looked into. */
const fewEntries = 8;
const oldestEntries = 3;
/** Maximum number of objects to look into. With 5,000 nodes, there are more than 50,000. */
const mostObjects = 1_000_000;
const objectGroup = "tables";

/** Passes objects to and from the inspector, whose own values are only ids of objects. */
type Shared = { object: unknown; readonly values: Map<string, unknown> };

/** Reads private fields, which only the inspector's protocol shows. */
class PrivateFields {
  readonly #session = new Session();
  readonly #shared: Shared = { object: undefined, values: new Map() };

  constructor() {
    this.#session.connect();
    Object.assign(globalThis, { sharedWithInspector: this.#shared });
  }

  close(): void {
    this.#session.disconnect();
    Object.assign(globalThis, { sharedWithInspector: undefined });
  }

  /** Returns the private fields of the object that hold objects, by name. */
  of(object: object): [string, unknown][] {
    this.#shared.object = object;
    for (const { name, value } of this.#propertiesOf(this.#idOfObject()))
      if (value?.objectId !== undefined && value.type === "object") this.#take(name, value.objectId);
    this.#session.post("Runtime.releaseObjectGroup", { objectGroup });
    const found = Array.from(this.#shared.values);
    this.#shared.values.clear();
    return found;
  }

  /** The callback runs before `post` returns, because the session belongs to this thread. */
  #idOfObject(): string {
    let id = "";
    const expression = "sharedWithInspector.object";
    this.#session.post("Runtime.evaluate", { expression, objectGroup }, (_, { result }) => {
      id = result.objectId ?? "";
    });
    return id;
  }

  #propertiesOf(objectId: string): NonNullable<Properties["privateProperties"]> {
    let found: Properties = { result: [] };
    this.#session.post("Runtime.getProperties", { objectId, ownProperties: true }, (_, reply) => {
      found = reply;
    });
    return found.privateProperties ?? [];
  }

  #take(name: string, objectId: string): void {
    const functionDeclaration = "function (name) { sharedWithInspector.values.set(name, this); }";
    this.#session.post("Runtime.callFunctionOn", {
      functionDeclaration,
      objectId,
      arguments: [{ value: name }],
    });
  }
}

type Found = { readonly name: string; readonly value: object };

/**
 * Returns the sizes of all tables below `root`, by class and field, such as "Pool.#shards". If a class has several
 * objects, the size is that of the largest table. `isOutside`: returns true for an object that is not to be looked into.
 * Throws if there are too many objects, because tables would be missed.
 */
export function tablesOf(root: object, isOutside: (object: object) => boolean): Map<string, number> {
  const sizes = new Map<string, number>();
  const seen = new WeakSet<object>();
  const fields = new PrivateFields();
  const waiting: Found[] = [{ name: "", value: root }];
  let count = 0;
  // Appended objects are visited, too.
  for (const { name, value } of waiting) {
    if (seen.has(value) || isOutside(value)) continue;
    seen.add(value);
    count += 1;
    if (count > mostObjects) throw new Error(`More than ${mostObjects} objects`);
    const size = sizeOf(value);
    if (size !== undefined) sizes.set(name, Math.max(sizes.get(name) ?? 0, size));
    waiting.push(...(size === undefined ? fieldsOf(value, fields, name) : elementsOf(value, name)));
  }
  fields.close();
  return sizes;
}

/** Returns the number of entries of a table; undefined: the object is no table. */
function sizeOf(value: object): number | undefined {
  if (Array.isArray(value)) return value.length;
  return value instanceof Set || value instanceof Map ? value.size : undefined;
}

/** Returns the objects in a table: all of them if there are few, and otherwise the oldest. */
function elementsOf(table: object, name: string): Found[] {
  const entries: unknown[] = table instanceof Map ? [...table].flat() : Array.from(iterated(table));
  const objects = entries.filter((entry) => isPart(entry));
  const inside = objects.length > fewEntries ? objects.slice(0, oldestEntries) : objects;
  return inside.map((value) => ({ name: `${name}[]`, value }));
}

function iterated(table: object): Iterable<unknown> {
  if (Array.isArray(table)) return table;
  return table instanceof Set ? table : [];
}

function fieldsOf(value: object, fields: PrivateFields, name: string): Found[] {
  const all = [...Object.entries(value), ...fields.of(value)];
  const owner = ownerOf(value) ?? name;
  return all.flatMap(([field, inside]) =>
    isPart(inside) ? [{ name: owner === "" ? field : `${owner}.${field}`, value: inside }] : [],
  );
}

/** Returns the name of the object's class; undefined: it has none. */
function ownerOf(value: object): string | undefined {
  const { name } = value.constructor;
  return name === "Object" ? undefined : name;
}

function isPart(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

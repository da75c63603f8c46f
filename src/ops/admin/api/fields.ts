/**
 * Declares each field of the JSON API's rows once: its schema for /openapi.json, its value, and the key by which rows
 * are filtered and sorted. The types of the rows (`ViewOf`) follow from these declarations. A clock reading is a time
 * in ms of the process's monotonic clock; -1 stands for never.
 */
import type { Json, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";

export type Schema = Readonly<Record<string, unknown>>;

export type Field<T, V extends Json = Json> = {
  readonly schema: Schema;
  readonly view: (row: T, times: Times) => V;
  /** The value by which rows are filtered and sorted; -1 in place of a missing number. */
  readonly key: (row: T, times: Times) => string | number;
};

export type Fields<T> = Readonly<Record<string, Field<T>>>;

/** The JSON object that the API returns for one row. */
export type ViewOf<F> = { readonly [K in keyof F]: F[K] extends Field<never, infer V> ? V : never };

/** The type of the objects from which the fields `F` are read. */
export type RowOf<F> = F extends Readonly<Record<string, Field<infer T>>> ? T : never;

type Table<F> = F & Fields<RowOf<F>>;

type Read<T, V> = { [K in keyof T]: T[K] extends V ? K : never }[keyof T] | ((row: T, times: Times) => V);

function reader<T, V>(of: Read<T, V>): (row: T, times: Times) => V {
  if (typeof of === "function") return of;
  // `row[of]` has type V, because `Read` allows no other properties. TypeScript cannot infer this.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (row) => row[of] as V;
}

function plain<T, V extends string | number>(schema: Schema, of: Read<T, V>): Field<T, V> {
  return { schema, view: reader(of), key: reader(of) };
}

function unsortable<T, V extends Json>(schema: Schema, view: (row: T, times: Times) => V): Field<T, V> {
  return { schema, view, key: () => "" };
}

export function text<T>(description: string, of: Read<T, string>): Field<T, string> {
  return plain({ type: "string", description }, of);
}

export function oneOf<T>(
  description: string,
  values: readonly string[],
  of: Read<T, string>,
): Field<T, string> {
  return plain({ type: "string", enum: values, description }, of);
}

export function count<T>(description: string, of: Read<T, number>): Field<T, number> {
  return plain({ type: "integer", minimum: 0, description }, of);
}

export function number<T>(description: string, of: Read<T, number>): Field<T, number> {
  return plain({ type: "number", description }, of);
}

export function flag<T>(description: string, of: Read<T, boolean>): Field<T, boolean> {
  return unsortable({ type: "boolean", description }, reader(of));
}

export function maybeMs<T>(
  description: string,
  of: (row: T, times: Times) => number | null,
): Field<T, number | null> {
  const schema = { type: ["number", "null"], description };
  return { schema, view: of, key: (row, times) => of(row, times) ?? -1 };
}

/** Returns a field with the milliseconds since a clock reading; null if the reading is -1. */
export function age<T>(description: string, of: Read<T, number>): Field<T, number | null> {
  const at = reader(of);
  return maybeMs(description, (row, times) => times.ageOf(at(row, times)));
}

/** Returns a field with the date and time of a clock reading. */
export function time<T>(description: string, of: Read<T, number>): Field<T, string> {
  const at = reader(of);
  const schema = { type: "string", format: "date-time", description };
  return { schema, view: (row, times) => times.timeOf(at(row, times)), key: at };
}

/** Returns a field with the date and time of a clock reading; null if the reading is -1. */
export function maybeTime<T>(description: string, of: Read<T, number>): Field<T, string | null> {
  const at = reader(of);
  const { schema, view } = time(description, of);
  return {
    schema: { ...schema, type: ["string", "null"] },
    view: (row, times) => (at(row, times) < 0 ? null : view(row, times)),
    key: at,
  };
}

export function words<T>(description: string, of: Read<T, readonly string[]>): Field<T, readonly string[]> {
  const all = reader(of);
  const schema = { type: "array", items: { type: "string" }, description };
  return { schema, view: all, key: (row, times) => all(row, times).join() };
}

export function record<T, F>(fields: Table<F>, of: Read<T, RowOf<F>>): Field<T, ViewOf<F>> {
  const read = reader(of);
  return unsortable(schemaOf(fields), (row, times) => viewOf(fields, read(row, times), times));
}

export function maybe<T, F>(
  description: string,
  fields: Table<F>,
  of: (row: T) => RowOf<F> | undefined,
): Field<T, ViewOf<F> | null> {
  return unsortable({ anyOf: [schemaOf(fields), { type: "null" }], description }, (row, times) => {
    const one = of(row);
    return one === undefined ? null : viewOf(fields, one, times);
  });
}

/** Returns a field with a list of objects. `items` is the schema of one object, or a reference to it. */
export function list<T, F>(
  description: string,
  fields: Table<F>,
  of: Read<T, readonly RowOf<F>[]>,
  items: Schema = schemaOf(fields),
): Field<T, readonly ViewOf<F>[]> {
  const read = reader(of);
  return unsortable({ type: "array", items, description }, (row, times) =>
    read(row, times).map((one) => viewOf(fields, one, times)),
  );
}

/** Turns the fields of an object inside each row into fields of the row. `of` returns that object. */
export function within<T, F>(
  fields: Table<F>,
  of: (row: T) => RowOf<F>,
): { readonly [K in keyof F]: Field<T, ViewOf<F>[K]> } {
  const moved = Object.entries<Field<RowOf<F>>>(fields).map(([name, { schema, view, key }]) => [
    name,
    {
      schema,
      view: (row: T, times: Times) => view(of(row), times),
      key: (row: T, times: Times) => key(of(row), times),
    },
  ]);
  return Object.fromEntries(moved);
}

/** Returns the schema of a row: every field is required, and no other is allowed. */
export function schemaOf(fields: Fields<never>): Schema {
  return object(Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema])));
}

export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

export function viewOf<F>(fields: Table<F>, row: RowOf<F>, times: Times): ViewOf<F> {
  const views = Object.entries<Field<RowOf<F>>>(fields).map(([name, { view }]) => [name, view(row, times)]);
  return Object.fromEntries(views);
}

/**
 * `by`: names of the fields to filter and sort by, separated by spaces. `columns`: more fields to filter and sort by,
 * which are not part of the response.
 */
export type Rows<T> = Pick<Listing<T>, "kind" | "rows" | "has" | "sort"> & {
  readonly fields: Fields<T>;
  readonly by: string;
  readonly columns?: Listing<T>["columns"];
};

export function listingOf<T>({ fields, by, columns, ...rest }: Rows<T>, times: Times): Listing<T> {
  const own = by.split(" ").map((name) => [name, (row: T) => fields[name]?.key(row, times) ?? ""] as const);
  return {
    ...rest,
    columns: { ...Object.fromEntries(own), ...columns },
    view: (row) => viewOf(fields, row, times),
  };
}

/**
 * Validates a configuration file against the schema in config/schema and fills in defaults. The schema defines what is
 * valid; this file writes the messages about problems.
 */
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import schema from "../../../config/schema/watchkeeper.v1alpha2.json" with { type: "json" };
import type { Written, WrittenCluster, WrittenLimit } from "../../../config/schema/written.ts";
import { isHost, isNetwork, parseAddress, parseBackendUrl } from "../../base/address.ts";
import { parseDuration } from "../../base/duration.ts";
import { type Breach, didYouMean, nearestOf, type Problem, quote } from "./problem.ts";
import { fieldOf, pointerTo, type YamlDocument } from "./yaml-document.ts";

/** One cluster of the file, with its JSON pointer, such as "/clusters/0". */
export type Placed = { readonly cluster: WrittenCluster; readonly pointer: string };

export function placedClusters({ clusters }: Written): readonly Placed[] {
  return clusters.map((cluster, at) => ({ cluster, pointer: `/clusters/${at}` }));
}

/** Returns the cluster with this name. Without a name, returns the only cluster; undefined if there are several. */
export function clusterFor(written: Written, name: string | undefined): Placed | undefined {
  const all = placedClusters(written);
  if (name === undefined) return all.length === 1 ? all[0] : undefined;
  return all.find(({ cluster }) => cluster.name === name);
}

/** A reference to a cluster by name. `pointer`: JSON pointer of the object that contains the name. */
export type Reference = { readonly pointer: string; readonly cluster?: string | undefined };

export function referenceBreach({ pointer, cluster }: Reference, written: Written): Breach[] {
  if (clusterFor(written, cluster) !== undefined) return [];
  const names = written.clusters.map(({ name }) => name);
  const all = names.map((name) => quote(name)).join(", ");
  const message =
    cluster === undefined
      ? `is missing: it must be one of ${all}`
      : `is ${quote(cluster)}, and no cluster has that name${didYouMean(cluster, names) || `: there is ${all}`}`;
  return [{ pointer: `${pointer}/cluster`, message }];
}

const ajv = new Ajv2020({
  allErrors: true,
  useDefaults: true,
  verbose: true,
  allowUnionTypes: true,
  // These three settings make a process start 100 ms sooner. They skip the check of the schema, which a test does, and
  // the optimization of validators, which run only a few times.
  meta: false,
  validateSchema: false,
  code: { optimize: false },
});
ajv.addFormat("address", (text: string) => parseAddress(text) !== undefined);
ajv.addFormat("origin", (text: string) => parseBackendUrl(text) !== undefined);
ajv.addFormat("network", isNetwork);
ajv.addFormat("host", isHost);
ajv.addKeyword({
  keyword: "between",
  type: "string",
  schemaType: "array",
  validate: ([from = "", to = ""]: readonly string[], text: string) => {
    const ms = parseDuration(text);
    return ms === undefined || (ms >= (parseDuration(from) ?? 0) && ms <= (parseDuration(to) ?? Infinity));
  },
});
const validate = ajv.compile<Written>(schema);
const validateLimit = ajv.compile<WrittenLimit>({ $ref: `${schema.$id}#/$defs/limit` });

/** Returns the value if it is a valid entry of `clusters[].limits`; otherwise the text of its first problem. */
export function limitIn(value: unknown): WrittenLimit | string {
  if (validateLimit(value)) return value;
  const [error] = validateLimit.errors ?? [];
  if (error === undefined) return "is invalid";
  if (isUnknownKey(error)) return `unknown field ${quote(error.params["additionalProperty"])}`;
  const field = fieldOf(error.instancePath);
  const message = (demands[error.keyword] ?? ((other) => String(other.message)))(error);
  return field === "" ? message : `${field}: ${message}`;
}

export type Checked = {
  /** The value with defaults; undefined if it is no watchkeeper config. Only valid fields have the declared types. */
  readonly written: Written | undefined;
  readonly problems: readonly Problem[];
  /** JSON pointers to the invalid fields. */
  readonly invalid: readonly string[];
};

export function checkSchema(document: YamlDocument): Checked {
  const { value } = document;
  if (validate(value)) return { written: value, problems: [], invalid: [] };
  const errors = validate.errors ?? [];
  // In a file of another kind, every key would be unknown, so only the wrong kind is reported.
  const foreign = errors.filter((error) => isAboutKind(error) && !isOnlyMissing(error, value));
  const shown = foreign.length > 0 ? foreign : errors.filter((error) => !isRepeated(error, errors));
  return {
    written: foreign.length === 0 && mayBeRead(value) ? value : undefined,
    problems: shown.map((error) => problemOf(error, document)),
    invalid: errors.map(pointerOf),
  };
}

/**
 * True if the value may be treated as `Written`. Some of its fields may be invalid, but rules read only the valid
 * fields.
 */
function mayBeRead(value: unknown): value is Written {
  return typeof value === "object" && value !== null;
}

/**
 * True if the list contains a better error about the same problem. If a value has the wrong type, the validator reports
 * one error for the field's own "type" and one for the "type" in the field's definition. Only the definition has a
 * title, which says what is expected, so its error is better.
 */
function isRepeated({ keyword, parentSchema, instancePath }: ErrorObject, errors: ErrorObject[]): boolean {
  if (keyword !== "type" || parentSchema?.["title"] !== undefined) return false;
  return errors.some(
    (other) =>
      other.keyword === "type" &&
      other.instancePath === instancePath &&
      other.parentSchema?.["title"] !== undefined,
  );
}

const isUnknownKey = ({ keyword }: ErrorObject): boolean => keyword === "additionalProperties";

function keyPointerOf({ instancePath, params }: ErrorObject): string {
  return pointerTo(instancePath, String(params["additionalProperty"]));
}

/**
 * Returns the JSON pointer of the field that the error concerns. For an unknown key, this is the pointer of the key
 * that the operator probably meant.
 */
function pointerOf({ instancePath, keyword, params, parentSchema }: ErrorObject): string {
  if (keyword === "required") return pointerTo(instancePath, String(params["missingProperty"]));
  if (keyword !== "additionalProperties") return instancePath;
  const key = String(params["additionalProperty"]);
  return pointerTo(instancePath, nearestOf(key, Object.keys(parentSchema?.["properties"] ?? {})) ?? key);
}

function isAboutKind({ instancePath, keyword, params }: ErrorObject): boolean {
  if (instancePath === "/apiVersion" || instancePath === "/kind") return true;
  if (instancePath !== "") return false;
  return keyword === "type" || ["apiVersion", "kind"].includes(String(params["missingProperty"]));
}

/** True if the value has `listeners`, so it is a watchkeeper config that only lacks `apiVersion` or `kind`. */
function isOnlyMissing({ keyword }: ErrorObject, value: unknown): boolean {
  return keyword === "required" && mayBeRead(value) && "listeners" in value;
}

function problemOf(error: ErrorObject, document: YamlDocument): Problem {
  const { instancePath, keyword, params, parentSchema, data } = error;
  if (isUnknownKey(error)) {
    const key = String(params["additionalProperty"]);
    const meant = didYouMean(key, Object.keys(parentSchema?.["properties"] ?? {}));
    const at = document.keyPositionOf(keyPointerOf(error));
    return { at, field: fieldOf(instancePath), message: `unknown field ${quote(key)}${meant}` };
  }
  if (keyword === "required") {
    const field = fieldOf(pointerTo(instancePath, String(params["missingProperty"])));
    return { at: document.positionOf(instancePath), field, message: "is missing" };
  }
  const say = demands[keyword] ?? ((other) => String(other.message));
  const message = data === null ? "is empty: fill it in or remove its key" : say(error);
  return { at: document.positionOf(instancePath), field: fieldOf(instancePath), message };
}

type Demand = (error: ErrorObject) => string;

const demandTitle: Demand = ({ parentSchema, data }) =>
  `must be ${parentSchema?.["title"]}, is ${quote(data)}`;

const numbers = ["no", "one"];
const countOf = (limit: unknown): string => numbers[Number(limit)] ?? String(limit);

const demands: Readonly<Record<string, Demand>> = {
  pattern: demandTitle,
  format: demandTitle,
  const: ({ params, data }) => `must be ${quote(params["allowedValue"])}, is ${quote(data)}`,
  between: ({ parentSchema, data }) =>
    `must be between ${parentSchema?.["between"].join(" and ")}, is ${quote(data)}`,
  type: (error) => {
    const isNamed = error.instancePath !== "" && error.parentSchema?.["title"] !== undefined;
    if (isNamed) return demandTitle(error);
    return `must be ${nouns[String(error.params["type"])]}, is ${quote(error.data)}`;
  },
  minItems: ({ params }) => `needs at least ${countOf(params["limit"])}`,
  maxItems: ({ params, data }) =>
    `may have ${params["limit"]} at most, has ${Array.isArray(data) ? data.length : 0}`,
  minimum: ({ params, data }) => `must be at least ${params["limit"]}, is ${quote(data)}`,
  maximum: ({ params, data }) => `must be at most ${params["limit"]}, is ${quote(data)}`,
  minLength: () => "must not be empty",
  maxLength: ({ params }) => `may have ${params["limit"]} characters at most`,
  enum: ({ params, data }) => {
    const allowed: readonly string[] = params["allowedValues"];
    const list = allowed.map((value) => quote(value)).join(", ");
    const meant = typeof data === "string" ? didYouMean(data, allowed) : "";
    return `must be ${allowed.length > 1 ? "one of " : ""}${list}, is ${quote(data)}${meant}`;
  },
};

const nouns: Readonly<Record<string, string>> = {
  object: "a map of fields",
  array: "a list",
  integer: "a whole number",
  boolean: "true or false",
  string: "text",
};

/**
 * Generates docs/configuration.md and config/schema/written.ts from the configuration's schema. A test checks that both
 * are current. Pure.
 */

import { listItem } from "../../support/markdown.ts";

type Schema = {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly between?: readonly [string, string];
};

/** Returns the page. `text`: the content of the schema file. */
export function configPage(text: string): string {
  const root: Schema = JSON.parse(text);
  return `${head}${new Page(root).sections().join("\n")}`;
}

/**
 * Returns the types of a configuration that the schema has accepted. A key with a default is required, because the
 * validator fills defaults in. Keys with only one allowed value, such as `kind`, are omitted.
 */
export function configTypes(text: string): string {
  const root: Schema = JSON.parse(text);
  const named = Object.entries(root.$defs ?? {}).filter(([, { properties }]) => properties !== undefined);
  const types = [["", root] as const, ...named].map(
    ([name, schema]) => `export type ${typeName(name)} = ${typeOf(schema, root, "")};\n`,
  );
  return [typesHead, ...types].join("\n");
}

function typeName(name: string): string {
  return `Written${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function typeOf({ $ref = "", ...schema }: Schema, root: Schema, indent: string): string {
  const name = $ref.replace("#/$defs/", "");
  const whole = { ...root.$defs?.[name], ...schema };
  const { type, enum: choices, properties, items, required = [] } = whole;
  if (choices !== undefined) return choices.map((one) => JSON.stringify(one)).join(" | ");
  if (items !== undefined) return `readonly ${itemType(typeOf(items, root, indent))}[]`;
  if (properties === undefined) return [type].flat().map(plainType).join(" | ");
  if (name !== "") return typeName(name);
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([key, member]) => {
    if (member.const !== undefined) return "";
    const target = root.$defs?.[member.$ref?.replace("#/$defs/", "") ?? ""];
    const isSet = required.includes(key) || (member.default ?? target?.default) !== undefined;
    return `${inner}readonly ${key}${isSet ? "" : "?"}: ${typeOf(member, root, inner)};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function itemType(type: string): string {
  return type.includes(" | ") ? `(${type})` : type;
}

function plainType(type: string | undefined): string {
  return type === "integer" ? "number" : String(type);
}

type Place = { readonly path: string; readonly schema: Schema };

class Page {
  readonly #root: Schema;
  /** The first key with each text. A later key with the same name and text refers to it. */
  readonly #said = new Map<string, string>();

  constructor(root: Schema) {
    this.#root = root;
  }

  /** Returns one section for each top-level key, and one for each list of objects below that key. */
  sections(): string[] {
    return Object.entries(this.#root.properties ?? {}).flatMap(([path, schema]) =>
      this.#section({ path, schema }),
    );
  }

  #section({ path, schema }: Place): string[] {
    const whole = this.#resolved(schema);
    const rows: string[] = [];
    const lists: Place[] = [];
    this.#walk({ path, schema: whole }, { rows, lists });
    // The key's own item, or that of its list in the section above, has the description already.
    const isSaid = path.includes("[]") || (whole.properties === undefined && whole.items === undefined);
    const about = isSaid ? "" : `${whole.description ?? ""}\n\n`;
    const own = `## ${path}\n\n${about}${rows.join("")}`;
    return [own, ...lists.flatMap((list) => this.#section(list))];
  }

  /** Adds rows for everything below a key. A list of objects gets a section of its own instead. */
  #walk({ path, schema }: Place, into: { rows: string[]; lists: Place[] }): void {
    const inner = this.#innerOf(schema);
    if (inner.properties === undefined) into.rows.push(this.#row(path, schema, false));
    const prefix = schema.items === undefined ? path : `${path}[]`;
    for (const [key, member] of Object.entries(inner.properties ?? {})) {
      const place = { path: `${prefix}.${key}`, schema: this.#resolved(member) };
      if (place.schema.properties !== undefined) {
        this.#walk(place, into);
        continue;
      }
      into.rows.push(this.#row(place.path, place.schema, inner.required?.includes(key) === true));
      if (this.#innerOf(place.schema).properties !== undefined) into.lists.push(place);
    }
  }

  #row(path: string, schema: Schema, isRequired: boolean): string {
    const about = [schema.description ?? "", allowed(schema)].filter((part) => part !== "").join(" ");
    const text = `${defaultOf(schema, isRequired)}: ${about}`;
    const key = `${path.split(".").at(-1)}${text}`;
    const first = this.#said.get(key);
    if (first !== undefined) return listItem(`\`${path}\`: as \`${first}\``);
    this.#said.set(key, path);
    return listItem(`\`${path}\`${text}`);
  }

  /** Returns the schema of a list's items, or the schema itself if it is no list. */
  #innerOf(schema: Schema): Schema {
    return schema.items === undefined ? schema : this.#resolved(schema.items);
  }

  /** Resolves the schema's reference. Keywords beside the reference override those of its target. */
  #resolved(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema;
    const { $ref, ...beside } = schema;
    return { ...this.#root.$defs?.[$ref.replace("#/$defs/", "")], ...beside };
  }
}

function defaultOf({ default: usual }: Schema, isRequired: boolean): string {
  if (isRequired) return " (required)";
  return usual === undefined ? "" : ` (\`${textOf(usual)}\`)`;
}

/** Returns which values are allowed; "" if the description says it, as it does of choices ("Reject = …"). */
function allowed(schema: Schema): string {
  const { const: only, enum: choices, between, minimum, maximum, description = "" } = schema;
  if (only !== undefined) return `Always \`${textOf(only)}\`.`;
  if (choices?.every((one) => description.includes(`${textOf(one)} = `)) === true) return "";
  if (choices !== undefined) return `One of ${choices.map((one) => `\`${textOf(one)}\``).join(", ")}.`;
  if (between !== undefined) return `${between[0]}–${between[1]}.`;
  if (minimum !== undefined && maximum !== undefined) return `${minimum}–${maximum}.`;
  return "";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const typesHead = `/**
 * The configuration in the structure of the file, with defaults; durations are still text. Generated from
 * watchkeeper.v1alpha2.json by \`node test/ops/config/reference-page.test.ts --write\`.
 */
`;

const head = `# The configuration, key by key

Generated from \`config/schema/watchkeeper.v1alpha2.json\`, which editors can use, by \`node
test/ops/config/reference-page.test.ts --write\`. \`watchkeeper config\` prints a commented sample; \`watchkeeper check --config
FILE\` reports problems with line and column, also unknown keys. Brackets have the default; \`required\` holds where the
object around the key is set. Paths are relative to the file; durations are \`500ms\`, \`2s\`, \`5m\` or \`1h\`.
[restart.md](restart.md#a-changed-configuration) lists what needs a restart.

`;

/** Functions that read parsed JSON of unknown shape. A field that is missing or has another type reads as empty. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordAt(parent: JsonRecord | undefined, key: string): JsonRecord | undefined {
  const value = parent?.[key];
  return isRecord(value) ? value : undefined;
}

export function textAt(parent: JsonRecord | undefined, key: string): string {
  const value = parent?.[key];
  return typeof value === "string" ? value : "";
}

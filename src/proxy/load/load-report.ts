/**
 * Reads the load report that a backend sends with a response: the field `endpoint-load-metrics` of ORCA (Open Request
 * Cost Aggregation), which enhancements#6315 adds to kube-apiserver. The value is `TEXT name=number, …`, `JSON {…}` or
 * `BIN` with a base64 OrcaLoadReport; the field `endpoint-load-metrics-bin` has the base64 text alone.
 */
import { bytesIn, messageOf } from "../../base/protobuf.ts";
import type { Field } from "../../h2/core/field.ts";
import { role } from "../../h2/core/field.ts";
import { loadLimits } from "./limits.ts";

/** Field numbers in OrcaLoadReport (xds/data/orca/v3/orca_load_report.proto). */
const numbers = { cpu_utilization: 1, application_utilization: 9 } as const;
type Name = keyof typeof numbers;

/** Returns the load report in a response's head; undefined: there is none. */
export function reportIn(head: readonly Field[]): Field | undefined {
  for (const field of head) if (field.role === role.loadReport) return field;
  return undefined;
}

/**
 * Returns the utilisation in a report: the application's own if it is positive, else the CPU's, as gRPC does (gRFC
 * A58). 1: fully used. Undefined if the report has no utilisation or is invalid.
 */
export function utilizationOf({ name, value }: Pick<Field, "name" | "value">): number | undefined {
  if (value.length > loadLimits.reportChars) return undefined;
  const read = readerOf(name.endsWith("-bin") ? `BIN ${value}` : value);
  const own = read?.("application_utilization") ?? 0;
  const utilization = own > 0 ? own : read?.("cpu_utilization");
  return utilization !== undefined && utilization >= 0 && utilization < Number.POSITIVE_INFINITY
    ? utilization
    : undefined;
}

type Reader = (name: Name) => number | undefined;

function readerOf(report: string): Reader | undefined {
  const mark = report.indexOf(" ");
  const text = report.slice(mark + 1).trim();
  switch (report.slice(0, mark).toUpperCase()) {
    case "TEXT":
      return readerOfText(text);
    case "JSON":
      return readerOfJson(text);
    case "BIN":
      return readerOfBytes(Buffer.from(text, "base64"));
    default:
      return undefined;
  }
}

function readerOfText(text: string): Reader {
  const pairs = new Map(
    text.split(",").map((pair) => {
      const at = pair.indexOf("=");
      return [pair.slice(0, at).trim(), Number(pair.slice(at + 1).trim() || "x")];
    }),
  );
  return (name) => pairs.get(name);
}

function readerOfJson(text: string): Reader | undefined {
  const report = jsonOf(text);
  if (typeof report !== "object" || report === null) return undefined;
  const values = new Map(Object.entries(report));
  return (name) => {
    // Reads both spellings: protojson writes `cpuUtilization`, and also accepts `cpu_utilization`.
    const value: unknown =
      values.get(name) ?? values.get(name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()));
    return typeof value === "number" ? value : undefined;
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readerOfBytes(bytes: Buffer): Reader | undefined {
  const message = messageOf(bytes);
  return (name) => {
    const value = bytesIn(message, numbers[name]);
    return value?.length === 8 ? value.readDoubleLE() : undefined;
  };
}

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { loadLimits } from "../../../src/proxy/load/limits.ts";
import { reportIn, utilizationOf } from "../../../src/proxy/load/load-report.ts";

const test = suite("proxy/load/load-report");
const name = "endpoint-load-metrics";

/** Encodes an OrcaLoadReport with these doubles, by field number. */
function protobuf(fields: Readonly<Record<number, number>>): string {
  const parts = Object.entries(fields).map(([number, value]) => {
    const part = Buffer.alloc(9);
    part[0] = Number(number) * 8 + 1;
    part.writeDoubleLE(value, 1);
    return part;
  });
  return Buffer.concat(parts).toString("base64");
}

test("the utilisation is read in all formats of ORCA", () => {
  const values: readonly [string, number | undefined][] = [
    ["TEXT cpu_utilization=0.3,mem_utilization=0.8", 0.3],
    ["TEXT mem_utilization=0.8, cpu_utilization = 1.2 ,named_metrics.x=4", 1.2],
    ["TEXT cpu_utilization=0.3,application_utilization=0.7", 0.7],
    ["TEXT cpu_utilization=0.3,application_utilization=0", 0.3],
    ['JSON {"cpu_utilization": 0.25, "rps_fractional": 10}', 0.25],
    ['JSON {"cpuUtilization": 0.25, "applicationUtilization": 0.5}', 0.5],
    [`BIN ${protobuf({ 1: 0.4, 2: 0.9 })}`, 0.4],
    [`BIN ${protobuf({ 1: 0.4, 9: 0.6 })}`, 0.6],
  ];
  for (const [value, utilization] of values) assert.is(utilizationOf({ name, value }), utilization, value);
  assert.is(utilizationOf({ name: `${name}-bin`, value: protobuf({ 1: 0.4 }) }), 0.4);
});

test("an invalid report states nothing", () => {
  const values = [
    "",
    "TEXT",
    "TEXT cpu_utilization=",
    "TEXT cpu_utilization=much",
    "TEXT cpu_utilization=-1",
    "TEXT cpu_utilization=Infinity",
    "JSON {",
    "JSON null",
    'JSON {"cpu_utilization": "0.3"}',
    "BIN !",
    `BIN ${Buffer.from([9, 1, 2]).toString("base64")}`,
    "XML cpu_utilization=0.3",
    `TEXT cpu_utilization=0.3,${"x".repeat(loadLimits.reportChars)}`,
  ];
  for (const value of values) assert.is(utilizationOf({ name, value }), undefined, value);
});

test("the report is found among the fields of a head by its name", () => {
  const report = new Field(name, "TEXT cpu_utilization=0.3");
  assert.is(reportIn([new Field(":status", "200"), report]), report);
  assert.is(reportIn([new Field(":status", "200"), new Field("date", "x")]), undefined);
});

test.run();

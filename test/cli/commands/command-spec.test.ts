import { suite } from "uvu";
import * as assert from "uvu/assert";
import { flagOf, usageOf } from "../../../src/cli/commands/command-spec.ts";

const test = suite("cli/commands/command-spec");

test("a usage line names what must be and what may be given", () => {
  const words = "KIND [NAME]";
  const options = [
    { name: "config", value: "FILE", isRequired: true, about: "" },
    { name: "host", value: "NAME", isMultiple: true, about: "" },
    { name: "once", about: "" },
  ];
  assert.is(usageOf({ summary: "", words, options }), "KIND [NAME] --config FILE [--host NAME]... [--once]");
  assert.is(flagOf({ name: "once", about: "" }), "--once");
});

test.run();

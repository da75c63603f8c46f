import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, flagOf, isCommand, usageOf } from "../../src/cli/commands.ts";

const test = suite("cli/commands");

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

test("every command and every option says what it is for", () => {
  for (const [name, { summary, options }] of allCommands) {
    assert.ok(summary.length > 10, name);
    for (const { name: option, about } of options) assert.ok(about.length > 3, `${name} --${option}`);
    assert.is(new Set(options.map((option) => option.name)).size, options.length, name);
  }
  assert.ok(isCommand("status"));
  assert.not.ok(isCommand("toString"));
});

test.run();

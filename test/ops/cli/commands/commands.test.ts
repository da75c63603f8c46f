import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, isCommand } from "../../../../src/ops/cli/commands/commands.ts";

const test = suite("ops/cli/commands/commands");

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

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { commands } from "../../../src/cli/commands/commands.ts";
import { setupCommands } from "../../../src/cli/commands/setup-commands.ts";

const test = suite("cli/commands/setup-commands");

test("they are commands as all others are", () => {
  const names = Object.keys(commands);
  for (const name of Object.keys(setupCommands)) assert.ok(names.includes(name), name);
});

test.run();

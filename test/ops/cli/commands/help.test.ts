import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, type CommandSpec, commands } from "../../../../src/ops/cli/commands/commands.ts";
import { aboutOf, flagOf, helpOf, overview, usageOf } from "../../../../src/ops/cli/commands/help.ts";
import { usual } from "../../../../src/ops/cli/deploy/sidecar-shape.ts";

const test = suite("ops/cli/commands/help");

test("the list has every command, with its summary in one column", () => {
  const lines = overview().split("\n");
  const columns = allCommands.map(([name, { summary }]) =>
    lines.find((line) => line.startsWith(`  ${name} `))?.indexOf(summary),
  );
  assert.equal(new Set(columns).size, 1);
  assert.ok((columns[0] ?? -1) > 0);
});

test("a command says how it is called, what each option is for and how it ends", () => {
  const spec: CommandSpec = {
    summary: "say something",
    words: "[WORD]",
    options: [
      { name: "admin", value: "ADDRESS", about: "where it is", usual: "127.0.0.1:7480" },
      { name: "output", short: "o", value: "FORMAT", about: "how it is said" },
    ],
    exits: "1: there is nothing to say",
    examples: ["watchkeeper say it"],
  };
  assert.is(
    helpOf("say", spec),
    `usage: watchkeeper say [WORD] [--admin ADDRESS] [--output FORMAT]

  say something

options:
      --admin ADDRESS  where it is; default: 127.0.0.1:7480
  -o, --output FORMAT  how it is said

exit codes:
  0  success
  1  there is nothing to say
  2  usage error
  3  nothing answers at the address of the JSON API

examples:
  watchkeeper say it
`,
  );
});

test("every command has help that fits a line, and every option that has a value says what holds without it", () => {
  for (const [name, spec] of allCommands) {
    for (const line of helpOf(name, spec).split("\n").slice(1)) assert.ok(line.length <= 130, line);
    const { options }: CommandSpec = spec;
    for (const { name: option, value, isRequired, isMultiple, usual: without } of options)
      if (value !== undefined && isRequired !== true && isMultiple !== true)
        assert.ok(without !== undefined, `${name} --${option}`);
  }
});

test("what a sidecar is told to use is what it uses", () => {
  const { sidecar } = commands;
  const said = sidecar.options.map((option) => [option.name, aboutOf(option)] as const);
  for (const [name, key] of [
    ["port", "port"],
    ["metrics-port", "metricsPort"],
    ["direct", "direct"],
    ["shared", "shared"],
    ["state", "state"],
  ] as const)
    assert.match(said.find(([option]) => option === name)?.[1] ?? "", `default: ${usual[key]}`);
});

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

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { get } from "../../../../src/ops/cli/client/get.ts";
import { limit } from "../../../../src/ops/cli/client/limit.ts";
import { operate } from "../../../../src/ops/cli/client/operate.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import { startProxy, type TestProxy } from "../../../support/proxy.ts";

const test = suite("ops/cli/client/limit");
let proxy: TestProxy;

test.before(async () => {
  proxy = await startProxy({ backends: 1 });
});

test.after(() => proxy.stop());

type Command = (args: string[], screen: KeptScreen) => Promise<number>;

async function ran(command: Command, ...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: proxy.running.apiAddress });
  return Object.assign(screen, { code: await command(args, screen) });
}

test("a limit is set, listed with its operator, and ended", async () => {
  const words = [
    "user=jane",
    "user=john",
    "verb=list",
    "source=10.0.0.1",
    "--rate",
    "1/s",
    "--in-flight",
    "5",
  ];
  const set = await ran(limit, ...words, "--for", "30m", "--reason", "flood");
  assert.is(set.code, 0, set.complaints);
  assert.match(
    set.out,
    /^limit 1 is in force until \S+Z: user=jane user=john source=10\.0\.0\.1\/32 verb=list, 1\/s, at most 5 at once\n$/,
  );
  const listed = await ran(get, "limits");
  assert.match(listed.out, /^LIMIT +ALLOWS/);
  assert.match(listed.out, /\n1 +user=jane .* 30m +\S+ \(watchkeeper CLI\) at 127\.0\.0\.1 +flood/);
  const ended = await ran((args, screen) => operate("unlimit", args, screen), "1");
  assert.equal([ended.code, ended.out], [0, "limit 1 has ended; it has refused 0 requests\n"]);
  const again = await ran((args, screen) => operate("unlimit", args, screen), "1");
  assert.is(again.code, 1);
  assert.match(again.complaints, /^There is no limit "1"/);
  const told = proxy.entries.flatMap((entry) => (entry.kind === "operation.done" ? [entry.operation] : []));
  assert.equal(told, ["limit", "unlimit"]);
});

test("a word that is no match is a usage error, and an invalid limit is refused with its reason", async () => {
  for (const wrong of [["name=x"], ["user"], [], ["user=x", "--in-flight", "0"]])
    assert.is((await ran(limit, ...wrong)).code, 2, wrong.join(" "));
  const mistaken = async (...args: string[]): Promise<string> => {
    const { code, complaints } = await ran(limit, ...args);
    assert.is(code, 2, args.join(" "));
    return complaints;
  };
  assert.match(await mistaken("user=x"), /^Missing --rate or --in-flight\n/);
  assert.match(await mistaken("user=x", "--in-flight", "1", "--burst", "2"), /^--burst needs --rate\n/);
  const refused = async (...args: string[]): Promise<string> => {
    const { code, complaints } = await ran(limit, ...args);
    assert.is(code, 1, args.join(" "));
    return complaints;
  };
  assert.match(await refused("user=x", "--rate", "1/s", "--for", "25h"), "must be between 1s and 24h");
  assert.match(
    await refused("source=10.0.0", "--rate", "1/s"),
    'must be a network such as "10.0.0.0/8", is "10.0.0" ',
  );
  assert.match(await refused("verb=fetch", "--rate", "1/s"), 'must be a verb such as "list"');
});

test.run();

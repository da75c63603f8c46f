import { spawnSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("ops/cli/serve/incident");

test("a story is told, ends with both sides, names its alert and page, and passes", () => {
  const { status, stdout, stderr } = spawnSync("bin/watchkeeper.js", ["incident", "003"], {
    timeout: 60_000,
  });
  assert.equal([status, stderr.toString()], [0, ""]);
  const said = stdout.toString();
  assert.match(said, /^Incident 003: /);
  assert.match(said, /without \(naive proxy\) +with watchkeeper/);
  assert.match(said, "WatchkeeperLoopbackCertificateExpiring (watchkeeper docs runbooks/");
  assert.match(said, "watchkeeper docs incidents/003");
});

test("another number is a usage error that lists them", () => {
  for (const words of [[], ["005"], ["003", "004"]]) {
    const { status, stderr } = spawnSync("bin/watchkeeper.js", ["incident", ...words]);
    assert.is(status, 2);
    for (const number of ["000", "001", "002", "003", "004"])
      assert.match(stderr.toString(), `  ${number}  `);
  }
});

test.run();

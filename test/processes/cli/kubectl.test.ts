/**
 * The commands that query a running proxy, run as processes: under both names of the program, with their exit codes.
 */
import { execFile } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startProxy, type TestProxy } from "../../support/proxy.ts";

const test = suite("ops/cli/kubectl");
let proxy: TestProxy;

test.before(async () => {
  proxy = await startProxy({ backends: 2 });
});

test.after(() => proxy.stop());

type Said = { readonly code: number; readonly out: string; readonly complaints: string };

function said(bin: string, ...args: string[]): Promise<Said> {
  const env = { ...process.env, WATCHKEEPER_ADMIN: proxy.running.apiAddress };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [`bin/${bin}.js`, ...args],
      { env, timeout: 40_000 },
      (error, out, complaints) => {
        resolve({ code: typeof error?.code === "number" ? error.code : 0, out, complaints });
      },
    );
  });
}

test("it asks the proxy that the environment names", async () => {
  for (const bin of ["watchkeeper", "kubectl-watchkeeper"]) {
    const { code, out } = await said(bin, "get", "backends", "--no-headers");
    assert.is(code, 0);
    assert.equal(
      out
        .trimEnd()
        .split("\n")
        .map((line) => line.slice(0, 1)),
      ["a", "b"],
    );
  }
});

test("no server at the address is exit code 3, and one line says what to do", async () => {
  const { code, out, complaints } = await said("watchkeeper", "status", "--admin", "127.0.0.1:1");
  assert.equal([code, out], [3, ""]);
  assert.match(complaints, /ECONNREFUSED[^]*--admin or WATCHKEEPER_ADMIN/);
  assert.not.match(complaints, "    at ");
});

test("an option that there is not is 2, with how it is used", async () => {
  const { code, complaints } = await said("watchkeeper", "top", "--colour");
  assert.is(code, 2);
  assert.match(complaints, /--colour[^]*usage: watchkeeper top \[watches\|clients\]/);
});

test.run();

import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { zPages } from "../../../../src/ops/admin/server/z-pages.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/server/z-pages");

const sample = readFileSync("config/static.yaml", "utf8");
const secret = "Bearer c2VjcmV0LXRva2VuLXZhbHVl";

function pagesOf(text: string, words: readonly string[] = []): { readonly get: (path: string) => string } {
  const config = parseConfig(text, "/etc/watchkeeper/a.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const clock = manualClock();
  const pages = zPages({ ...timesOf(clock), version: "1.2.3", config: () => config, words });
  clock.advance(3_725_000);
  return {
    get(path) {
      const route = pages(path);
      if (route === undefined) return "404";
      const reply = route("");
      if (reply instanceof Promise) throw new Error("Nothing has to be waited for");
      return String(reply.text);
    },
  };
}

test("statusz tells since when what runs, and that no program should read it", () => {
  const text = pagesOf(sample).get("/statusz");
  assert.match(text, /^\nwatchkeeper statusz\nWarning: This endpoint is not meant to be machine parseable/);
  assert.match(text, /^Up: 1 hr 02 min 05 sec$/m);
  assert.match(text, /^Binary version: 1\.2\.3$/m);
  assert.match(text, /^Configuration: \/etc\/watchkeeper\/a\.yaml/m);
  assert.match(text, /^Paths: \/statusz \/flagz \/configz \/version /m);
});

test("flagz tells the command line as names and values", () => {
  const words = ["run", "--config", "a.yaml", "--pid-file=/run/a.pid", "--once"];
  assert.match(
    pagesOf(sample, words).get("/flagz"),
    /\nrun\nconfig=a\.yaml\npid-file=\/run\/a\.pid\nonce=true\n$/,
  );
});

test("configz is the configuration that holds, with its defaults, and can be used as one", () => {
  const text = pagesOf(sample).get("/configz");
  const again = parseConfig(text, "/etc/watchkeeper/a.yaml");
  assert.not.ok(isProblems(again));
  assert.match(text, '"suspectAfter":"500ms"');
  assert.match(text, '"readOnly":false');
});

test("version says which one, on what", () => {
  const { version, node } = JSON.parse(pagesOf(sample).get("/version"));
  assert.equal([version, node], ["1.2.3", process.version]);
});

test("what looks like a credential is shown nowhere (A55)", () => {
  const config = sample.replace(/caFile: \S+/, `caFile: "/run/${secret}"`);
  const pages = pagesOf(config, ["run", "--config", secret]);
  for (const path of ["/statusz", "/flagz", "/configz", "/version"])
    assert.not.match(pages.get(path), "c2VjcmV0", path);
  assert.match(pages.get("/configz"), "[redacted]");
});

test("there are no other pages", () => {
  assert.is(pagesOf(sample).get("/statusz/"), "404");
});

test.run();

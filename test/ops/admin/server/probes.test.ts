import { suite } from "uvu";
import * as assert from "uvu/assert";
import { answerTo, complaintOf, readinessOf } from "../../../../src/ops/admin/server/probes.ts";

const test = suite("ops/admin/server/probes");

const good = { name: "ping", ok: true };
const bad = { name: "backends", ok: false, reason: "0 of 2 ready" };

test("all good is ok, and with verbose a line for each check", () => {
  assert.equal(answerTo("livez", "", [good]), { ok: true, text: "ok" });
  for (const query of ["verbose", "verbose=", "verbose=0", "a=b&verbose=true"])
    assert.is(answerTo("livez", query, [good]).text, "[+]ping ok\nlivez check passed\n", query);
});

test("a failed probe is always verbose, and keeps its reason to itself", () => {
  const text = "[+]ping ok\n[-]backends failed: reason withheld\nreadyz check failed\n";
  assert.equal(answerTo("readyz", "", [good, bad]), { ok: false, text });
  assert.equal(answerTo("readyz", "verbose", [good, bad]), { ok: false, text });
});

test("an excluded check counts as good; what cannot be excluded is named in quotes", () => {
  assert.equal(answerTo("readyz", "verbose&exclude=backends", [good, bad]), {
    ok: true,
    text: "[+]ping ok\n[+]backends excluded: ok\nreadyz check passed\n",
  });
  const warned = answerTo("readyz", 'exclude=b"&exclude=a%0a&exclude=ping&verbose', [good]);
  const warning = 'warn: some health checks cannot be excluded: no matches for "a\\n","b\\""\n';
  assert.is(warned.text, `[+]ping excluded: ok\n${warning}readyz check passed\n`);
});

test("a cluster is ready if it has a ready backend and every port, lets clients in, and does not drain", () => {
  const wrong = (standing: Parameters<typeof readinessOf>[0]): string => complaintOf(readinessOf(standing));
  assert.is(wrong({ clusters: [["dead", "ready"]], lost: [], isDraining: false, refusing: "" }), "");
  assert.is(
    wrong({
      clusters: [["dead", "draining"]],
      lost: ["kube"],
      isDraining: true,
      refusing: "memory is short",
    }),
    "backends: 0 of 2 ready; listeners: not bound: kube; intake: memory is short; draining: the proxy is stopping",
  );
});

test("if no worker serves, /readyz fails even without the check for a full process", () => {
  const facts = { clusters: [["ready"]], lost: [], isDraining: false, refusing: "" };
  const ask = (servingWorkers: number): boolean =>
    answerTo("readyz", "exclude=intake", readinessOf({ ...facts, servingWorkers })).ok;
  assert.not(ask(0));
  assert.ok(ask(1));
  assert.not(readinessOf(facts).some(({ name }) => name === "workers"));
});

test("the journal is told every reason", () => {
  assert.is(complaintOf([good]), "");
  assert.is(
    complaintOf([bad, good, { name: "config", ok: false }]),
    "backends: 0 of 2 ready; config: failed",
  );
});

test.run();

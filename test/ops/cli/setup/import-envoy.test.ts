import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { groupsOfEnvoy } from "../../../../src/ops/cli/setup/import-envoy.ts";

const test = suite("ops/cli/setup/import-envoy");

const endpoint = (host: string, port: string): string =>
  `          - endpoint: {address: {socket_address: {address: ${host}, port_value: ${port}}}}\n`;
const file = (endpoints: string, more = ""): string => `static_resources:
  listeners:
    - address: {socket_address: {address: 0.0.0.0, port_value: 8443}}
  clusters:
    - name: kube
      type: STRICT_DNS
      connect_timeout: 1s
${more}      load_assignment:
        endpoints:
        - lb_endpoints:
${endpoints}`;

test("the endpoints of a cluster and the first listener's address are taken over", () => {
  const text = file(
    endpoint("10.0.0.11", "6443") + endpoint("cp-2.example", "6443"),
    "      health_checks: []\n      dns_jitter: 1s\n",
  );
  const groups = groupsOfEnvoy(text, "envoy.yaml");
  if (groups instanceof Failure) throw new Error(groups.message);
  const [group] = groups;
  assert.equal([group?.name, group?.address], ["kube", ":8443"]);
  assert.equal(group?.backends, [
    { name: "10-0-0-11", url: "https://10.0.0.11:6443" },
    { name: "cp-2-example", url: "https://cp-2.example:6443" },
  ]);
  assert.equal(
    group?.notes.map(({ at, text: said }) => `${at} ${said}`),
    [
      'envoy.yaml:8:7 "health_checks" is not needed: every apiserver gets PINGs and /readyz probes by default',
      'envoy.yaml:9:7 "dns_jitter" was not imported',
    ],
  );
});

test("two ports of one host have two names", () => {
  const groups = groupsOfEnvoy(
    file(endpoint("127.0.0.1", "6443") + endpoint("127.0.0.1", "6444")),
    "envoy.yaml",
  );
  if (groups instanceof Failure) throw new Error(groups.message);
  assert.equal(
    groups[0]?.backends.map(({ name }) => name),
    ["127-0-0-1", "127-0-0-1-2"],
  );
});

test("what cannot be read or is not in the file is refused with its place", () => {
  for (const [text, word] of [
    ["a: [", /envoy\.yaml:1/],
    [file(endpoint("10.0.0.1", '"x"')), /envoy\.yaml:11:13: no socket_address/],
    [file("", "").replace("STRICT_DNS", "EDS"), /envoy\.yaml:6:13: an EDS cluster/],
  ] as const) {
    const found = groupsOfEnvoy(text, "envoy.yaml");
    assert.instance(found, Failure, text);
    if (found instanceof Failure) assert.match(found.message, word);
  }
  assert.equal(groupsOfEnvoy("a: 1", "envoy.yaml"), []);
});

test.run();

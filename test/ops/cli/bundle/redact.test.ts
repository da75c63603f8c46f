import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Redactor } from "../../../../src/ops/cli/bundle/redact.ts";
import type { Row } from "../../../../src/ops/cli/commands/rows.ts";

const test = suite("ops/cli/bundle/redact");

const leases = [
  {
    namespace: "payments",
    name: "ledger-leader",
    holder: "ledger-7d4f-x2k4l_0c4e",
    renewedBy: {
      client: "10.9.3.7",
      agent: "ledger",
      subject: "system:serviceaccount:payments:ledger",
      pod: "payments/ledger-7d4f-zzzzz",
    },
    reason: "Pod payments/ledger-7d4f-x2k4l was deleted 812.0 s ago, but still renews from 10.9.3.7",
    handovers: [{ at: "t", from: "", to: "ledger-7d4f-x2k4l_0c4e" }],
  },
];
const incidents = [
  {
    id: 1,
    kind: "lease-ghost-holder",
    subject: "leases payments/ledger-leader",
    backend: "",
    affected: { count: 1, names: ["10.9.3.7 ledger/v1", "fd00::12 x"] },
    evidence: [
      {
        detector: "deleted-pod",
        text: "by system:serviceaccount:payments:ledger, at 10.9.3.7: Bearer abcdefghijkl",
      },
    ],
  },
];
const backends = [
  {
    name: "cp-1",
    state: "dead",
    address: "10.0.0.12:6443",
    history: [{ from: "ready", to: "dead", detector: "ping" }],
  },
];

const replicas = [
  {
    name: "watchkeeper-7d4f-x2k4l",
    address: "10.4.1.7:7480",
    lastError: "connect ECONNREFUSED 10.4.1.7:7480",
    clusters: ["prod"],
  },
  { name: "[fd00::7]:7480", address: "[fd00::7]:7480", lastError: "", clusters: [] },
];

function redacted(): { readonly text: string; readonly of: (list: string) => string } {
  const redactor = new Redactor();
  const lists = new Map<string, readonly Row[]>([
    ["leases", leases],
    ["incidents", incidents],
    ["backends", backends],
    ["replicas", replicas],
  ]);
  for (const [name, rows] of lists) redactor.learn(name, rows);
  const of = (list: string): string => JSON.stringify(redactor.rows(list, lists.get(list) ?? []));
  return { text: [...lists.keys()].map(of).join("\n"), of };
}

test("hosts and addresses of replicas are replaced", () => {
  const text = redacted().of("replicas");
  for (const name of ["7d4f", "10.4.1.7", "fd00::7"]) assert.not.match(text, name);
  assert.match(text, /"name":"replica-1"/);
});

test("no name of a client, an identity, a pod, a namespace or a lease is left, in fields or in sentences", () => {
  const { text } = redacted();
  for (const name of [
    "payments",
    "ledger-leader",
    "ledger-7d4f",
    "10.9.3.7",
    "10.0.0.12",
    "fd00",
    "serviceaccount",
    "abcdefghijkl",
  ])
    assert.not.match(text, name);
});

test("the same name is the same word everywhere, and the proxy's own words stay", () => {
  const { of } = redacted();
  const [, alias = ""] = /"client":"(client-\d+)"/.exec(of("leases")) ?? [];
  assert.match(of("incidents"), `${alias} ledger/v1`);
  assert.match(of("leases"), `still renews from ${alias}`);
  assert.match(of("incidents"), '"kind":"lease-ghost-holder"');
  assert.match(
    of("backends"),
    /"name":"cp-1","state":"dead","address":"client-\d+:6443","history":\[\{"from":"ready","to":"dead"/,
  );
});

test("a path goes whole, an empty field stays empty", () => {
  const redactor = new Redactor();
  const [row] = redactor.rows("watches", [{ path: "/api/v1/namespaces/secret-project/pods", pod: "" }]);
  assert.equal(row, { path: "[redacted]", pod: "" });
});

test("labels of metrics that identify a client are replaced, those of the proxy are kept", () => {
  const redactor = new Redactor();
  redactor.learn("leases", leases);
  const text = redactor.metrics(
    [
      'watchkeeper_lease_holder_info{namespace="payments",name="ledger-leader",holder="ledger-7d4f-x2k4l_0c4e",source="10.9.3.7"} 1',
      'watchkeeper_certificate_expiry_timestamp_seconds{purpose="serving",name="kube"} 2.5e9',
    ].join("\n"),
  );
  assert.not.match(text, /payments|ledger|10\.9/);
  assert.match(text, 'purpose="serving",name="kube"} 2.5e9');
});

test.run();

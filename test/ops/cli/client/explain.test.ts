import { suite } from "uvu";
import * as assert from "uvu/assert";
import { explain } from "../../../../src/ops/cli/client/explain.ts";
import { KeptScreen, type SceneServer, serveScene } from "../../../support/api-server.ts";
import { changed, met } from "../../../support/incidents.ts";

const test = suite("ops/cli/client/explain");
let scene: SceneServer;

test.before(async () => {
  scene = await serveScene();
  const { journal } = scene.path;
  journal.write(changed("b", "ready", "suspect"));
  journal.write(met("b", "silence", ""));
  journal.write(changed("b", "suspect", "dead", { reason: "PING unanswered for 2013 ms", valueMs: 2013 }));
});

test.after(() => scene.stop());

async function asked(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: scene.address });
  return Object.assign(screen, { code: await explain(args, screen) });
}

async function idOf(kind: string): Promise<string> {
  const incident = (await scene.items("incidents")).find((one) => one["kind"] === kind);
  return String(incident?.["id"]);
}

test("it tells what is wrong, what it means, and each piece of evidence with its bound", async () => {
  const incidents = await scene.items("incidents");
  const incident = incidents.find(({ backend, state }) => backend === "b" && state === "active");
  const { out, code } = await asked(String(incident?.["id"]));
  assert.is(code, 0);
  assert.match(
    out,
    new RegExp(`^#${String(incident?.["id"])} {2}${String(incident?.["kind"])} {2}b\n! warning, active for`),
  );
  assert.match(out, "The backend sends no bytes");
  assert.match(out, /^started \S+, detected 0\.6s later$/m);
  assert.match(out, /^AT +DETECTOR +MEASURED +THRESHOLD +FINDING$/m);
  assert.match(out, /ping +600ms +500ms/);
  assert.match(out, /^backend b: b:6443$/m);
  assert.match(out, "watchkeeper get backends b -o wide");
  assert.match(out, "watchkeeper docs runbooks/WatchkeeperBackendDown  # prints the runbook\n");
  assert.match(out, "\nwatchkeeper docs runbooks/WatchkeeperBackendDown  # ");
});

test("without a number it is the newest that lasts", async () => {
  const { out } = await asked();
  assert.match(out, /^#\d+ {2}all-backends-down\n/);
  assert.not.match(out, /^backend/m);
  assert.match((await asked("backend-blackholed")).out, /^#\d+ {2}backend-blackholed {2}b\n/);
});

test("equal findings are one row, and the client that renews a ghost's lease is not called affected", async () => {
  for (let times = 0; times < 40; times += 1)
    scene.path.journal.write({
      kind: "lease.suspect",
      verdict: "ghost",
      lease: "leases shop/leader",
      holder: "cart-0",
      client: "10.9.3.7",
      subject: "system:serviceaccount:shop:cart",
      userAgent: "cart/v1",
      was: "cart-0",
      detector: "deleted-pod",
      valueMs: 60_000 * times,
      limitMs: 1000,
      reason: `Pod shop/cart-0 was deleted ${60 * times}.0 s ago, but still renews from 10.9.3.7`,
      auditId: `id-${times}`,
    });
  const { out } = await asked(await idOf("lease-ghost-holder"));
  assert.equal(
    out.match(/^.* was deleted (?!60\.0 s ago, but still renews from 10\.9\.3\.7$).*$/gm)?.length,
    3,
  );
  assert.match(
    out,
    /deleted 2340\.0 s ago, but still renews from 10\.9\.3\.7 \(38 equal findings since the row above\)/,
  );
  assert.match(out, "CAUSED BY (1)\n10.9.3.7 cart/v1\n");
  assert.not.match(out, "AFFECTED");
  assert.match(out, "watchkeeper get leases leader -o wide\n");
  assert.match(out, "kubectl get nodes,pods -A -o wide | grep -wF 10.9.3.7\n");
  assert.match(out, "grep id-39 audit.log");
  assert.match(
    out,
    '\nssh NODE \'crictl stop $(crictl ps -q --pod $(crictl pods -q --namespace "^shop$" --name "^cart-0$"))\'  # ends',
  );
});

test("a pod that renews the lease of another pod is deleted by name; a name that a shell could interpret is not", async () => {
  const ghost = {
    kind: "lease.suspect",
    verdict: "ghost",
    holder: "cart-0",
    client: "10.9.3.7",
    subject: "system:serviceaccount:shop:cart",
    userAgent: "cart/v1",
    was: "cart-1",
    detector: "pod",
    valueMs: 0,
    limitMs: 0,
    auditId: "id",
  } as const;
  const commandsFor = async (lease: string, pod: string): Promise<string> => {
    const reason = `Lease names pod cart-0 but is renewed with the token of pod ${pod} from 10.9.3.7`;
    scene.path.journal.write({ ...ghost, lease, reason });
    const found = (await scene.items("incidents")).find(({ subject }) => subject === lease);
    return (await asked(String(found?.["id"]))).out.split("\nNEXT\n")[1] ?? "";
  };
  assert.match(
    await commandsFor("leases shop/a", "shop/cart-1"),
    "\nkubectl delete pod -n shop cart-1  # ends",
  );
  for (const pod of ["shop/$(reboot)", "shop/-x", "shop/a'b", "cart-1"])
    assert.not.match(await commandsFor(`leases shop/${pod.length}`, pod), /kubectl delete|crictl/, pod);
});

test("a client at a loopback address is searched for among the processes of the same host", async () => {
  const client = "127.0.0.1";
  const loop = { resource: "/pods", version: "7", times: 5, userAgent: "operator/v2" } as const;
  scene.path.journal.write({ kind: "watch.replay_loop", client, ...loop });
  const { out } = await asked(await idOf("watch-replay-loop"));
  assert.match(out, "CAUSED BY (1)\n127.0.0.1 operator/v2\n");
  assert.match(out, /^found \S+; the cause may be older$/m);
  assert.match(out, /^ss -tnp 'src 127\.0\.0\.1 and \( dport = :8443 or dport = :6443 \)' {2}# loopback: /m);
  assert.not.match(out, "kubectl");
  scene.path.journal.write({ kind: "watch.replay_loop", ...loop, client: "::1", resource: "/secrets" });
  // `ss` takes "::1" without brackets as the host ":" and the port 1, and prints an error.
  assert.match((await asked(await idOf("watch-replay-loop"))).out, "\nss -tnp 'src [::1] and ( dport = ");
});

test("for a certificate it prints the commands that compare its files, and says not to restart", async () => {
  const problem =
    'Cannot use "/etc/watchkeeper/tls.crt" with "/etc/watch\'keeper/tls.key": the private key is not that of the certificate of "CN=watchkeeper"';
  scene.path.journal.write({ kind: "certificate.refused", name: "kube", problem });
  const { out } = await asked(await idOf("certificate-refused"));
  assert.match(out, "\nwatchkeeper get certificates -o wide  # LEFT");
  assert.match(out, "\nopenssl x509 -noout -subject -dates -pubkey -in /etc/watchkeeper/tls.crt\n");
  assert.match(out, "\nopenssl pkey -pubout -in '/etc/watch'\\''keeper/tls.key'  # ");
  assert.match(out, "do not restart this watchkeeper");
  const soon = { purpose: "client-ca", name: "kube client CA", notAfter: "2026", leftMs: 1, limitMs: 2 };
  scene.path.journal.write({ kind: "certificate.expiring", ...soon });
  const expiring = await asked(await idOf("certificate-expiring"));
  assert.match(expiring.out, "\nwatchkeeper get certificates purpose=client-ca 'kube client CA' -o wide\n");
});

test("the time until a certificate expires is printed in days or hours", async () => {
  const day = 86_400_000;
  for (const [name, leftMs] of [
    ["c", 20.5 * day],
    ["d", -3 * day],
    ["e", day / 2],
  ] as const)
    scene.path.journal.write({
      kind: "certificate.expiring",
      purpose: "backend-loopback",
      name,
      notAfter: "2026-12-13T23:24:30.000Z",
      leftMs,
      limitMs: 30 * day,
    });
  const incidents = await scene.items("incidents");
  const measured: string[] = [];
  for (const name of ["c", "d", "e"]) {
    const incident = incidents.find((one) => one["backend"] === name);
    const { out } = await asked(String(incident?.["id"]));
    measured.push(/notAfter +(\S+ +\S+)/.exec(out)?.[1]?.replaceAll(/ +/g, " ") ?? out);
  }
  assert.equal(measured, ["20d 30d", "-3d 30d", "12h 30d"]);
});

test("a dead backend with another history is not said to refuse connections only", async () => {
  const { journal } = scene.path;
  const reason = "its etcd has a different history: pods is at version 7, clients have seen 9";
  journal.write(changed("a", "ready", "dead", { detector: "history", reason, valueMs: 0, limitMs: 0 }));
  const incidents = await scene.items("incidents");
  const incident = incidents.find(({ kind, backend }) => kind === "backend-dead" && backend === "a");
  const { out } = await asked(String(incident?.["id"]));
  assert.match(out, "different history");
  assert.match(out, "or its etcd has another history than clients have seen");
});

test("what an incident cost is counted, one as one", async () => {
  const moved = { kind: "watches.moved", from: "b", to: "a", reason: "dead", slowestMs: 702 } as const;
  scene.path.journal.write({ ...moved, count: 1 });
  assert.match(
    (await asked("backend-blackholed")).out,
    "IMPACT\n1 watch moved without its client noticing\nthe slowest move took 0.7s\n",
  );
  scene.path.journal.write({ ...moved, count: 2 });
  assert.match(
    (await asked("backend-blackholed")).out,
    "IMPACT\n3 watches moved without their clients noticing\n",
  );
});

test("as JSON it is what the API says", async () => {
  const [incident] = await scene.items("incidents");
  const { out } = await asked(`#${String(incident?.["id"])}`, "-o", "json");
  assert.is(JSON.parse(out).kind, incident?.["kind"]);
});

test("one that there is not is 1, a word that is no number 2", async () => {
  const none = await asked("999");
  assert.equal([none.code, none.out], [1, ""]);
  assert.match(none.complaints, "There is no such incident, or it is no longer kept");
  const kind = await asked("overload");
  assert.equal([kind.code, kind.complaints], [1, "No incidents\n"]);
  assert.is((await asked("forty-two")).code, 2);
  assert.is((await asked("1", "2")).code, 2);
});

test.run();

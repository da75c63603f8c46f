import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { groupsOfHaproxy } from "../../../src/cli/setup/import-haproxy.ts";

const test = suite("cli/setup/import-haproxy");

/** The haproxy.cfg of kubeadm's guide to highly available clusters. */
const guide = `global
    log stdout format raw local0
defaults
    mode                    http
    timeout client          35s
frontend apiserver
    bind *:8443
    mode tcp
    option tcplog
    default_backend apiserverbackend
backend apiserverbackend
    option httpchk
    mode tcp
    balance     roundrobin # one after the other
    server cp1 10.0.0.11:6443 check verify none
    server CP_2 [fd00::12]:6443 check ca-file /etc/ssl/ca.pem
    http-request set-header X-A b
`;

function groups(text: string): Exclude<ReturnType<typeof groupsOfHaproxy>, Failure> {
  const found = groupsOfHaproxy(text, "haproxy.cfg");
  if (found instanceof Failure) throw new Error(found.message);
  return found;
}

test("servers, their frontend's address and the CA are taken over", () => {
  const [group] = groups(guide);
  assert.equal(group?.backends, [
    { name: "cp1", url: "https://10.0.0.11:6443" },
    { name: "cp-2", url: "https://[fd00::12]:6443" },
  ]);
  assert.equal(
    [group?.name, group?.address, group?.caFile],
    ["apiserverbackend", ":8443", "/etc/ssl/ca.pem"],
  );
});

test("what is not needed says why, and what is lost is named, each with its line", () => {
  const notes = groups(guide)[0]?.notes.map(({ at, text }) => `${at} ${text}`) ?? [];
  assert.match(
    notes[0] ?? "",
    /^haproxy\.cfg:5 "timeout client 35s" is not needed: idle connections stay open/,
  );
  assert.match(notes.at(-1) ?? "", 'haproxy.cfg:17 "http-request set-header X-A b" was not imported');
  assert.is(notes.length, 4);
});

test("an option of a server that changes who gets clients is named, with what watchkeeper does or what to set", () => {
  const text = `backend b
  default-server check weight 10
  server a 10.0.0.2:6443 check
  server b 10.0.0.3:6443 check backup weight 1
  server c 10.0.0.4:6443 disabled send-proxy-v2
`;
  const notes = groups(text)[0]?.notes.map((note) => `${note.at} ${note.text}`) ?? [];
  assert.equal(notes, [
    'haproxy.cfg:2 "weight" of default-server was not imported: weights from 1 to 256 of a server line are imported',
    'haproxy.cfg:4 "backup" of server "b" was not imported: watchkeeper uses this apiserver like the others',
    'haproxy.cfg:5 "disabled" of server "c" was not imported: watchkeeper uses this apiserver: remove it if it should get no clients; "send-proxy-v2" of server "c" was not imported: set clusters[0].proxyProtocol: {version: V2}',
  ]);
});

test("TLS and the PROXY protocol of a bind line are named, with the keys to set", () => {
  const text = "listen api\n  bind *:443 ssl crt a.pem accept-proxy\n  bind :80\n  server a 10.0.0.2:6443\n";
  assert.equal(
    groups(text)[0]?.notes.map((note) => `${note.at} ${note.text}`),
    [
      'haproxy.cfg:2 "ssl" of bind "*:443" was not imported: import with --mode HTTP, and set listeners[0].tls; "accept-proxy" of bind "*:443" was not imported: set listeners[0].proxyProtocol',
    ],
  );
});

test("a listen section is its own frontend, and one without servers is none", () => {
  const [group, ...others] = groups(
    "listen api\n  bind 10.0.0.1:443\n  server a 10.0.0.2:6443\nbackend empty\n",
  );
  assert.equal([group?.address, others], ["10.0.0.1:443", []]);
  assert.is(groups("listen api\n  server a 10.0.0.2:6443\n")[0]?.address, undefined);
});

test("what is no server, and what is no haproxy.cfg, is refused with its line", () => {
  for (const [text, word] of [
    ["backend b\n  server a 10.0.0.1\n", /haproxy\.cfg:2: server "a" has the address "10\.0\.0\.1"/],
    ["backend b\n  server a :6443\n", /haproxy\.cfg:2/],
    ["backend b\n  server-template a 3 x:6443\n", /haproxy\.cfg:2: "server-template" .* DNS/],
    ["apiVersion: v1\n", /haproxy\.cfg:1: "apiVersion:" is outside any section/],
  ] as const) {
    const found = groupsOfHaproxy(text, "haproxy.cfg");
    assert.instance(found, Failure);
    if (found instanceof Failure) assert.match(found.message, word);
  }
});

test.run();

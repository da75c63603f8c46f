import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { groupsOfHaproxy } from "../../../../src/ops/cli/setup/import-haproxy.ts";

const test = suite("ops/cli/setup/import-haproxy");

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
  assert.equal(notes, [
    'haproxy.cfg:1 the section "global" was not imported: its lines concern only the haproxy process',
    'haproxy.cfg:5 "timeout client 35s" is not needed: idle connections stay open; PING finds a silent apiserver within a second',
    'haproxy.cfg:12 "option httpchk" is not needed: every apiserver gets PINGs and /readyz probes by default',
    'haproxy.cfg:14 "balance roundrobin" is not needed: a new client uses the less loaded of two random apiservers',
    'haproxy.cfg:15 "verify none" of server "cp1" was not imported: watchkeeper verifies certificates of apiservers with clusters[0].tls.caFile',
    'haproxy.cfg:17 "http-request set-header X-A b" was not imported',
  ]);
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
    'haproxy.cfg:2 "weight 10" of default-server was not imported: weights from 1 to 256 of a server line are imported',
    'haproxy.cfg:4 "backup" of server "b" was not imported: watchkeeper uses this apiserver like the others',
    'haproxy.cfg:5 "disabled" of server "c" was not imported: watchkeeper uses this apiserver: remove it if it should get no clients; "send-proxy-v2" of server "c" was not imported: set clusters[0].proxyProtocol: {version: V2}',
  ]);
});

test("each option of a server that is not imported is named with its value, except those that only tune checks", () => {
  const text = `backend b
  default-server ssl ca-file /a.pem inter 2s
  server a 10.0.0.2:6443 check inter 1s rise 2 fall 3 port 6444 slowstart 10s verify required sni str(x)
  server b 10.0.0.3:6443 check ca-file /b.pem unknown
`;
  assert.equal(
    groups(text)[0]?.notes.map((note) => `${note.at} ${note.text}`),
    [
      'haproxy.cfg:2 "ssl" of default-server was not imported: with --mode HTTP, watchkeeper connects to apiservers with TLS',
      'haproxy.cfg:3 "port 6444" of server "a" was not imported: watchkeeper sends probes to the port of the server; "slowstart 10s" of server "a" was not imported: the share of an apiserver that has returned grows to its full share within 30 s; "sni str(x)" of server "a" was not imported: set clusters[0].tls.serverName',
      'haproxy.cfg:4 "ca-file /b.pem" of server "b" was not imported: the generated configuration has one CA file for all apiservers; "unknown" of server "b" was not imported',
    ],
  );
});

test("TLS and the PROXY protocol of a bind line are named, with the keys to set, and so are its other options", () => {
  const text = "listen api\n  bind *:443 ssl crt a.pem accept-proxy v4v6\n  server a 10.0.0.2:6443\n";
  assert.equal(
    groups(text)[0]?.notes.map((note) => `${note.at} ${note.text}`),
    [
      'haproxy.cfg:2 "ssl" of bind "*:443" was not imported: import with --mode HTTP, and set listeners[0].tls; "crt a.pem" of bind "*:443" was not imported: set listeners[0].tls.certFile and keyFile; "accept-proxy" of bind "*:443" was not imported: set listeners[0].proxyProtocol; "v4v6" of bind "*:443" was not imported',
    ],
  );
});

test("each bind line after the first is named, also that of another frontend, and so is an address that is not imported", () => {
  const text = `frontend f
  bind ipv4@10.0.0.1:8443
  bind :9443 accept-proxy
  default_backend b
frontend g
  bind :80
  default_backend b
backend b
  server a 10.0.0.2:6443
`;
  const [group] = groups(text);
  const why = "the generated configuration has one listener, with the address of the first bind line";
  assert.is(group?.address, "10.0.0.1:8443");
  assert.equal(
    group?.notes.map((note) => `${note.at} ${note.text}`),
    [
      `haproxy.cfg:3 "bind :9443 accept-proxy" was not imported: ${why}`,
      `haproxy.cfg:6 "bind :80" was not imported: ${why}`,
    ],
  );
  for (const address of ["/run/h.sock", ":80,:443", ":80-90", "${VIP}:80", "lb.example:80", "::1:80"]) {
    const [first] = groups(`listen api\n  bind ${address} accept-proxy\n  server a 10.0.0.2:6443\n`);
    assert.is(first?.address, undefined);
    assert.equal(
      first?.notes.map((note) => note.text),
      [
        `the address of bind "${address}" was not imported: set listeners[0].address; "accept-proxy" of bind "${address}" was not imported: set listeners[0].proxyProtocol`,
      ],
    );
  }
});

test("the CA of clients on a bind line is not the CA of apiservers", () => {
  const [group] = groups("listen api\n  bind :443 ca-file /clients.pem\n  server a 10.0.0.2:6443\n");
  assert.is(group?.caFile, undefined);
  assert.match(group?.notes[0]?.text ?? "", '"ca-file /clients.pem" of bind ":443" was not imported');
});

test("each section of which nothing is imported is named once", () => {
  const text = `listen api
  bind :8443
  server a 10.0.0.2:6443
listen stats
  bind :8404
  stats enable
resolvers dns
  nameserver n 10.0.0.9:53
peers empty
`;
  assert.equal(
    groups(text)[0]?.notes.map((note) => `${note.at} ${note.text}`),
    [
      'haproxy.cfg:4 the section "listen stats" was not imported',
      'haproxy.cfg:7 the section "resolvers dns" was not imported',
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

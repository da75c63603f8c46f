import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  addressOfOctets,
  isBoundAt,
  isHost,
  isLoopback,
  isNetwork,
  isUnicast,
  networksOf,
  octetsOf,
  parseAddress,
  parseBackendUrl,
  withoutMapping,
} from "../../src/base/address.ts";

const test = suite("address");

test("an address is an IP address and a port", () => {
  assert.equal(parseAddress("[::]:8443"), { host: "::", port: 8443 });
  assert.equal(parseAddress("127.0.0.1:0"), { host: "127.0.0.1", port: 0 });
});

test("without a host it is every address of both families", () => {
  assert.equal(parseAddress(":8443"), { host: "::", port: 8443 });
});

test("an address that could mean two things is refused", () => {
  const doubtful = [
    "localhost:80",
    "",
    ":",
    "1.2.3.4",
    "::1:80",
    "[::1]",
    "[1.2.3.4]:80",
    "example.com:80",
    "1.2.3:80",
  ];
  for (const text of [...doubtful, "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:8e3", "[fe80::1%eth0]:80 "])
    assert.is(parseAddress(text), undefined, text);
});

test("a backend's url is scheme, host and port", () => {
  assert.equal(parseBackendUrl("https://10.0.0.1"), { isEncrypted: true, host: "10.0.0.1", port: 443 });
  const { path } = parseBackendUrl("https://rancher.example/k8s/clusters/c-m.1_2~3/") ?? {};
  assert.is(path, "/k8s/clusters/c-m.1_2~3");
  assert.equal(parseBackendUrl("https://[fd00::1]:6443/"), {
    isEncrypted: true,
    host: "fd00::1",
    port: 6443,
  });
  assert.equal(parseBackendUrl("HTTP://localhost:8001"), {
    isEncrypted: false,
    host: "localhost",
    port: 8001,
  });
});

test("a url that has more than an origin and a plain path is refused (A57)", () => {
  const crafted = [
    "file:///etc/passwd",
    "unix:/run/x.sock",
    "https:10.0.0.1",
    "https://",
    "https://:6443",
    "https://user:pass@10.0.0.1",
    "https://10.0.0.1/path?x",
    "https://10.0.0.1//path",
    "https://10.0.0.1/a//b",
    "https://10.0.0.1/a/../b",
    "https://10.0.0.1/./a",
    "https://10.0.0.1/%2e%2e/a",
    "https://10.0.0.1/a%2fb",
    "https://10.0.0.1/a b",
    "https://10.0.0.1/a;b",
    "https://10.0.0.1//",
    "https://10.0.0.1?x",
    "https://10.0.0.1#x",
    "https://10.0.0.1:0",
    "https://10.0.0.1:65536",
    "https://10.0.0.1\\@evil",
    "https://0177.1",
    "https://0x7f.0.0.1",
    "https://2130706433",
    "https://a b",
    "https://a..b",
    "https://[::1",
    "https://[127.0.0.1]:1",
    " https://10.0.0.1",
    "https://10.0.0.1\n",
  ];
  for (const text of crafted) assert.is(parseBackendUrl(text), undefined, text);
});

test("loopback is 127.0.0.0/8, ::1 and its name", () => {
  for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"]) assert.ok(isLoopback(host), host);
  for (const host of ["::", "0.0.0.0", "10.0.0.1", "::2", "example.com", ""])
    assert.not.ok(isLoopback(host), host);
});

test("a host is a DNS name or an IP address", () => {
  for (const host of ["kubernetes.default.svc", "a", "10.0.0.1", "::1"]) assert.ok(isHost(host), host);
  for (const host of ["", "-a", "a_b", "a.", "1", "a".repeat(64), "[::1]"]) assert.not.ok(isHost(host), host);
});

test("an IPv4 client of an IPv6 socket is found in its network", () => {
  const networks = networksOf(["10.0.0.0/8", "fd00::/8"]);
  const found = ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "11.0.0.1", "fe80::1", "no address"].map(
    (address) => networks.has(address),
  );
  assert.equal(found, [true, true, true, false, false, false]);
});

test("a bound socket is the one meant when host and port are; port 0 means any", () => {
  const bound = { address: "127.0.0.1", family: "IPv4", port: 8443 };
  for (const port of [8443, 0]) assert.ok(isBoundAt(bound, { host: "127.0.0.1", port }), String(port));
  assert.not.ok(isBoundAt(bound, { host: "127.0.0.1", port: 8444 }));
  assert.not.ok(isBoundAt(bound, { host: "::", port: 8443 }));
  for (const other of [null, "/run/a.sock", undefined])
    assert.not.ok(isBoundAt(other, { host: "127.0.0.1", port: 0 }));
});

test("a backend's address is one host's own", () => {
  for (const address of ["10.0.0.1", "127.0.0.1", "fd00::1", "2001:db8::1"])
    assert.ok(isUnicast(address), address);
  const others = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "ff02::1",
  ];
  for (const address of [...others, "::ffff:169.254.169.254", "localhost", ""])
    assert.not.ok(isUnicast(address), address);
});

test("an IP address and its octets are the same, in the one text that sockets have for it", () => {
  for (const address of ["10.0.0.1", "::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "fe80::a:0:0:1", "1::8"])
    assert.is(addressOfOctets(Uint8Array.from(octetsOf(address) ?? [])), address);
  assert.is(addressOfOctets(Uint8Array.from(octetsOf("2001:DB8:0:0::0:1") ?? [])), "2001:db8::1");
  assert.is(addressOfOctets(Uint8Array.from(octetsOf("::ffff:10.1.2.3") ?? [])), "10.1.2.3");
  assert.equal(octetsOf("64:ff9b::192.0.2.33")?.slice(-4), [192, 0, 2, 33]);
  for (const text of ["", "fe80::1%eth0", "1.2.3", "localhost", "1:2", "[::1]"])
    assert.is(octetsOf(text), undefined, text);
  assert.equal(["::ffff:10.0.0.1", "::ffff:a00:1", "10.0.0.1"].map(withoutMapping), [
    "10.0.0.1",
    "::ffff:a00:1",
    "10.0.0.1",
  ]);
});

test("a network has a prefix that fits its family", () => {
  for (const text of ["0.0.0.0/0", "10.0.0.0/32", "::/0", "fd00::/128"]) assert.ok(isNetwork(text), text);
  for (const text of ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/8/8", "10.0.0.0/x", "a/8"])
    assert.not.ok(isNetwork(text), text);
});

test.run();

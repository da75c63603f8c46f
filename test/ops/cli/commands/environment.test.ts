import { suite } from "uvu";
import * as assert from "uvu/assert";
import { unsafeEnvironment } from "../../../../src/ops/cli/commands/environment.ts";

const test = suite("ops/cli/commands/environment");

test("an environment that turns off TLS verification is refused, with the variable's name", () => {
  assert.match(
    unsafeEnvironment({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, []) ?? "",
    "NODE_TLS_REJECT_UNAUTHORIZED",
  );
});

test("Node options that weaken TLS or HTTP are refused, in NODE_OPTIONS and as arguments", () => {
  for (const option of [
    "--tls-min-v1.0",
    "--tls-min-v1.1",
    "--tls-keylog=/tmp/keys",
    "--tls_keylog=/tmp/keys",
    '"--tls-keylog=/tmp/keys"',
    "--insecure-http-parser",
    "--security-revert=CVE-2023-46809",
  ]) {
    assert.match(unsafeEnvironment({ NODE_OPTIONS: `--no-warnings ${option}` }, []) ?? "", option, option);
    assert.match(unsafeEnvironment({}, [option]) ?? "", option, option);
  }
});

test("an environment that only changes the default CAs, or nothing, is permitted", () => {
  for (const env of [
    {},
    { NODE_TLS_REJECT_UNAUTHORIZED: "1" },
    { NODE_TLS_REJECT_UNAUTHORIZED: "" },
    { NODE_EXTRA_CA_CERTS: "/etc/ca.crt", SSL_CERT_FILE: "/etc/ca.crt", SSLKEYLOGFILE: "/tmp/keys" },
    { NODE_OPTIONS: "--use-openssl-ca --max-old-space-size=512 --tls-min-v1.3" },
  ])
    assert.is(unsafeEnvironment(env, ["--disable-sigusr1"]), undefined, JSON.stringify(env));
});

test.run();

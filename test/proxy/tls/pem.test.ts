import { suite } from "uvu";
import * as assert from "uvu/assert";
import { splitPem } from "../../../src/proxy/tls/serving-pair.ts";
import { cpuMs } from "../../support/cpu.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/tls/pem");

function typesOf(text: string): string[] {
  return splitPem(text).map(({ type, isWhole }) => (isWhole ? type : `${type}, cut`));
}

test("a mixed file is split into typed blocks, without remarks", async () => {
  const { serving } = await testPki();
  const mixed = `Subject: CN=x\r\n${serving.certificate.replaceAll("\n", "\r\n")}\n\n${serving.key}-- end --\n`;
  assert.equal(typesOf(mixed), ["CERTIFICATE", "PRIVATE KEY"]);
  assert.is(splitPem(mixed)[0]?.text, serving.certificate);
  assert.is(splitPem(mixed)[1]?.text, serving.key);
});

test("every cut of a file shows: a block is missing or not whole", async () => {
  const { serving } = await testPki();
  const text = serving.certificate + serving.key;
  for (let length = 0; length < text.trimEnd().length; length++) {
    const types = typesOf(text.slice(0, length));
    assert.not.equal(types, ["CERTIFICATE", "PRIVATE KEY"], `${length}`);
  }
});

test("a block that begins inside another leaves the first one cut", () => {
  const text = "-----BEGIN A-----\nx\n-----BEGIN B-----\ny\n-----END B-----\n-----END A-----\n";
  assert.equal(typesOf(text), ["A, cut", "B"]);
});

test("what is no PEM has no blocks", () => {
  for (const text of ["", "<nil>", "-----BEGIN-----", "----BEGIN A----", "\0\0", "-----END A-----\n"])
    assert.equal(typesOf(text), [], text);
});

test("a megabyte of edges is split in no time", () => {
  const tookMs = cpuMs(() => {
    splitPem("-----BEGIN A-----\n".repeat(60_000));
    splitPem(`-----BEGIN ${"A".repeat(1_000_000)}`);
    splitPem(" ".repeat(1_000_000));
  });
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});

test.run();

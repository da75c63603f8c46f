import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field, role } from "../../../src/h2/core/field.ts";

const test = suite("h2/core/field");

test("names that mean something to the message rules carry their role", () => {
  assert.is(new Field(":path", "/").role, role.path);
  assert.is(new Field(":protocol", "websocket").role, role.unknownPseudo);
  assert.is(new Field("__proto__", "x").role, role.ordinary);
});

test("a bad name or value is a fault that never repeats the value (A10, A27)", () => {
  for (const [name, value] of [
    ["", "x"],
    [":", "x"],
    ["Accept", "x"],
    ["a b", "x"],
    ["a:b", "x"],
    ["ok", "secret\n"],
    ["ok", "a\0b"],
    ["ok", "a\x7f"],
  ] as const) {
    const { fault } = new Field(name, value);
    assert.type(fault, "string", JSON.stringify([name, value]));
    assert.not.match(fault ?? "", "secret");
  }
});

test("an empty value, inner blanks and obs-text are honest", () => {
  for (const value of ["", "a b\tc", "caf\xe9"]) assert.is(new Field("x-note", value).fault, undefined);
});

test("trimmed: only spaces and tabs at both ends are removed; the value is indexed no sooner", () => {
  for (const [value, trimmed] of [
    [" a\tb \t", "a\tb"],
    ["\t", ""],
    ["a ", "a"],
  ] as const) {
    const field = new Field("x-note", value, true);
    assert.ok(field.hasOuterBlanks);
    assert.equal([field.trimmed().value, field.trimmed().isNeverIndexed], [trimmed, true]);
  }
  for (const value of ["", "a b", "\xa0a"]) assert.not(new Field("x-note", value).hasOuterBlanks);
});

test("credentials and identities are for no table, whatever they came as (RFC 7541 §7.1.3)", () => {
  for (const name of ["authorization", "cookie", "set-cookie", "proxy-authorization", "impersonate-group"])
    assert.ok(new Field(name, "x").isNeverIndexed, name);
  for (const name of ["accept", "x-remote", "remote-user", ":path"])
    assert.not(new Field(name, "x").isNeverIndexed, name);
  assert.ok(new Field("accept", "x", true).isNeverIndexed);
});

test("the size is RFC 7541's, and the key joins name and value", () => {
  const field = new Field("ab", "cde");
  assert.is(field.size, 37);
  assert.is(field.key, "ab\0cde");
});

test.run();

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";
import { HeldResponse, isRefusal, isShutdown } from "../../../src/proxy/request/held-response.ts";
import { Attempt } from "../../../src/upstream/pool/attempt.ts";
import { attemptOwner } from "../../support/attempt-owner.ts";

const test = suite("proxy/request/held-response");

const head = [new Field(":status", "503")];
const attempt = new Attempt("a", attemptOwner({}));

/** Passes the held response on. Returns what the client receives. */
function told(refusal: HeldResponse): string[] {
  const heard: string[] = [];
  refusal.passOn({
    headers: (fields, end) => heard.push(`${fields[0]?.value} ${end}`),
    data: (body, end) => heard.push(`${body.toString()} ${end}`),
  });
  return heard;
}

test("a refusal is told as it came: its head, what there is of its body, its end", () => {
  assert.equal(told(new HeldResponse(attempt, head, true, new Buffered(1000))), ["503 true"]);
  const buffered = new Buffered(1000);
  const refusal = new HeldResponse(attempt, head, false, buffered);
  refusal.keep(Buffer.from("not "), 0, 4, false);
  refusal.keep(Buffer.from("now"), 0, 3, false);
  assert.equal([refusal.heldBytes, buffered.bytes], [7, 7]);
  assert.equal(told(refusal), ["503 false", "not now false"]);
  assert.is(buffered.bytes, 0);
});

test("an end without bytes and trailers are told too", () => {
  const ended = new HeldResponse(attempt, head, false, new Buffered(1000));
  ended.keep(Buffer.from("x"), 0, 1, false);
  ended.keep(Buffer.alloc(0), 0, 0, true);
  assert.equal(told(ended), ["503 false", "x true"]);
  const trailed = new HeldResponse(attempt, head, false, new Buffered(1000));
  trailed.endWith([new Field("x-sum", "7")]);
  assert.equal(told(trailed), ["503 false", "7 true"]);
});

test("what is forgotten is held no longer", () => {
  const buffered = new Buffered(1000);
  const refusal = new HeldResponse(attempt, head, false, buffered);
  refusal.keep(Buffer.from("x"), 0, 1, true);
  refusal.forget();
  assert.is(buffered.bytes, 0);
});

test("if the head cannot be passed on, the body is held no longer", () => {
  const before = takenBlocks();
  const buffered = new Buffered(1e9);
  const refusal = new HeldResponse(attempt, head, false, buffered);
  refusal.keep(Buffer.alloc(5000), 0, 5000, true);
  const headers = (): void => {
    throw new Error("thrown by the test");
  };
  assert.throws(() => refusal.passOn({ headers, data: () => assert.unreachable() }), "thrown by the test");
  assert.equal([buffered.bytes, takenBlocks()], [0, before]);
});

test("429 and 5xx are refusals; a response with any other status is relayed", () => {
  assert.equal([200, 301, 401, 404, 410, 429, 500, 503].filter(isRefusal), [429, 500, 503]);
});

/** A Status in protobuf (k8s.io/apimachinery, meta/v1/generated.proto), of fields shorter than 128 bytes. */
function protobufStatus(message: string, name?: string): Buffer {
  const field = (number: number, value: Buffer | string): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, value.length]), Buffer.from(value)]);
  const details = name === undefined ? [] : [field(5, Buffer.concat([field(1, name), field(2, "apps")]))];
  const status = Buffer.concat([
    field(1, ""),
    field(2, "Failure"),
    field(3, message),
    field(4, "NotFound"),
    ...details,
    Buffer.from([6 * 8, 0x94, 0x03]),
  ]);
  const type = field(1, Buffer.concat([field(1, "v1"), field(2, "Status")]));
  return Buffer.concat([Buffer.from("k8s\0"), type, field(2, status), field(3, ""), field(4, "")]);
}

test("a 404 of the router is known by its reason and by the missing name, in the words of each Kubernetes version", () => {
  const complaintOf = (body: string | Buffer): string => {
    const response = new HeldResponse(attempt, [new Field(":status", "404")], false, new Buffered(1000));
    const bytes = Buffer.from(body);
    response.keep(bytes, 0, bytes.length, true);
    return response.complaint;
  };
  const status = (message: string, details?: object, reason: string | undefined = "NotFound"): string =>
    JSON.stringify({ kind: "Status", status: "Failure", message, reason, details, code: 404 });
  const message = "the server could not find the requested resource";
  const before138 = "404 page not found";
  for (const body of [
    `${before138}\n`,
    status(before138),
    status(before138, {}),
    status("some other words", { group: "apps" }),
    status(message, {}),
    protobufStatus(message),
    protobufStatus(before138),
    `\u{d9}\u{d9}\u{f7}message${message}`,
  ])
    assert.is(complaintOf(body), "no-route", String(body));
  for (const body of [
    status('pods "x" not found', { name: "x", kind: "pods" }),
    status(message, { name: "x" }),
    status(before138, { name: "x" }),
    protobufStatus('pods "x" not found', "x"),
    protobufStatus(before138, "x"),
  ])
    assert.is(complaintOf(body), "no-object", String(body));
  for (const body of [
    "",
    "x 404 page not found",
    status('pods "x" not found', {}, "Gone"),
    "{",
    "k8s\0",
    "k8s\0\u0012",
  ])
    assert.is(complaintOf(body), "", body);
});

test("a 503 of the aggregator is known by its text, and by its status", () => {
  const complaintOf = (status: string, body: string): string => {
    const response = new HeldResponse(attempt, [new Field(":status", status)], false, new Buffered(1000));
    response.keep(Buffer.from(body), 0, body.length, true);
    return response.complaint;
  };
  const body = "error trying to reach service: dial tcp 10.0.0.1:443: i/o timeout\n";
  assert.is(complaintOf("503", body), "unreachable");
  assert.equal([complaintOf("500", body), complaintOf("503", "service unavailable\n")], ["", ""]);
});

/**
 * Returns the fields of an error response as `http.Error` or a filter of k8s.io/apiserver writes them, except the field
 * `without`.
 */
function answer(status: string, type: string, without = ""): Field[] {
  const fields = [
    new Field("retry-after", "1"),
    new Field("content-type", type),
    new Field("x-content-type-options", "nosniff"),
  ];
  return [new Field(":status", status), ...fields.filter(({ name }) => name !== without)];
}

test("the 503 of an apiserver's last moments is told by its fields", () => {
  assert.ok(isShutdown(answer("503", "application/json"), false));
  assert.not.ok(isShutdown(answer("503", "text/plain; charset=utf-8"), false));
  for (const name of ["retry-after", "x-content-type-options"])
    assert.not.ok(isShutdown(answer("503", "application/json", name), true), name);
  assert.not.ok(isShutdown(answer("500", "application/json"), true));
});

test("a 429 is a shutdown only where the backend is known to be going: an overloaded one writes the same", () => {
  assert.ok(isShutdown(answer("429", "text/plain; charset=utf-8"), true));
  assert.not.ok(isShutdown(answer("429", "text/plain; charset=utf-8"), false));
  assert.not.ok(isShutdown(answer("429", "application/json"), true));
});

test.run();

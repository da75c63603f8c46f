import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";

const test = suite("h2/core/protocol-error");

test("an error knows its code on the wire and what it costs", () => {
  const error = new ProtocolError(errorCode.FRAME_SIZE_ERROR, "session", "PING of 7 bytes");
  assert.equal([error.code, error.scope, error.message], [6, "session", "PING of 7 bytes"]);
});

test.run();

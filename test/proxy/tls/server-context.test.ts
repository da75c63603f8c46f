import { constants } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { serverContext, serverTlsOptions } from "../../../src/proxy/tls/server-context.ts";
import { checkPair } from "../../../src/proxy/tls/serving-pair.ts";
import { rootsIn } from "../../../src/x509/verify.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/tls/server-context");

const { authority, serving } = await testPki();
const plain = { clientCas: [], wholeOnly: false };

test("where certificates identify clients there are no tickets, and no name to resume by (A47)", () => {
  const isTicketless = (wholeOnly: boolean): boolean =>
    ((serverTlsOptions(wholeOnly).secureOptions ?? 0) & constants.SSL_OP_NO_TICKET) !== 0;
  assert.equal([isTicketless(false), isTicketless(true)], [false, true]);
  assert.equal(
    [serverTlsOptions(false).sessionIdContext, serverTlsOptions(true).sessionIdContext],
    ["watchkeeper", undefined],
  );
});

test("a checked pair has a context, with an authority for clients and without", () => {
  const pair = checkPair(serving.certificate, serving.key, Date.now());
  assert.not.instance(pair, Failure);
  if (pair instanceof Failure) return;
  assert.not.instance(serverContext(pair, plain), Failure);
  assert.not.instance(serverContext(pair, { ...plain, clientCas: rootsIn(authority.certificate) }), Failure);
  assert.instance(serverContext({ ...pair, key: "nonsense" }, plain), Failure);
});

test.run();

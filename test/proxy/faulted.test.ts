import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Exchange } from "../../src/proxy/relay.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("proxy/faulted");

test("a fault in one exchange costs that exchange: the lane and its other streams go on (D10)", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const [struck, bystander] = ["/struck", "/bystander"].map((target) =>
    client.ask("GET", target, [bearer("t")]),
  );
  path.settle();
  const [first, second] = path.backend("a").asked;
  const original = Exchange.prototype.legHeaders;
  Exchange.prototype.legHeaders = () => {
    throw new Error("a bug");
  };
  first?.answer(200, "never seen");
  path.settle();
  Exchange.prototype.legHeaders = original;
  second?.answer(200, "fine");
  path.settle();
  assert.is.not(struck?.resetCode ?? struck?.status, undefined);
  assert.not.match(struck?.body ?? "", "never seen");
  assert.is(bystander?.body, "fine");
  assert.equal([path.exchanges.size, client.isGone], [0, false]);
  const faults = path.entries.filter((entry) => entry.kind === "fault.contained");
  assert.equal(faults, [{ kind: "fault.contained", ring: "stream", message: "a bug" }]);
});

test.run();

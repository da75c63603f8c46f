/** The main file of the child process in which the relay in front of an embedded apiserver runs (embedded.ts). */
import type { Failure } from "../../src/base/failure.ts";
import { endWithParent, reportToParent } from "./loopback-server.ts";
import { Relay } from "./relay.ts";

/** An order from the parent process. The first order must contain the ports. */
export type RelayOrder =
  | { readonly port: number; readonly targetPort: number }
  | { readonly isBlocked: boolean };

let relay: Relay | undefined;

function carryOut(order: RelayOrder): Promise<number | Failure> {
  if ("isBlocked" in order) {
    relay?.block(order.isBlocked);
    return Promise.resolve(0);
  }
  relay = new Relay(order.targetPort);
  return relay.start(order.port);
}

process.on("message", (order: RelayOrder) => void reportToParent(carryOut(order)));
endWithParent();

/** What identifies a client across sockets, tokens and restarts, as far as a request contains it. */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { Client } from "./client.ts";

/** The client's address and User-Agent, separated by a space: both stay the same when it reconnects. */
export function clientKey(client: Pick<Client, "address">, fields: readonly Field[]): string {
  return `${client.address} ${userAgentOf(fields)}`;
}

/** The User-Agent, at most `limits.userAgentChars` long; "" if the request has none. */
export function userAgentOf(fields: readonly Field[]): string {
  const field = fields.find(({ name }) => name === "user-agent");
  return clipped(field?.value ?? "", limits.userAgentChars);
}

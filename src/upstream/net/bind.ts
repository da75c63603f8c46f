/** Binds listening sockets: new ones, and those that another process has passed on. */
import net from "node:net";
import { type Address, isBoundAt } from "../../base/address.ts";
import type { PassedHandle } from "./handle-channel.ts";

/**
 * Binds `server` to `address`, or to 0.0.0.0 instead of "::" if the kernel has no IPv6 (`ipv6.disable=1`), as Go does.
 * Returns the error if that fails.
 */
export async function bind(
  server: net.Server,
  { host, port, reusePort = false }: Address & { readonly reusePort?: boolean },
): Promise<Error | undefined> {
  const error = await listen(server, { host, port, reusePort });
  return host === "::" && isWithoutIpv6(error) ? listen(server, { host: "0.0.0.0", port, reusePort }) : error;
}

/**
 * Makes `server` listen on the socket of another process. Returns false if that fails, or if the socket is not bound to
 * `address`; closes the socket then.
 */
export async function adopt(
  server: net.Server,
  socket: { readonly fd: number } | PassedHandle,
  address: Address,
): Promise<boolean> {
  if ((await listen(server, socket)) !== undefined) return false;
  const bound = server.address();
  if (isBoundAt(bound, address)) return true;
  const isIpv4Only = address.host === "::" && isBoundAt(bound, { ...address, host: "0.0.0.0" });
  if (isIpv4Only && (await lacksIpv6())) return true;
  server.close();
  return false;
}

async function lacksIpv6(): Promise<boolean> {
  const server = net.createServer();
  const error = await listen(server, { host: "::", port: 0 });
  server.close();
  return isWithoutIpv6(error);
}

function isWithoutIpv6(error: Error | undefined): boolean {
  return error !== undefined && "code" in error && error.code === "EAFNOSUPPORT";
}

function listen(
  server: net.Server,
  where: net.ListenOptions | { readonly fd: number } | PassedHandle,
): Promise<Error | undefined> {
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen(where, () => {
      server.off("error", resolve);
      resolve(undefined);
    });
  });
}

import net from "node:net";

export type SocketPair = { readonly near: net.Socket; readonly far: net.Socket; readonly close: () => void };

/** Returns the two ends of a TCP connection over loopback. */
export async function openPair(): Promise<SocketPair> {
  const server = net.createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const accepted = new Promise<net.Socket>((resolve) => {
    server.once("connection", resolve);
  });
  const near = net.connect(port, "127.0.0.1");
  const far = await accepted;
  for (const socket of [near, far]) socket.on("error", () => {});
  server.close();
  return {
    near,
    far,
    close() {
      near.destroy();
      far.destroy();
    },
  };
}

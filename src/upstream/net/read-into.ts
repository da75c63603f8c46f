/**
 * Makes all sockets read into one shared buffer. Node offers this only for sockets that are created with its option
 * `onread`, and an accepted socket, or TLS on top of a socket, cannot get the option. So this file sets the two
 * internal fields and makes the internal call as the option would do. In a Node version with other internals, chunks
 * arrive as "data" events, and the proxy is only slower.
 *
 * With the shared buffer, Node creates no ArrayBuffer for each TLS record, and chunks do not pass through a stream.
 * Together this saves a tenth of the cost of a small request. A long response has a record for every 16 KiB, and V8
 * runs a full collection for every 64 MiB of ArrayBuffers.
 */
import net from "node:net";

/**
 * Size of the shared buffer in bytes. It is larger than any TLS record, and a plain socket never reads more at once.
 */
const sharedBytes = 65_536;
const shared = Buffer.allocUnsafeSlow(sharedBytes);

type Reader = { useUserBuffer(buffer: Buffer): void };
/** Takes the bytes that a socket has read. They are valid during the call only. */
type Receiver = { receive(chunk: Buffer): void };
type OnRead = (count: number, buffer: Buffer) => boolean;
type Fields = { readonly buffer: symbol; readonly onRead: symbol };

const placeholder: OnRead = () => true;

/**
 * Finds Node's symbols for the two internal fields, on a sample socket that is created with `onread`; undefined: this
 * version of Node has no such fields.
 */
function fieldsOf(): Fields | undefined {
  const sample = new net.Socket({ onread: { buffer: shared, callback: placeholder } });
  const symbols = Object.getOwnPropertySymbols(sample);
  const valueOf = (symbol: symbol): unknown => Reflect.get(sample, symbol);
  const buffer = symbols.find((symbol) => valueOf(symbol) === shared);
  const callback = symbols.find((symbol) => valueOf(symbol) === placeholder);
  return buffer === undefined || callback === undefined ? undefined : { buffer, onRead: callback };
}

const fields = fieldsOf();

/**
 * Makes the socket pass the bytes that it reads to `receiver`. Returns false if this version of Node does not support
 * it. Bytes that the socket has read before still arrive as "data".
 */
export function readInto(socket: net.Socket, receiver: Receiver): boolean {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (fields === undefined || !isReader(handle)) return false;
  const wrapped: OnRead = (count, buffer) => {
    receiver.receive(buffer.subarray(0, count));
    // Returning false makes Node stop reading. So if Node resumes a paused socket by itself, which it sometimes does,
    // the socket delivers only this one chunk.
    return !socket.isPaused();
  };
  Reflect.set(socket, fields.buffer, shared);
  Reflect.set(socket, fields.onRead, wrapped);
  handle.useUserBuffer(shared);
  return true;
}

function isReader(handle: unknown): handle is Reader {
  return typeof handle === "object" && handle !== null && "useUserBuffer" in handle;
}

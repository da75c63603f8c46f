/** Reads and validates the peer's SETTINGS (RFC 9113 §6.5). */
import { u16, u32 } from "../core/bytes.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";
import { frameBytes } from "../frame/frame.ts";
import { defaultWindow, largestWindow } from "./window.ts";

export const setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

type PeerSettings = {
  hasArrived: boolean;
  headerTableBytes: number;
  maxStreams: number;
  initialWindow: number;
};

/** The settings that apply until the peer's SETTINGS arrive. The number of streams is unlimited (RFC 9113 §6.5.2). */
export function defaultSettings(): PeerSettings {
  return {
    hasArrived: false,
    headerTableBytes: 4096,
    maxStreams: Number.POSITIVE_INFINITY,
    initialWindow: defaultWindow,
  };
}

export function applySettings(into: PeerSettings, bytes: Buffer, start: number, end: number): void {
  for (let at = start; at < end; at += 6) applyOne(into, u16(bytes, at), u32(bytes, at + 2));
  into.hasArrived = true;
}

/**
 * Validates and stores one parameter. MAX_FRAME_SIZE is not stored, because the proxy sends no frame that is longer
 * than the smallest allowed maximum.
 */
function applyOne(into: PeerSettings, id: number, value: number): void {
  const [least, most] = ranges.get(id) ?? [0, 0xffff_ffff];
  if (value < least || value > most) {
    const code = id === setting.INITIAL_WINDOW_SIZE ? errorCode.FLOW_CONTROL_ERROR : errorCode.PROTOCOL_ERROR;
    // The message does not contain the value, because the message becomes the label of a metric (A54).
    throw new ProtocolError(code, "session", `SETTINGS out of range for ${id}`);
  }
  if (id === setting.HEADER_TABLE_SIZE) into.headerTableBytes = value;
  if (id === setting.MAX_CONCURRENT_STREAMS) into.maxStreams = value;
  if (id === setting.INITIAL_WINDOW_SIZE) into.initialWindow = value;
}

/** The valid ranges of the parameters that do not accept every value (RFC 9113 §6.5.2). */
const ranges = new Map<number, readonly [least: number, most: number]>([
  [setting.ENABLE_PUSH, [0, 1]],
  [setting.INITIAL_WINDOW_SIZE, [0, largestWindow]],
  [setting.MAX_FRAME_SIZE, [frameBytes, 0xff_ffff]],
]);

/** The code of a reset that tells a client what its backend did, and cannot be taken for anything better. */
import { errorCode, lost } from "../../h2/core/protocol-error.ts";

/** Node's client takes NO_ERROR and CANCEL for an orderly end (nodejs/node 35209). */
const mistakable = new Set<number>([lost, errorCode.NO_ERROR, errorCode.CANCEL]);

/** `mayHaveRun`: a backend may have begun with the request, so REFUSED_STREAM would be false (D17). */
export function honestCode(code: number, mayHaveRun: boolean): number {
  const isUnseen = code === errorCode.REFUSED_STREAM;
  const isFalse = isUnseen ? mayHaveRun : mistakable.has(code);
  return isFalse ? errorCode.INTERNAL_ERROR : code;
}

/**
 * True if Go's transport sends the request once more after a reset with this code, whatever its method is: x/net http2
 * `canRetryError` takes REFUSED_STREAM, and PROTOCOL_ERROR from a peer (golang/go 47635), for "not processed".
 */
export function isSentAgain(code: number): boolean {
  return code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR;
}

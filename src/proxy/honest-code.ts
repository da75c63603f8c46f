/** The code of a reset that tells a client what its backend did, and cannot be taken for anything better. */
import { errorCode, lost } from "../h2/protocol-error.ts";

/** Node's client takes NO_ERROR and CANCEL for an orderly end (nodejs/node 35209). */
const mistakable = new Set<number>([lost, errorCode.NO_ERROR, errorCode.CANCEL]);

/** `isAnswered`: a head has gone, after which REFUSED_STREAM would say that nothing was processed. */
export function honestCode(code: number, isAnswered: boolean): number {
  const isUnseen = code === errorCode.REFUSED_STREAM;
  const isFalse = isUnseen ? isAnswered : mistakable.has(code);
  return isFalse ? errorCode.INTERNAL_ERROR : code;
}

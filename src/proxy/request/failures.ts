/** Failures of requests for which no backend's response can be relayed. */
import { Failure } from "../../base/failure.ts";

export const noneAnswers = new Failure("no-backend", "proxy", "No backend answers");

export const tooManyUnproven = new Failure(
  "overload",
  "proxy",
  "Too many requests are under way with credentials that no backend has accepted yet",
);

export const refusedBy = (backend: string): Failure =>
  new Failure("backend-refused", "backend", `Backend ${backend} refused the request`);

/**
 * Observers that are notified when a request begins at a backend, is answered, and ends. The request path does not
 * depend on what the observers measure.
 */
import type { Field } from "../../h2/core/field.ts";
import type { RequestInfo } from "../../kube/request-info.ts";

/** The methods run for every request, so they must be cheap and must not throw. */
export type RequestObserver = {
  /**
   * Called when the request is assigned to a backend, or when its watch moves to the backend. The request may still
   * wait for a connection.
   */
  began(backend: string, info: RequestInfo): void;
  /**
   * Called with each final head that a backend sends, even if the client gets another backend's response. `ms`: time
   * since the request was sent. The first field of `head` is `:status`.
   */
  answered(backend: string, info: RequestInfo, ms: number, head: readonly Field[]): void;
  /** Called once for each `began`, when the request has ended or is assigned to another backend. */
  ended(backend: string, info: RequestInfo): void;
};

/** Notifies the taps, which observe some moments. The list of a moment is empty if nothing observes it. */
export class RequestObservers implements RequestObserver {
  readonly #began: readonly RequestObserver["began"][];
  readonly #answered: readonly RequestObserver["answered"][];
  readonly #ended: readonly RequestObserver["ended"][];

  constructor(taps: readonly Partial<RequestObserver>[]) {
    this.#began = taps.flatMap((tap) => tap.began?.bind(tap) ?? []);
    this.#answered = taps.flatMap((tap) => tap.answered?.bind(tap) ?? []);
    this.#ended = taps.flatMap((tap) => tap.ended?.bind(tap) ?? []);
  }

  began(backend: string, info: RequestInfo): void {
    for (const tell of this.#began) tell(backend, info);
  }

  answered(backend: string, info: RequestInfo, ms: number, head: readonly Field[]): void {
    for (const tell of this.#answered) tell(backend, info, ms, head);
  }

  ended(backend: string, info: RequestInfo): void {
    for (const tell of this.#ended) tell(backend, info);
  }
}

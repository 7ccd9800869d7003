import type { ProbeListener, ServerCall } from './probe-listener.ts'

/** Lines that are kept. */
const LINES_MAX = 200

/**
 * The lines of one connection, kept where they are asked for, and handed to the listener as they
 * come.
 */
export class Dialogue implements ProbeListener {
  readonly #lines: string[] | null
  readonly #listener: ProbeListener | null

  constructor(isKept: boolean, listener: ProbeListener | null) {
    this.#lines = isKept ? [] : null
    this.#listener = listener
  }

  /** Null where nobody wants to know. */
  get asListener(): ProbeListener | null {
    return this.#lines === null && this.#listener === null ? null : this
  }

  /** A copy of the lines so far; null where they are not kept. */
  get lines(): readonly string[] | null {
    return this.#lines && [...this.#lines]
  }

  /** Keeps a remark of ours, which was not said to the server. */
  note(text: string): void {
    this.#keep(`* ${text}`)
  }

  onCall(call: ServerCall): void {
    if (call.answer === null) this.note(`connected to ${call.host} [${call.ip}]`)
    this.#listener?.onCall(call)
  }

  onLine(line: string): void {
    this.#keep(line)
    this.#listener?.onLine(line)
  }

  #keep(line: string) {
    if (this.#lines !== null && this.#lines.length < LINES_MAX) this.#lines.push(line)
  }
}

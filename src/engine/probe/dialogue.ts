import { connectionNote, type ProbeListener, type ServerCall } from './probe-listener.ts'

/** The most lines recorded per connection. */
const LINES_MAX = 200

/** Records the lines of one connection if requested, and passes them to the listener. */
export class Dialogue implements ProbeListener {
  readonly #lines: string[] | null
  readonly #listener: ProbeListener | null

  constructor(isRecorded: boolean, listener: ProbeListener | null) {
    this.#lines = isRecorded ? [] : null
    this.#listener = listener
  }

  /** Null if the dialogue is neither recorded nor listened to. */
  get asListener(): ProbeListener | null {
    return this.#lines === null && this.#listener === null ? null : this
  }

  /** A copy of the lines so far; null if they are not recorded. */
  get lines(): readonly string[] | null {
    return this.#lines && [...this.#lines]
  }

  /** Records a note that was not sent to the server. */
  note(text: string): void {
    this.#record(`* ${text}`)
  }

  onCall(call: ServerCall): void {
    if (call.answer === null) this.#record(connectionNote(call))
    this.#listener?.onCall(call)
  }

  onLine(line: string): void {
    this.#record(line)
    this.#listener?.onLine(line)
  }

  #record(line: string) {
    if (this.#lines !== null && this.#lines.length < LINES_MAX) this.#lines.push(line)
  }
}

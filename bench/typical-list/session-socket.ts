import { Duplex } from 'node:stream'
import type { Clock } from '../../src/platform/clock.ts'
import type { Session } from './company.ts'

/** The client's end of a connection to a simulated server, with a round trip before each reply. */
export class SessionSocket extends Duplex {
  readonly #session: Session
  readonly #clock: Clock
  readonly #roundTripMs: number
  #unread = ''

  constructor(session: Session, clock: Clock, roundTripMs: number) {
    super()
    this.#session = session
    this.#clock = clock
    this.#roundTripMs = roundTripMs
    this.#send(session.greet())
  }

  override _read(): void {
    // Replies are pushed when they arrive.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    const lines = (this.#unread + chunk.toString('latin1')).split('\r\n')
    this.#unread = lines.pop() ?? ''
    const replies: string[] = []
    for (const line of lines) if (!this.#session.isOver) replies.push(this.#session.reply(line))
    if (replies.length > 0) this.#send(replies.join('\r\n'))
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#session.close()
    done(error)
  }

  override _final(done: () => void): void {
    this.#session.close()
    done()
  }

  #send(replies: string): void {
    const { isOver } = this.#session
    this.#clock.after(this.#roundTripMs, () => {
      if (this.destroyed) return
      this.push(`${replies.replace(/\r?\n/g, '\r\n')}\r\n`)
      if (!isOver) return
      this.#session.close()
      this.push(null)
    })
  }
}

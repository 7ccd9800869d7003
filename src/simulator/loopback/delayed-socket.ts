import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** Bytes under way at most: a client that reads nothing must stop an endless writer. */
const WINDOW_BYTES = 1 << 20

/**
 * A socket whose other end is far away: bytes take half a round trip in each direction and keep
 * their order. One timer for each chunk.
 */
export class DelayedSocket extends Duplex {
  readonly #near: Socket
  readonly #oneWayMs: number
  #underWay = 0
  #resume: (() => void) | undefined
  readonly remoteAddress: string | undefined
  readonly remotePort: number | undefined
  readonly localAddress: string | undefined
  readonly localPort: number | undefined

  constructor(near: Socket, roundTripMs: number) {
    super({ allowHalfOpen: true })
    this.#near = near
    this.#oneWayMs = roundTripMs / 2
    this.remoteAddress = near.remoteAddress
    this.remotePort = near.remotePort
    this.localAddress = near.localAddress
    this.localPort = near.localPort
    near.on('data', chunk => this.#later(() => this.push(chunk)))
    near.on('end', () => this.#later(() => this.push(null)))
    near.on('error', error => this.destroy(error))
    near.on('close', () => this.#later(() => this.destroy()))
  }

  resetAndDestroy(): void {
    this.#near.resetAndDestroy()
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#underWay += chunk.length
    this.#later(() => {
      this.#near.write(chunk, () => this.#arrived(chunk.length))
    })
    if (this.#underWay < WINDOW_BYTES) done()
    else this.#resume = done
  }

  override _final(done: () => void): void {
    this.#later(() => {
      this.#near.end()
      done()
    })
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // What was written before still arrives before.
    this.#later(() => this.#near.destroy())
    done(error)
  }

  #arrived(length: number): void {
    this.#underWay -= length
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  #later(step: () => void): void {
    // Timers of equal length fire in the order in which they were set.
    setTimeout(step, this.#oneWayMs)
  }
}

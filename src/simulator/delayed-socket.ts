import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** Maximum bytes in flight: a client that does not read must stop an endless writer. */
const WINDOW_BYTES = 1 << 20

/**
 * A socket with simulated latency: each chunk is delayed by half a round trip in each direction, in
 * order, with one timer per chunk.
 */
export class DelayedSocket extends Duplex {
  readonly #socket: Socket
  readonly #oneWayMs: number
  #bytesInFlight = 0
  #resume: (() => void) | undefined
  readonly remoteAddress: string | undefined
  readonly remotePort: number | undefined
  readonly localAddress: string | undefined
  readonly localPort: number | undefined

  constructor(socket: Socket, roundTripMs: number) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.#oneWayMs = roundTripMs / 2
    this.remoteAddress = socket.remoteAddress
    this.remotePort = socket.remotePort
    this.localAddress = socket.localAddress
    this.localPort = socket.localPort
    socket.on('data', chunk => this.#delay(() => this.push(chunk)))
    socket.on('end', () => this.#delay(() => this.push(null)))
    socket.on('error', error => this.destroy(error))
    socket.on('close', () => this.#delay(() => this.destroy()))
  }

  resetAndDestroy(): void {
    this.#socket.resetAndDestroy()
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#bytesInFlight += chunk.length
    this.#delay(() => {
      this.#socket.write(chunk, () => this.#onDelivered(chunk.length))
    })
    if (this.#bytesInFlight < WINDOW_BYTES) done()
    else this.#resume = done
  }

  override _final(done: () => void): void {
    this.#delay(() => {
      this.#socket.end()
      done()
    })
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Delayed too, so that pending writes are delivered first.
    this.#delay(() => this.#socket.destroy())
    done(error)
  }

  #onDelivered(length: number): void {
    this.#bytesInFlight -= length
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  #delay(step: () => void): void {
    // Timers with equal delays fire in the order they were created.
    setTimeout(step, this.#oneWayMs)
  }
}

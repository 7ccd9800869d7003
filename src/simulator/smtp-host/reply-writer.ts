import type { Duplex } from 'node:stream'

/** What a server says: gathered, then sent at once, or byte by byte where it drips. */
export class ReplyWriter {
  readonly #socket: Duplex
  readonly #dripMs: number | undefined
  #suppressed = ''
  #drops: Buffer = Buffer.alloc(0)
  #dripping: NodeJS.Timeout | undefined
  #last = false

  constructor(socket: Duplex, dripMs: number | undefined) {
    this.#socket = socket
    this.#dripMs = dripMs
  }

  /** A whole reply, `\n` between its lines; sent by the next `flush`. */
  say(reply: string): void {
    this.#suppressed += reply.includes('\n')
      ? `${reply.replaceAll('\n', '\r\n')}\r\n`
      : `${reply}\r\n`
  }

  /** Sends what was said. */
  flush(): void {
    if (this.#suppressed === '') return
    const text = this.#suppressed
    this.#suppressed = ''
    if (this.#dripMs === undefined) this.#write(text)
    else this.#drip(Buffer.from(text), this.#dripMs)
  }

  /** Sends bytes as they are, behind what was said. */
  bytes(bytes: Uint8Array): void {
    this.flush()
    this.#write(bytes)
  }

  /** Says a line again and again, as fast as the client reads. */
  replyForever(line: string): void {
    this.flush()
    const text = `${line}\r\n`.repeat(100)
    const more = () => {
      while (this.#write(text));
      if (!this.#socket.destroyed) this.#socket.once('drain', more)
    }
    more()
  }

  /** Ends the connection behind the last word. */
  close(): void {
    this.flush()
    this.#last = true
    if (this.#dripping === undefined) this.#socket.end()
  }

  /** Falls silent in the middle of a word. */
  hush(): void {
    clearTimeout(this.#dripping)
  }

  #write(text: string | Uint8Array): boolean {
    return !this.#socket.writableEnded && !this.#socket.destroyed && this.#socket.write(text)
  }

  #drip(bytes: Buffer, everyMs: number): void {
    this.#drops = Buffer.concat([this.#drops, bytes])
    const next = () => {
      this.#write(this.#drops.subarray(0, 1))
      this.#drops = this.#drops.subarray(1)
      this.#dripping = this.#drops.length > 0 ? setTimeout(next, everyMs) : undefined
      if (this.#dripping === undefined && this.#last) this.#socket.end()
    }
    this.#dripping ??= setTimeout(next, everyMs)
  }
}

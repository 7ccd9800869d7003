import type { Duplex } from 'node:stream'

/**
 * Removes each `100 Continue` from what is read of a socket, which must carry one request at a time,
 * written at once. A client has to accept interim responses that it did not ask for (RFC 9110
 * §15.2). undici accepts all of them but 100, at which it closes the connection.
 */
export function skipContinue(socket: Duplex, headBytesMax: number): void {
  const filter = new ContinueFilter(headBytesMax)
  const read = socket.read.bind(socket)
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.read = (size?: number) => {
    const chunk: Buffer | null = read(size)
    return chunk === null ? null : filter.push(chunk)
  }
  socket.write = (...args: unknown[]) => {
    filter.startResponse()
    return write(...args)
  }
}

/** Passes the bytes of responses on, in chunks of any size, without those of `100 Continue`. */
export class ContinueFilter {
  readonly #headBytesMax: number
  /** The start of a head that is not complete. */
  #held: Buffer = EMPTY
  #isFinal = false

  /** A longer head is passed on, so that the parser reports it. */
  constructor(headBytesMax: number) {
    this.#headBytesMax = headBytesMax
  }

  /** The next bytes are the start of a response. */
  startResponse(): void {
    this.#isFinal = false
  }

  /** Returns the bytes to pass on; null if there are none yet. */
  push(chunk: Buffer): Buffer | null {
    if (this.#isFinal) return chunk
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = EMPTY
    const passed: Buffer[] = []
    while (rest.length > 0) {
      const head = readInterimHead(rest)
      if (head === 'final' || (head === 'incomplete' && rest.length > this.#headBytesMax)) {
        this.#isFinal = true
        passed.push(rest)
        break
      }
      if (head === 'incomplete') {
        this.#held = rest
        break
      }
      if (head.status !== CONTINUE) passed.push(rest.subarray(0, head.length))
      rest = rest.subarray(head.length)
    }
    return passed.length === 0 ? null : Buffer.concat(passed)
  }
}

/**
 * Reads the head of an interim response, which has no body. A final response, and what is not HTTP,
 * is `final`.
 */
function readInterimHead(
  bytes: Buffer,
): { readonly status: string; readonly length: number } | 'incomplete' | 'final' {
  // Parsers skip blank lines before a response.
  let start = 0
  while (bytes[start] === CR || bytes[start] === LF) start++
  const statusLine = bytes.toString('latin1', start, start + STATUS_END)
  if (!statusLine.startsWith(INTERIM)) {
    return INTERIM.startsWith(statusLine) ? 'incomplete' : 'final'
  }
  const end = bytes.indexOf(HEAD_END, start)
  if (end < 0) return 'incomplete'
  return { status: statusLine.slice(-CONTINUE.length), length: end + HEAD_END.length }
}

const EMPTY = Buffer.alloc(0)
const [CR, LF] = [0x0d, 0x0a]
const CONTINUE = '100'
/** HTTP/1.0 has no interim responses. */
const INTERIM = 'HTTP/1.1 1'
const STATUS_END = 'HTTP/1.1 100'.length
const HEAD_END = '\r\n\r\n'

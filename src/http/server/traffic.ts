import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { isHttp2, type NodeRequest, type NodeResponse } from './node.ts'

/** What requests arrive by: a socket of HTTP/1.1, a session of HTTP/2. */
export type Line = Socket | ServerHttp2Session

/** The lines that are open, and the requests in them that are not answered whole. */
export class Traffic {
  readonly #open = new Map<Line, { requests: number; readonly unanswered: Set<NodeResponse> }>()
  readonly #onEmpty: (() => void)[] = []
  #isEnding = false

  /** Takes notice of a line until it is closed. */
  note(line: Line): void {
    this.#open.set(line, { requests: 0, unanswered: new Set() })
    line.once('close', () => {
      this.#open.delete(line)
      if (this.#open.size === 0) for (const tell of this.#onEmpty.splice(0)) tell()
    })
  }

  /** Takes notice of a request until it is answered: gives how many there were in its line, itself included. */
  begin(request: NodeRequest, response: NodeResponse): number {
    const line = lineOf(request)
    const known = line && this.#open.get(line)
    if (line === undefined || known === undefined) return 1
    known.unanswered.add(response)
    response.once('close', () => {
      known.unanswered.delete(response)
      if (this.#isEnding && known.unanswered.size === 0) endLine(line)
    })
    if (this.#isEnding) keepNoLonger(response)
    return ++known.requests
  }

  /** What is not answered whole in a line, in the order in which it was asked. */
  unanswered(line: Line): readonly NodeResponse[] {
    return [...(this.#open.get(line)?.unanswered ?? [])]
  }

  /** Every line ends with the last answer that it waits for; clients are told so. */
  endSoon(): void {
    this.#isEnding = true
    for (const { unanswered } of this.#open.values()) unanswered.forEach(keepNoLonger)
  }

  /** Closes the lines that wait for no answer: somebody opened them and has not asked yet. */
  closeUnused(): void {
    for (const [line, { unanswered }] of this.#open) if (unanswered.size === 0) line.destroy()
  }

  closeAll(): void {
    for (const line of this.#open.keys()) line.destroy()
  }

  /** Resolves when no line is open. */
  empty(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise(resolve => void this.#onEmpty.push(resolve))
  }
}

const lineOf = (request: NodeRequest): Line | undefined =>
  isHttp2(request) ? (request.stream.session as ServerHttp2Session | undefined) : request.socket

/** HTTP/2 says it by GOAWAY. */
const endLine = (line: Line) => ('goaway' in line ? line.close() : line.destroySoon())

/** HTTP/1.1: the answer says `Connection: close`, and Node closes after it. */
export function keepNoLonger(response: NodeResponse): void {
  if (!('stream' in response)) response.shouldKeepAlive = false
}

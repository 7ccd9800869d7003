import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Connection = {
  requests: number
  readonly unanswered: Set<ServerResponse>
  /** More were open than may be: its request is refused. */
  readonly isSurplus: boolean
}

/** The connections that are open, and the requests in them that are not answered whole. */
export class ConnectionTracker {
  readonly #open = new Map<Socket, Connection>()
  readonly #onEmpty: (() => void)[] = []
  readonly #connectionsMax: number
  #isEnding = false

  constructor(connectionsMax: number) {
    this.#connectionsMax = connectionsMax
  }

  /** Takes notice of a connection until it is closed. */
  track(socket: Socket): void {
    const isSurplus = this.#open.size >= this.#connectionsMax
    this.#open.set(socket, { requests: 0, unanswered: new Set(), isSurplus })
    socket.once('close', () => {
      this.#open.delete(socket)
      if (this.#open.size === 0) for (const notify of this.#onEmpty.splice(0)) notify()
    })
  }

  isSurplus(socket: Socket): boolean {
    return this.#open.get(socket)?.isSurplus === true
  }

  /** Takes notice of a request until it is answered: gives how many there were in its connection, itself included. */
  begin(request: IncomingMessage, response: ServerResponse): number {
    const { socket } = request
    const known = this.#open.get(socket)
    if (known === undefined) return 1
    known.unanswered.add(response)
    response.once('close', () => {
      known.unanswered.delete(response)
      if (this.#isEnding && known.unanswered.size === 0) socket.destroySoon()
    })
    if (this.#isEnding) keepNoLonger(response)
    return ++known.requests
  }

  /** What is not answered whole in a connection, in the order in which it was asked. */
  unanswered(socket: Socket): readonly ServerResponse[] {
    return [...(this.#open.get(socket)?.unanswered ?? [])]
  }

  /** Every connection ends with the last answer that it waits for; clients are told so. */
  endSoon(): void {
    this.#isEnding = true
    for (const { unanswered } of this.#open.values()) unanswered.forEach(keepNoLonger)
  }

  /** Closes the connections that wait for no answer: somebody opened them and has not asked yet. */
  closeUnused(): void {
    for (const [socket, { unanswered }] of this.#open) if (unanswered.size === 0) socket.destroy()
  }

  closeAll(): void {
    for (const socket of this.#open.keys()) socket.destroy()
  }

  /** Resolves when no connection is open. */
  empty(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise(resolve => void this.#onEmpty.push(resolve))
  }
}

/** The answer says `Connection: close`, and Node closes after it. */
export function keepNoLonger(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

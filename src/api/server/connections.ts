import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Connection = {
  requests: number
  /** In their order; more than one if the client pipelines. */
  readonly unanswered: ServerResponse[]
  /** Opened above the limit of connections: its request is refused. */
  readonly isSurplus: boolean
  /** It closes after a response that is in flight or sent: further requests in it are ignored. */
  isClosing: boolean
}

/** Tracks open connections and the requests in them that are not fully answered. */
export class ConnectionTracker {
  readonly #open = new Map<Socket, Connection>()
  readonly #onEmpty: (() => void)[] = []
  readonly #connectionsMax: number
  #isEnding = false

  constructor(connectionsMax: number) {
    this.#connectionsMax = connectionsMax
  }

  /** Tracks a connection until it is closed. */
  track(socket: Socket): void {
    const isSurplus = this.#open.size >= this.#connectionsMax
    this.#open.set(socket, { requests: 0, unanswered: [], isSurplus, isClosing: false })
    socket.once('close', () => {
      this.#open.delete(socket)
      if (this.#open.size === 0) for (const notify of this.#onEmpty.splice(0)) notify()
    })
  }

  isSurplus(socket: Socket): boolean {
    return this.#open.get(socket)?.isSurplus === true
  }

  markClosing(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection !== undefined) connection.isClosing = true
  }

  isClosing(socket: Socket): boolean {
    return this.#open.get(socket)?.isClosing === true
  }

  /**
   * Tracks a request until it is answered. Returns the number of requests in its connection,
   * including this one.
   */
  trackRequest(request: IncomingMessage, response: ServerResponse): number {
    const { socket } = request
    const connection = this.#open.get(socket)
    if (connection === undefined) return 1
    connection.unanswered.push(response)
    response.once('close', () => {
      connection.unanswered.splice(connection.unanswered.indexOf(response), 1)
      if (this.#isEnding && connection.unanswered.length === 0) socket.destroySoon()
    })
    if (this.#isEnding) closeAfterResponse(response)
    return ++connection.requests
  }

  /** Requests of a connection that are not fully answered, in their order. */
  unanswered(socket: Socket): readonly ServerResponse[] {
    return [...(this.#open.get(socket)?.unanswered ?? [])]
  }

  /** Closes each connection after its pending responses, which announce it to the client. */
  endSoon(): void {
    this.#isEnding = true
    for (const { unanswered } of this.#open.values()) unanswered.forEach(closeAfterResponse)
  }

  /** Closes the connections without a pending request. */
  closeUnused(): void {
    for (const [socket, { unanswered }] of this.#open) if (unanswered.length === 0) socket.destroy()
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

/** Sends `Connection: close` with the response; Node closes the connection after it. */
export function closeAfterResponse(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

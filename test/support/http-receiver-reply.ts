import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, SECOND, sleep } from '../../src/platform/clock.ts'
import type { ScriptedReply } from './http-receiver.ts'

type Connection = {
  readonly clock: Clock
  /** The TCP connection below TLS. */
  readonly socket: Socket
}

/** Sends the scripted response. Returns the number of bytes of a flood. */
export async function sendReply(
  reply: ScriptedReply,
  response: ServerResponse,
  connection: Connection,
): Promise<number> {
  if (reply.delayMs !== undefined) await pause(reply.delayMs, connection)
  if (reply.pour !== undefined) return pour(reply.raw ?? '', reply.pour, response)
  if (reply.raw !== undefined) {
    response.socket?.end(reply.raw)
    return 0
  }
  if (reply.isContinued) response.writeContinue()
  for (let nth = 0; nth < (reply.hints ?? 0); nth++) {
    response.writeEarlyHints({ link: `</style-${nth}.css>; rel=preload` })
  }
  response.writeHead(reply.status ?? 200, { ...reply.headers })
  const body = reply.body ?? ''
  if (reply.end === undefined) {
    response.end(body)
    return 0
  }
  response.flushHeaders()
  if (body.length > 0) response.write(body)
  return endings[reply.end](response, connection)
}

type Ending = (response: ServerResponse, connection: Connection) => Promise<number>

const endings: Record<NonNullable<ScriptedReply['end']>, Ending> = {
  async reset(_, { socket }) {
    // The data written before must be sent first.
    await new Promise(resolve => setImmediate(resolve))
    socket.resetAndDestroy()
    return 0
  },
  async trickle(response, connection) {
    while (!connection.socket.destroyed) {
      response.write('.')
      await pause(SECOND, connection)
    }
    return 0
  },
  async flood(response, { socket }) {
    const chunk = Buffer.alloc(64 * 1_024, 'x')
    const closed = waitForEvent(socket, 'close')
    let sent = 0
    while (!socket.destroyed && sent < FLOOD_BYTES) {
      sent += chunk.length
      if (!response.write(chunk)) await Promise.race([waitForEvent(response, 'drain'), closed])
    }
    response.end()
    return sent
  },
}

const FLOOD_BYTES = 1_024 ** 3

async function pour(first: string, then: string, response: ServerResponse): Promise<number> {
  const { socket } = response
  if (socket === null) return 0
  const closed = waitForEvent(socket, 'close')
  const chunk = Buffer.from(then.repeat(Math.ceil(65_536 / then.length)))
  socket.write(first)
  let sent = 0
  while (!socket.destroyed && sent < FLOOD_BYTES) {
    sent += chunk.length
    if (!socket.write(chunk)) await Promise.race([waitForEvent(socket, 'drain'), closed])
  }
  socket.destroy()
  return sent
}

/**
 * Resolves at an event. Unlike `once` of node:events it ignores `error`, as a reset ends in `close`
 * too.
 */
const waitForEvent = (emitter: EventEmitter, event: string) =>
  new Promise<void>(resolve => void emitter.once(event, () => resolve()))

/** Ends early when the connection is closed. */
async function pause(delayMs: number, { clock, socket }: Connection): Promise<void> {
  const closed = new AbortController()
  const close = () => closed.abort()
  if (socket.destroyed) return
  socket.once('close', close)
  await sleep(clock, delayMs, closed.signal)
  socket.removeListener('close', close)
}

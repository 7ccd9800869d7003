import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, SECOND, sleep } from '../../src/platform/clock.ts'
import type { Told } from './http-receiver.ts'

type Line = {
  readonly clock: Clock
  /** The connection below TLS. */
  readonly socket: Socket
}

/** Answers as told. Gives how many bytes of a flood went out. */
export async function answerAs(told: Told, response: ServerResponse, line: Line): Promise<number> {
  if (told.delayMs !== undefined) await pause(told.delayMs, line)
  if (told.pour !== undefined) return pour(told.raw ?? '', told.pour, response)
  if (told.raw !== undefined) {
    response.socket?.end(told.raw)
    return 0
  }
  for (let nth = 0; nth < (told.hints ?? 0); nth++) {
    response.writeEarlyHints({ link: `</style-${nth}.css>; rel=preload` })
  }
  response.writeHead(told.status ?? 200, { ...told.headers })
  const body = told.body ?? ''
  if (told.end === undefined) {
    response.end(body)
    return 0
  }
  response.flushHeaders()
  if (body.length > 0) response.write(body)
  return endingsOf[told.end](response, line)
}

type Ending = (response: ServerResponse, line: Line) => Promise<number>

const endingsOf: Record<NonNullable<Told['end']>, Ending> = {
  async reset(_, { socket }) {
    // What was written must have left before.
    await new Promise(resolve => setImmediate(resolve))
    socket.resetAndDestroy()
    return 0
  },
  async trickle(response, line) {
    while (!line.socket.destroyed) {
      response.write('.')
      await pause(SECOND, line)
    }
    return 0
  },
  async flood(response, { socket }) {
    const chunk = Buffer.alloc(64 * 1_024, 'x')
    const closed = heard(socket, 'close')
    let sent = 0
    while (!socket.destroyed && sent < FLOOD_BYTES) {
      sent += chunk.length
      if (!response.write(chunk)) await Promise.race([heard(response, 'drain'), closed])
    }
    response.end()
    return sent
  },
}

const FLOOD_BYTES = 1_024 ** 3

async function pour(first: string, then: string, response: ServerResponse): Promise<number> {
  const { socket } = response
  if (socket === null) return 0
  const closed = heard(socket, 'close')
  const chunk = Buffer.from(then.repeat(Math.ceil(65_536 / then.length)))
  socket.write(first)
  let sent = 0
  while (!socket.destroyed && sent < FLOOD_BYTES) {
    sent += chunk.length
    if (!socket.write(chunk)) await Promise.race([heard(socket, 'drain'), closed])
  }
  socket.destroy()
  return sent
}

/** Resolves at an event. Unlike `once` of node:events it ignores `error`: a reset ends in `close` as well. */
const heard = (emitter: EventEmitter, event: string) =>
  new Promise<void>(resolve => void emitter.once(event, () => resolve()))

/** Less, when the connection is closed. */
async function pause(delayMs: number, { clock, socket }: Line): Promise<void> {
  const closed = new AbortController()
  const close = () => closed.abort()
  if (socket.destroyed) return
  socket.once('close', close)
  await sleep(clock, delayMs, closed.signal)
  socket.removeListener('close', close)
}

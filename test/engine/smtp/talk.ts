import { type Duplex, duplexPair } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import {
  type ConnectionFailure,
  type ConnectionOptions,
  isFailure,
} from '../../../src/engine/smtp/connection.ts'
import type { Reply } from '../../../src/engine/smtp/reply.ts'
import { Session } from '../../../src/engine/smtp/session.ts'
import { type FakeClock, fakeClock } from '../../support/clock.ts'

export const TIMES = { greetingTimeoutMs: 30_000, replyTimeoutMs: 20_000, sessionTimeoutMs: 60_000 }

/** A session and the raw peer of its connection; `writes` has one text per write. */
export function talk(options: Partial<ConnectionOptions> = {}) {
  const [socket, server] = duplexPair()
  const clock: FakeClock = fakeClock()
  const writes: string[] = []
  const wire = { ended: false }
  server.on('data', (bytes: Buffer) => writes.push(bytes.toString('latin1')))
  server.on('end', () => {
    wire.ended = true
  })
  server.on('error', () => {})
  const session = new Session(socket, { clock, ...TIMES, ...options })
  const say = async (...lines: string[]) => {
    server.write(lines.map(line => `${line}\r\n`).join(''))
    await turns()
  }
  return { session, socket, server, clock, writes, wire, say }
}

/** A session after greeting and EHLO; the server offers `keywords`. */
export async function greeted(
  keywords: readonly string[] = [],
  options?: Partial<ConnectionOptions>,
) {
  const all = talk(options)
  const greeting = all.session.greeting()
  await all.say('220 mx.test ESMTP')
  await greeting
  const ehlo = all.session.ehlo('probe.test')
  await turns()
  await all.say(...replyOf('mx.test', ...keywords))
  await ehlo
  all.writes.length = 0
  return all
}

export const replyOf = (...texts: string[]) =>
  texts.map((text, i) => `250${i === texts.length - 1 ? ' ' : '-'}${text}`)

export const codeOf = (outcome: Reply | ConnectionFailure) =>
  isFailure(outcome) ? outcome.broken : outcome.code

/** A TLS upgrade without effect. */
export const sameSocket = async (socket: Duplex) => socket

/** Runs everything that needs no time: bytes, events, promises. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await setImmediate()
}

/** A RST, as the client sees it. */
export const breakOff = (socket: Duplex) =>
  socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))

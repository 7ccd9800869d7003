import type { HandshakeResult, Outcome } from '../../../src/doctor/network/smtp-handshake.ts'
import type { Reply } from '../../../src/engine/smtp/reply.ts'

/** A handshake result with defaults. */
export const visited = (
  host: string,
  outcome: Outcome,
  more: Partial<HandshakeResult> = {},
): HandshakeResult => ({
  host,
  ip: '192.0.2.25',
  outcome,
  localAddress: null,
  ...more,
})

export const reply = (code: number, text: string, enhanced: string | null = null): Reply => ({
  code,
  enhanced,
  text,
})

/** The outcome of a server with this EHLO reply and greeting. */
export const greeted = (ehlo = 'mx.test', greeting = 'mx.test ESMTP', at = 0): Outcome => ({
  kind: 'greeted',
  greeting: reply(220, greeting),
  ehlo: reply(250, ehlo),
  at,
})

export const refused = (text: string): Outcome => ({ kind: 'refused', reply: reply(554, text) })

export const unreached = (code: string, detail = `connect ${code}`): Outcome => ({
  kind: 'unreached',
  code,
  detail,
})

import { type Duplex, duplexPair } from 'node:stream'
import type { Dial } from '../../../src/engine/smtp/dial.ts'
import { recipientOf } from '../../support/recipients.ts'

/**
 * One lost or doubled reply of a connection, or one that comes before the reply to the previous
 * command of the same write; the greeting is number 0.
 */
export type ReplyFault = { readonly kind: 'lost' | 'doubled' | 'swapped'; readonly at: number }

/**
 * How replies are sent. `whole`: all replies to one write in one write. `bytes`: byte by byte. `late`:
 * never more replies than commands; a surplus one leaves with the replies to the next write.
 */
export type Delivery = 'whole' | 'bytes' | 'late'

export type FaultyServerOptions = {
  readonly exists: (recipient: string) => boolean
  readonly delivery: Delivery
  /** The fault of each connection; null means none. */
  readonly faultOf: (connection: number, isPipelined: boolean) => ReplyFault | null
  readonly keywords?: readonly string[]
  /** Whether a refusal has the address of the recipient. */
  readonly namesRecipients?: boolean
}

/**
 * Servers with known mailboxes and lost or doubled replies; `connections` has the input of each, write
 * by write.
 */
export function faultyServers(options: FaultyServerOptions) {
  const connections: string[][] = []
  const dial: Dial = {
    async connect() {
      const [socket, server] = duplexPair()
      const writes: string[] = []
      serve(server, writes, connections.length, options)
      connections.push(writes)
      return socket
    },
    secure: async socket => socket,
  }
  return { dial, connections }
}

function serve(server: Duplex, writes: string[], number: number, options: FaultyServerOptions) {
  const { exists, delivery, faultOf, keywords = ['PIPELINING'], namesRecipients = false } = options
  let count = 0
  let commands = 1
  let told = 0
  let isPipelined = false
  let held: string[] = []
  const add = (reply: string) => {
    const fault = faultOf(number, isPipelined)
    const isHit = fault?.at === count++
    if (isHit && fault?.kind === 'swapped') held.splice(-1, 0, reply)
    else if (!(isHit && fault?.kind === 'lost')) held.push(reply)
    if (isHit && fault?.kind === 'doubled') held.push(reply)
  }
  const flush = () => {
    const now = delivery === 'late' ? held.splice(0, Math.max(0, commands - told)) : held
    if (delivery !== 'late') held = []
    told += now.length
    const text = now.map(reply => `${reply}\r\n`).join('')
    for (const part of delivery === 'bytes' ? text : [text]) if (part !== '') server.write(part)
  }
  const replyTo = (line: string): string => {
    if (line.startsWith('EHLO'))
      return ['250-mx.test', ...keywords.map(word => `250 ${word}`)].join('\r\n')
    if (line === 'QUIT') return '221 2.0.0 Bye'
    if (!line.startsWith('RCPT')) return '250 2.0.0 Ok'
    const recipient = recipientOf(line)
    if (exists(recipient)) return '250 2.1.5 Ok'
    return namesRecipients ? `550 5.1.1 <${recipient}>: No such user` : '550 5.1.1 No such user'
  }
  add('220 mx.test ESMTP')
  flush()
  let rest = ''
  server.setEncoding('latin1')
  server.on('data', (text: string) => {
    writes.push(text)
    const whole = (rest + text).split('\r\n')
    rest = whole.pop() ?? ''
    isPipelined ||= whole.length > 1
    // The earlier surplus reply leaves now, and all later replies are shifted.
    if (delivery === 'late') told = Math.min(told, commands)
    commands += whole.length
    for (const line of whole) add(replyTo(line))
    flush()
    if (!whole.includes('QUIT')) return
    commands = Number.POSITIVE_INFINITY
    flush()
    server.end()
  })
  server.on('end', () => server.end())
  server.on('error', () => {})
}

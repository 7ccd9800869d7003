import type { Duplex } from 'node:stream'
import { withDeadline } from '../../engine/deadline.ts'
import type { DnsFault } from '../../engine/dns/resolver.ts'
import { isFailure } from '../../engine/smtp/connection.ts'
import type { Dial } from '../../engine/smtp/dial.ts'
import type { Reply } from '../../engine/smtp/reply.ts'
import { Session } from '../../engine/smtp/session.ts'
import { onAbort } from '../../platform/abort.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'

/** The result of a connection to one address of a mail server. */
export type HandshakeResult = {
  /** The host name or IP address that was given. */
  readonly host: string
  /** The dialed address; null if the name did not resolve. */
  readonly ip: string | null
  readonly outcome: Outcome
  /** The local address of the connection; null if unknown. */
  readonly localAddress: string | null
}

export type Outcome =
  /** The server accepted the connection and EHLO. `at`: time of the greeting, epoch ms. */
  | {
      readonly kind: 'greeted'
      readonly greeting: Reply
      readonly ehlo: Reply
      readonly at: number
    }
  /** The server rejected the connection or EHLO with a reply. */
  | { readonly kind: 'refused'; readonly reply: Reply }
  /** A connection opened, but no SMTP reply came. */
  | { readonly kind: 'mute'; readonly detail: string }
  /** No connection opened; `code` is the system error code, such as ECONNREFUSED. */
  | { readonly kind: 'unreached'; readonly code: string; readonly detail: string }
  | { readonly kind: 'unresolved'; readonly fault: DnsFault }
  | { readonly kind: 'not-public' }

export type HandshakeDeps = {
  readonly clock: Clock
  readonly dial: Dial
  readonly helo: string
  readonly smtpPort: number
}

/** Allows for lost SYNs, which are retransmitted after 1 s and 3 s (RFC 6298 §5). */
const CONNECT_MS = 4 * SECOND
/** Some servers delay the greeting of unknown clients; large providers do not. */
const REPLY_MS = 4 * SECOND
/** Limits the whole session, to leave time for the checks that depend on it. */
const SESSION_MS = 6 * SECOND

/** Connects to a mail server and runs greeting, EHLO and QUIT, nothing else. */
export async function smtpHandshake(
  deps: HandshakeDeps,
  to: { readonly host: string; readonly ip: string },
  signal: AbortSignal,
): Promise<HandshakeResult> {
  const timeout = withDeadline(deps.clock, CONNECT_MS, [signal])
  try {
    const socket = await deps.dial.connect({ ...to, port: deps.smtpPort }, timeout.signal)
    const outcome = await converse(deps, socket, signal)
    return { ...to, outcome, localAddress: localAddressOf(socket) }
  } catch (error) {
    return { ...to, outcome: unreached(error, timeout.signal.aborted), localAddress: null }
  } finally {
    timeout.done()
  }
}

async function converse(
  { clock, helo }: HandshakeDeps,
  socket: Duplex,
  signal: AbortSignal,
): Promise<Outcome> {
  const session = new Session(socket, {
    clock,
    greetingTimeoutMs: REPLY_MS,
    replyTimeoutMs: REPLY_MS,
    sessionTimeoutMs: SESSION_MS,
  })
  const unsubscribe = onAbort(signal, () => session.close())
  try {
    return await introduce(session, helo, clock)
  } finally {
    await session.quit()
    unsubscribe()
  }
}

async function introduce(session: Session, helo: string, clock: Clock): Promise<Outcome> {
  const greeting = await session.greeting()
  const at = clock.now()
  if (isFailure(greeting)) return { kind: 'mute', detail: greeting.detail }
  if (greeting.code !== 220) return { kind: 'refused', reply: greeting }
  const ehlo = await session.ehlo(helo)
  if (isFailure(ehlo)) return { kind: 'mute', detail: ehlo.detail }
  return ehlo.code === 250
    ? { kind: 'greeted', greeting, ehlo, at }
    : { kind: 'refused', reply: ehlo }
}

function unreached(error: unknown, gaveUp: boolean): Outcome {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { kind: 'unreached', code: gaveUp ? 'ETIMEDOUT' : code, detail: errorMessage(error) }
}

/** Reads the local address; only TCP sockets have one, other streams return null. */
function localAddressOf(socket: Duplex): string | null {
  const address = 'localAddress' in socket ? socket.localAddress : null
  return typeof address === 'string' ? address : null
}

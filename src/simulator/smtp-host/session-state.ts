import type { SecureContext } from 'node:tls'
import type { Tally } from '../counters.ts'
import type { Behavior } from './behaviors.ts'
import type { Caller, Moment, RuleSet } from './rule.ts'

/** A simulated mail server, as the sessions with it see it. */
export type SimulatedHost = {
  readonly name: string
  readonly behavior: Behavior
  readonly rules: RuleSet
  readonly extensions: readonly string[]
  readonly tally: Tally
  /** How often, and how long ago first, this client asked for this recipient from this sender. */
  remember(moment: Moment): { times: number; sinceMs: number }
  secureContext(): SecureContext
  certificate(): { key: string; cert: string }
}

/**
 * Where a conversation stands, and the grammar and order of commands that RFC 5321 §4.1 lays down
 * whatever a server thinks of its client.
 */
export class SessionState implements Moment {
  readonly client: string
  readonly connection: number
  from = ''
  to = ''
  inTransaction = 0
  inConnection = 0
  times = 0
  sinceMs = 0
  secure = false
  pipelining = false
  stage: 'unmet' | 'greeted' | 'mail' | 'refused' = 'unmet'
  readonly #host: SimulatedHost
  readonly #caller: Caller
  #utf8 = false

  constructor(host: SimulatedHost, caller: Caller) {
    this.#host = host
    this.#caller = caller
    this.client = caller.client
    this.connection = caller.connection
  }

  get host(): string {
    return this.#host.name
  }

  get sessions(): number {
    return this.#host.tally.attendance.sessionsNow
  }

  /** What is wrong with a command before anybody has an opinion of it; reads its arguments. */
  faultOf(verb: string, line: string): string | undefined {
    if (this.stage === 'refused')
      return verb === 'QUIT' ? undefined : '503 5.5.1 Error: access denied'
    switch (verb) {
      case 'EHLO':
      case 'HELO':
        return /^\S+ +\S+$/.test(line) ? undefined : `501 Syntax: ${verb} hostname`
      case 'STARTTLS':
        if (!this.mayEncrypt) return '502 5.5.1 Error: command not implemented'
        return line.length === verb.length ? undefined : '501 5.5.4 Syntax: STARTTLS'
      case 'MAIL':
        return this.#readMail(line)
      case 'RCPT':
        return this.#readRcpt(line)
      default:
        return undefined
    }
  }

  get mayEncrypt(): boolean {
    return this.#host.behavior.starttls === true && !this.secure
  }

  /** A command was granted: the conversation goes on from there. */
  advance(verb: string): void {
    if (verb === 'MAIL') {
      this.stage = 'mail'
      this.inTransaction = 0
      this.#host.tally.transactions += 1
    } else if (verb === 'EHLO' || verb === 'HELO') {
      this.stage = 'greeted'
      this.pipelining = verb === 'EHLO' && this.#host.extensions.includes('PIPELINING')
    } else if (verb === 'RSET' && this.stage === 'mail') {
      this.stage = 'greeted'
    } else if (verb === 'STARTTLS') {
      // RFC 3207 §4.2: all that was said before is forgotten.
      this.stage = 'unmet'
      this.pipelining = false
      this.secure = true
      this.#host.tally.tlsSessions += 1
    }
  }

  /** The client asked for a recipient. */
  asked(to: string): void {
    this.to = to
    this.inTransaction += 1
    this.inConnection += 1
    this.#caller.asks(to.slice(to.lastIndexOf('@') + 1).toLowerCase())
    this.#host.tally.recipient(to, this.inConnection, this.inTransaction)
    if (this.#host.rules.remembers) Object.assign(this, this.#host.remember(this))
  }

  #readMail(line: string): string | undefined {
    if (this.stage === 'unmet') return '503 5.5.1 Error: send HELO/EHLO first'
    if (this.stage === 'mail') return '503 5.5.1 Error: nested MAIL command'
    const match = /^MAIL FROM: ?<(.*)>((?: [!-~]+)*)$/i.exec(line)
    if (match === null) return '501 5.5.4 Syntax: MAIL FROM:<address>'
    this.from = match[1] ?? ''
    this.#utf8 = / SMTPUTF8\b/i.test(match[2] ?? '')
    const offered = this.#host.extensions.includes('SMTPUTF8')
    return this.#utf8 && !offered ? '555 5.5.4 Unsupported option: SMTPUTF8' : undefined
  }

  #readRcpt(line: string): string | undefined {
    if (this.stage !== 'mail') return '503 5.5.1 Error: need MAIL command'
    const to = /^RCPT TO: ?<(.+)>(?: [!-~]+)*$/i.exec(line)?.[1]
    if (to === undefined) return '501 5.5.4 Syntax: RCPT TO:<address>'
    this.asked(to)
    return !this.#utf8 && NOT_ASCII.test(to)
      ? '553 5.6.7 Error: this address needs SMTPUTF8'
      : undefined
  }
}

/** A reply with the names in it replaced by what they stand for. */
export function filledIn(reply: string, status: SessionState): string {
  if (!reply.includes('{')) return reply
  return reply.replace(
    /\{(to|from|host|client)\}/g,
    (_, name: 'to' | 'from' | 'host' | 'client') => status[name],
  )
}

const NOT_ASCII = /[^ -~]/

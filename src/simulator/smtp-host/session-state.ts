import type { SecureContext } from 'node:tls'
import type { Tally } from '../counters.ts'
import type { Behavior } from './behaviors.ts'
import type { Caller, Moment, RuleSet } from './rule.ts'

/** The part of a simulated mail server that its sessions use. */
export type SimulatedHost = {
  readonly name: string
  readonly behavior: Behavior
  readonly rules: RuleSet
  readonly extensions: readonly string[]
  readonly tally: Tally
  /** Records an attempt; returns the number of attempts and the time since the first one. */
  recordAttempt(moment: Moment): { times: number; sinceMs: number }
  secureContext(): SecureContext
  certificate(): { key: string; cert: string }
}

/**
 * State of a session, with the syntax and order of commands (RFC 5321 §4.1), which rules cannot
 * change.
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
  stage: 'initial' | 'greeted' | 'mail' | 'refused' = 'initial'
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
    return this.#host.tally.sessionLog.sessionsNow
  }

  /** Parses the arguments of a command; returns the error reply if its syntax or order is wrong. */
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

  /** Updates the state after a command succeeded. */
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
      // Discard all earlier state (RFC 3207 §4.2).
      this.stage = 'initial'
      this.pipelining = false
      this.secure = true
      this.#host.tally.tlsSessions += 1
    }
  }

  /** Records a RCPT command. */
  addRecipient(to: string): void {
    this.to = to
    this.inTransaction += 1
    this.inConnection += 1
    this.#caller.addDomain(to.slice(to.lastIndexOf('@') + 1).toLowerCase())
    this.#host.tally.recipient(to, this.inConnection, this.inTransaction)
    if (this.#host.rules.needsAttempts) Object.assign(this, this.#host.recordAttempt(this))
  }

  #readMail(line: string): string | undefined {
    if (this.stage === 'initial') return '503 5.5.1 Error: send HELO/EHLO first'
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
    this.addRecipient(to)
    return !this.#utf8 && NOT_ASCII.test(to)
      ? '553 5.6.7 Error: this address needs SMTPUTF8'
      : undefined
  }
}

/** Replaces the placeholders in a reply. */
export function fillPlaceholders(reply: string, status: SessionState): string {
  if (!reply.includes('{')) return reply
  return reply.replace(
    /\{(to|from|host|client)\}/g,
    (_, name: 'to' | 'from' | 'host' | 'client') => status[name],
  )
}

const NOT_ASCII = /[^ -~]/

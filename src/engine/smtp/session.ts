import type { Duplex } from 'node:stream'
import type { Stage } from './classify-reply.ts'
import {
  Connection,
  type ConnectionFailure,
  type ConnectionOptions,
  isFailure,
  QUIT_TIMEOUT_MS,
} from './connection.ts'
import type { Reply } from './reply.ts'

/**
 * An SMTP session with one MX host (RFC 5321 §3), with one method for each command. Commands can be
 * issued without waiting: with PIPELINING (RFC 2920) they leave in one write, otherwise each leaves
 * after the reply to the previous one. After a failure, every command returns a
 * `ConnectionFailure`.
 */
export class Session {
  readonly #connection: Connection
  /** The extensions that the reply to EHLO offers. */
  #offers = NO_OFFERS
  #mayPipeline = true
  /** True after a successful TLS handshake. */
  secured = false
  /** The text of the greeting, as sent; empty before it. */
  banner = ''

  constructor(socket: Duplex, options: ConnectionOptions) {
    this.#connection = new Connection(socket, options)
  }

  /** False permanently after an I/O error, a 421, or an invalid reply. */
  get usable(): boolean {
    return this.#connection.usable
  }

  /** True if the server offers PIPELINING and it is used. */
  get pipelining(): boolean {
    return this.#mayPipeline && this.offersPipelining
  }

  get offersPipelining(): boolean {
    return this.#offers.pipelining
  }

  /** Makes each later command wait for the reply to the previous one. */
  stopPipelining(): void {
    this.#mayPipeline = false
  }

  get offersStartTls(): boolean {
    return this.#offers.startTls && !this.secured
  }

  get offersSmtpUtf8(): boolean {
    return this.#offers.smtpUtf8
  }

  /** Waits for the greeting (§3.1); nothing is sent before it. */
  async greeting(): Promise<Reply | ConnectionFailure> {
    const reply = await this.#connection.greeting()
    if (!isFailure(reply)) this.banner = reply.text
    return reply
  }

  /**
   * §4.1.1.1. Falls back to HELO after a permanent refusal, as Postfix and Exim do, because servers
   * refuse EHLO with many codes. If HELO is refused too, returns the reply to EHLO, unless that only
   * says that the command is unknown.
   */
  async ehlo(name: string): Promise<Reply | ConnectionFailure> {
    this.#offers = NO_OFFERS
    const reply = await this.#command('ehlo', `EHLO ${name}`)
    if (isFailure(reply)) return reply
    if (reply.code === 250) {
      this.#offers = {
        pipelining: PIPELINING.test(reply.text),
        startTls: STARTTLS.test(reply.text),
        smtpUtf8: SMTPUTF8.test(reply.text),
      }
      return reply
    }
    if (!refusesEhlo(reply)) return reply
    const helo = await this.#command('ehlo', `HELO ${name}`)
    const isRefused = isFailure(helo) || helo.code !== 250
    return isRefused && !UNKNOWN_COMMAND.has(reply.code) ? reply : helo
  }

  /** RFC 3207. The server forgets the session state, so send EHLO again after it. */
  async starttls(secure: (socket: Duplex) => Promise<Duplex>): Promise<Reply | ConnectionFailure> {
    const reply = await this.#command('starttls', 'STARTTLS')
    if (isFailure(reply) || reply.code !== 220) return reply
    this.#offers = NO_OFFERS
    const failure = await this.#connection.secure(secure)
    if (failure !== null) return failure
    this.secured = true
    return reply
  }

  /** §4.1.1.2. `from` is the bare address, empty for the null sender. */
  mail(from: string, options: { smtpUtf8: boolean } = { smtpUtf8: false }) {
    return this.#command('mail', `MAIL FROM:<${from}>${options.smtpUtf8 ? ' SMTPUTF8' : ''}`)
  }

  /** §4.1.1.3. */
  rcpt(to: string) {
    return this.#command('rcpt', `RCPT TO:<${to}>`)
  }

  /** Sends RCPT for several recipients. Resolves when all have their reply. */
  rcpts(all: readonly string[]): Promise<(Reply | ConnectionFailure)[]> {
    const lines = all.map(to => `RCPT TO:<${to}>`)
    return this.#connection.commands('rcpt', lines, this.pipelining)
  }

  /** §4.1.1.5. */
  rset() {
    return this.#command('rset', 'RSET')
  }

  /**
   * §4.1.1.10. Resolves when the connection is closed; it may be called again. With PIPELINING,
   * QUIT leaves at once. Without a reply to it within `timeoutMs`, the replies count as in step.
   */
  quit(timeoutMs = QUIT_TIMEOUT_MS): Promise<void> {
    this.#connection.quit(this.pipelining, timeoutMs)
    return this.#connection.closed
  }

  /** Resolves when QUIT is answered or the connection is lost: true if replies matched commands. */
  get inStep(): Promise<boolean> {
    return this.#connection.inStep
  }

  /** Closes the connection without QUIT, at our deadline; pending commands resolve as failed. */
  close(): void {
    this.#connection.close()
  }

  #command(stage: Stage, line: string): Promise<Reply | ConnectionFailure> {
    return this.#connection.command(stage, line, this.pipelining && PIPELINED.has(stage))
  }
}

/**
 * False for a server that knows EHLO: 521 is for the client (RFC 7504 §3), and so is a refusal after
 * a line with 250.
 */
const refusesEhlo = ({ code, firstCode }: Reply) =>
  code >= 500 && code !== 521 && firstCode === undefined

/** RFC 5321 §4.2.4: the command is not recognized or not implemented. */
const UNKNOWN_COMMAND: ReadonlySet<number> = new Set([500, 502, 504])

const NO_OFFERS = { pipelining: false, startTls: false, smtpUtf8: false }

/** A keyword is in any case, at the start of a line but the first (RFC 5321 §4.1.1.1). */
const PIPELINING = /\nPIPELINING(?![^\n =])/i
const STARTTLS = /\nSTARTTLS(?![^\n =])/i
const SMTPUTF8 = /\nSMTPUTF8(?![^\n =])/i

/** RFC 2920 §3.1: more commands may follow these in one write, but not EHLO and STARTTLS. */
const PIPELINED: ReadonlySet<Stage> = new Set(['mail', 'rcpt', 'rset'])

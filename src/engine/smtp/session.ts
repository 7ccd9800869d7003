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
 * A conversation with one mail exchanger (RFC 5321 §3): one method for each command. Commands may be
 * given without waiting: with PIPELINING (RFC 2920) they leave in one write, else each leaves when the
 * one before it was answered. After trouble every outcome is `Broken`.
 */
export class Session {
  readonly #connection: Connection
  /** What the server said to EHLO, keywords in upper case. */
  #capabilities = new Set<string>()
  #mayPipeline = true
  /** True once TLS is on. */
  secured = false

  constructor(socket: Duplex, options: ConnectionOptions) {
    this.#connection = new Connection(socket, options)
  }

  /** False for ever after an I/O fault, a 421, or a reply that cannot be read. */
  get usable(): boolean {
    return this.#connection.usable
  }

  /** The server offers PIPELINING, and it is used. */
  get pipelining(): boolean {
    return this.#mayPipeline && this.offersPipelining
  }

  get offersPipelining(): boolean {
    return this.#capabilities.has('PIPELINING')
  }

  /** From now on each command waits for the reply to the one before it. */
  stopPipelining(): void {
    this.#mayPipeline = false
  }

  get offersStartTls(): boolean {
    return this.#capabilities.has('STARTTLS') && !this.secured
  }

  get offersSmtpUtf8(): boolean {
    return this.#capabilities.has('SMTPUTF8')
  }

  /** The first thing a server says (§3.1); nothing is sent before it. */
  greeting(): Promise<Reply | ConnectionFailure> {
    return this.#connection.greeting()
  }

  /** §4.1.1.1. A server too old for EHLO is greeted with HELO. */
  async ehlo(name: string): Promise<Reply | ConnectionFailure> {
    this.#capabilities = new Set()
    const reply = await this.#command('ehlo', `EHLO ${name}`)
    if (isFailure(reply)) return reply
    if (reply.code === 250) {
      for (const line of reply.text.split('\n').slice(1)) {
        this.#capabilities.add((line.split(/[ =]/, 1)[0] as string).toUpperCase())
      }
      return reply
    }
    const unknownCommand = reply.code === 500 || reply.code === 502 || reply.code === 504
    return unknownCommand ? this.#command('ehlo', `HELO ${name}`) : reply
  }

  /** RFC 3207. After it the server knows nothing of what was said before: greet it again. */
  async starttls(secure: (socket: Duplex) => Promise<Duplex>): Promise<Reply | ConnectionFailure> {
    const reply = await this.#command('starttls', 'STARTTLS')
    if (isFailure(reply) || reply.code !== 220) return reply
    this.#capabilities = new Set()
    const trouble = await this.#connection.secure(secure)
    if (trouble !== null) return trouble
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

  /** §4.1.1.5. */
  rset() {
    return this.#command('rset', 'RSET')
  }

  /**
   * §4.1.1.10. Resolves when the connection is closed; it may be called again. With PIPELINING it
   * leaves at once. `patienceMs`: where it is not answered for so long, the replies count as in
   * step.
   */
  quit(timeoutMs = QUIT_TIMEOUT_MS): Promise<void> {
    this.#connection.quit(this.pipelining, timeoutMs)
    return this.#connection.closed
  }

  /**
   * Resolves when QUIT is answered or the connection is lost: whether each reply belonged to its
   * command.
   */
  get inStep(): Promise<boolean> {
    return this.#connection.inStep
  }

  /** Ends the conversation at once, without a word, as our time is up. Resolves `Broken` whatever was waiting. */
  close(): void {
    this.#connection.close()
  }

  #command(stage: Stage, line: string): Promise<Reply | ConnectionFailure> {
    return this.#connection.command(stage, line, this.pipelining && PIPELINED.has(stage))
  }
}

/** RFC 2920 §3.1: these may be followed by more in one write; EHLO, STARTTLS and the greeting may not. */
const PIPELINED: ReadonlySet<Stage> = new Set(['mail', 'rcpt', 'rset'])

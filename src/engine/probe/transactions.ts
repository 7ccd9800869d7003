import type { RecipientLog } from '../learned-replies/recipient-log.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'
import type { Session } from '../smtp/session.ts'

/**
 * How long a single verification waits for the reply to QUIT. A surplus reply would arrive in its
 * place, and at once, because a server looks nothing up to answer QUIT. After this time there is no
 * surplus reply.
 */
export const SINGLE_QUIT_TIMEOUT_MS = 500

type Outcome = Reply | ConnectionFailure

/**
 * The transactions of a session (RFC 5321 §3.3), with RSET between them, and QUIT. A command does not
 * wait for the replies to earlier ones if the session pipelines.
 */
export class Transactions {
  readonly #session: Session
  readonly #log: RecipientLog
  readonly #mailFrom: string
  readonly #isSingle: boolean
  #count = 0
  #recipients = 0
  #hasQuit = false

  constructor(session: Session, log: RecipientLog, options: { mailFrom: string; single: boolean }) {
    this.#session = session
    this.#log = log
    this.#mailFrom = options.mailFrom
    this.#isSingle = options.single
  }

  /** Number of transactions since EHLO. */
  get count(): number {
    return this.#count
  }

  /** Number of RCPT commands, including random and unanswered ones. */
  get recipients(): number {
    return this.#recipients
  }

  /** True once QUIT was sent: no command follows it. */
  get hasQuit(): boolean {
    return this.#hasQuit
  }

  /** Forgets the transactions before a TLS handshake, as the server does (RFC 3207 §4.2). */
  startOver(): void {
    this.#count = 0
  }

  /**
   * Starts a transaction: sends RSET if needed, then MAIL. Resolves with the reply to MAIL, which
   * decides whether the session can go on: Outlook.com answers 554 to RSET.
   */
  start(smtpUtf8 = false): Promise<Outcome> {
    this.#log.startTransaction()
    if (this.#count++ > 0) void this.#session.rset()
    return this.#session.mail(this.#mailFrom, { smtpUtf8 })
  }

  /** Sends RCPT in the current transaction. */
  rcpt(to: string): Promise<Outcome> {
    this.#recipients++
    return this.#session.rcpt(to)
  }

  /** Sends RCPT for each recipient. Resolves when all have their reply. */
  rcpts(all: readonly string[]): Promise<Outcome[]> {
    this.#recipients += all.length
    return this.#session.rcpts(all)
  }

  /** Sends RCPT in the current transaction, if QUIT was not sent; `isLast`: no command follows. */
  async rcptUnlessQuit(to: string, isLast: boolean): Promise<Outcome | 'quit-sent'> {
    if (this.#hasQuit) return 'quit-sent'
    const rcpt = this.rcpt(to)
    if (isLast && this.#session.pipelining) void this.quit()
    return rcpt
  }

  /** Sends RCPT in a new transaction, if QUIT was not sent; `isLast`: no command follows. */
  async rcptInNewTransaction(to: string, isLast: boolean): Promise<Outcome | 'quit-sent'> {
    if (this.#hasQuit) return 'quit-sent'
    const mail = this.start()
    const rcpt = this.rcptUnlessQuit(to, isLast)
    const isStarted = isMailAccepted(await mail)
    const reply = await rcpt
    return isStarted ? reply : NO_TRANSACTION
  }

  /** Sends QUIT, unless it was sent already. Resolves when the connection is closed. */
  quit(): Promise<void> {
    this.#hasQuit = true
    if (!this.#isSingle) return this.#session.quit()
    // Without PIPELINING each reply is trusted as it arrives.
    return this.#session.quit(this.#session.offersPipelining ? SINGLE_QUIT_TIMEOUT_MS : 0)
  }
}

/** Whether the reply to MAIL accepts the sender. */
export const isMailAccepted = (reply: Outcome): boolean => !isFailure(reply) && reply.code === 250

/** The outcome of a recipient whose transaction could not be started. */
export const NO_TRANSACTION: ConnectionFailure = {
  broken: 'closed',
  stage: 'mail',
  detail: 'no transaction',
}

/**
 * Whether the refusal of one of these recipients, which were sent in one write, names another one:
 * replies come in the order of the commands (RFC 2920 §3.1), so none of these can be trusted.
 */
export function namesOther(recipients: readonly string[], replies: readonly Outcome[]): boolean {
  if (recipients.length === 1) return false
  const named = replies.map(reply =>
    isFailure(reply) || reply.code < 500 ? null : findNamed(reply.text),
  )
  if (named.every(address => address === null)) return false
  const sent = recipients.map(to => to.toLowerCase())
  return named.some(
    (address, index) => address !== null && address !== sent[index] && sent.includes(address),
  )
}

/** Returns the first address in angle brackets, in lower case; null without one. */
function findNamed(text: string): string | null {
  const start = text.indexOf('<')
  const end = text.indexOf('>', start)
  return start === -1 || end === -1 ? null : text.slice(start + 1, end).toLowerCase()
}

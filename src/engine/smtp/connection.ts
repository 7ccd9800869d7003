import type { Duplex } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { withResolvers } from '../../platform/es2024.ts'
import type { NoResponseReason, Stage } from './classify-reply.ts'
import { REPLY_BYTES_MAX, type Reply, ReplyReader } from './reply.ts'

/** A command without a reply yet, or the expected greeting. */
type PendingReply = {
  readonly stage: Stage
  /** True once its bytes were written, so that a reply is valid. */
  sent: boolean
  /**
   * How long to wait for the reply to QUIT before the replies count as in step; null for any other
   * command.
   */
  readonly quitTimeoutMs: number | null
  readonly resolve: (outcome: Reply | ConnectionFailure) => void
}

type ReplyLimit = {
  /** Monotonic ms. */
  readonly at: number
  readonly timeoutMs: number
  readonly stage: Stage
  readonly broken: 'timeout' | 'tls'
}

/** Success codes of the commands that may be pipelined (RFC 5321 §4.3.2). */
const SUCCESS_CODES: Readonly<Partial<Record<Stage, ReadonlySet<number>>>> = {
  mail: new Set([250]),
  rcpt: new Set([250, 251, 252]),
  rset: new Set([250]),
}

const NAMED_ADDRESS = /<[^<>@]+@[^<>@]+>/

/**
 * False for a reply that the command cannot have, as it may be the reply to another command: a code
 * of another command, or a refusal of RSET that names an address.
 */
const isPossible = ({ stage }: PendingReply, { code, text }: Reply): boolean =>
  code >= 400
    ? stage !== 'rset' || !NAMED_ADDRESS.test(text)
    : SUCCESS_CODES[stage]?.has(code) !== false

/** Why a command has no reply. A failed connection stays failed. */
export type ConnectionFailure = {
  readonly broken: Extract<NoResponseReason, 'timeout' | 'closed' | 'tls' | 'garbage'>
  readonly stage: Stage
  readonly detail: string
}

export const isFailure = (outcome: Reply | ConnectionFailure): outcome is ConnectionFailure =>
  'broken' in outcome

export type ConnectionOptions = {
  readonly clock: Clock
  /** The time limit of the greeting; many servers delay it to detect impatient clients. */
  readonly greetingTimeoutMs: number
  /** The time limit of one complete reply, not of its next byte. */
  readonly replyTimeoutMs: number
  /** The time limit of the session. */
  readonly sessionTimeoutMs: number
  /** Receives every line of the dialogue, `S: …` or `C: …`, for `--explain`. */
  readonly listener?: ((line: string) => void) | null
}

/** RFC 5321 §4.5.3.1.4 allows 512 octets; SMTPUTF8 and long addresses need a little more. */
const COMMAND_BYTES_MAX = 1_000
/** The read limit of a session: a minimum, and more for each command, which has one reply. */
const READ_BYTES_MIN = REPLY_BYTES_MAX
const READ_BYTES_PER_COMMAND = 4 * 1_024
/**
 * Whether a command is short enough and has no control character. For other than ASCII the bytes are
 * checked, not the characters: a narrower encoding could fold U+010A into a line feed.
 */
function isPlainLine(line: string): boolean {
  if (PRINTABLE_ASCII.test(line)) return line.length <= COMMAND_BYTES_MAX
  const bytes = Buffer.from(line, 'utf8')
  return bytes.length <= COMMAND_BYTES_MAX && !bytes.some(byte => byte < 0x20 || byte === 0x7f)
}

function checkLine(line: string): void {
  if (isPlainLine(line)) return
  throw new EvError('internal', 'The SMTP command is too long or contains a control character.')
}

const ASCII = /^[\x00-\x7f]*$/
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/
/** How long to wait for the reply to QUIT and for the close of the connection. */
export const QUIT_TIMEOUT_MS = 2_000
/** After EHLO, QUIT is sent before the connection is closed (RFC 5321 §4.1.1.10). */
const QUIT_STAGES: ReadonlySet<Stage> = new Set(['mail', 'rcpt'])

/**
 * The connection of a session: it sends commands in order and matches each with its reply, with a
 * time limit. After a failure every command fails too, because the stream position is unknown.
 */
export class Connection {
  readonly #options: ConnectionOptions
  #socket: Duplex
  #reader = new ReplyReader()
  #pending: PendingReply[] = []
  #sendQueue: { line: string; pending: PendingReply }[] = []
  #writeBuffer = ''
  #bytesLeft = READ_BYTES_MIN
  #broken: ConnectionFailure | null = null
  /** A 421 that no command had asked for. */
  #farewell: Reply | null = null
  /** One timer serves the session and all replies; it rarely fires before the session is over. */
  #cancelTimer: (() => void) | null = null
  /** When the timer fires, monotonic ms. */
  #timerAt = Number.POSITIVE_INFINITY
  readonly #sessionEndsAt: number
  /** The time limit of the next expected reply; null if none is expected. */
  #replyLimit: ReplyLimit | null = null
  /** The command that the reply limit belongs to. */
  #timedReply: PendingReply | null = null
  readonly #quitTimers: (() => void)[] = []
  readonly #closed = withResolvers<void>()
  readonly #inStep = withResolvers<boolean>()
  /** True once a command was sent before the reply to an earlier one had arrived. */
  #hasPipelined = false
  #hasQuit = false

  constructor(socket: Duplex, options: ConnectionOptions) {
    this.#options = options
    this.#socket = socket
    this.#listen(socket)
    this.#sessionEndsAt = options.clock.monotonicNow() + options.sessionTimeoutMs
    // A connection that closed before the listeners were attached emits no further event.
    if (socket.destroyed) this.#onClose()
  }

  /** False permanently after an I/O error, a 421, or an invalid reply. */
  get usable(): boolean {
    return this.#broken === null
  }

  /**
   * Resolves when QUIT is answered or the connection is lost: false if a reply was surplus,
   * invalid, impossible for its command or earlier than its command. RSET, MAIL and RCPT all answer
   * 250, so only the 221 to QUIT (RFC 5321 §4.3.2) proves that each earlier reply matched its
   * command.
   */
  get inStep(): Promise<boolean> {
    return this.#inStep.promise
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Waits for the greeting. */
  greeting(): Promise<Reply | ConnectionFailure> {
    return new Promise(resolve => {
      if (this.#broken !== null) return resolve({ ...this.#broken, stage: 'greeting' })
      this.#awaitReply({ stage: 'greeting', sent: true, quitTimeoutMs: null, resolve })
    })
  }

  /**
   * Sends a command. All commands pass here, so that every byte is checked. A `pipelined` command
   * does not wait for the replies to earlier ones.
   */
  command(stage: Stage, line: string, pipelined: boolean): Promise<Reply | ConnectionFailure> {
    checkLine(line)
    return new Promise(resolve => this.#submit(stage, line, pipelined, resolve))
  }

  /** Sends several commands, at least one. Resolves when all have their reply. */
  commands(
    stage: Stage,
    lines: readonly string[],
    pipelined: boolean,
  ): Promise<(Reply | ConnectionFailure)[]> {
    for (const line of lines) checkLine(line)
    return new Promise(resolve => {
      const outcomes: (Reply | ConnectionFailure)[] = []
      // Replies come in the order of the commands, and a failure ends the commands in their order.
      const add = (outcome: Reply | ConnectionFailure) => {
        if (outcomes.push(outcome) === lines.length) resolve(outcomes)
      }
      for (const line of lines) this.#submit(stage, line, pipelined, add)
    })
  }

  #submit(stage: Stage, line: string, pipelined: boolean, resolve: PendingReply['resolve']) {
    if (this.#broken !== null) return resolve(this.#failureOf(this.#broken, stage))
    if (this.#hasQuit) return resolve({ broken: 'closed', stage, detail: 'QUIT was sent' })
    this.#enqueue(line, { stage, sent: false, quitTimeoutMs: null, resolve }, pipelined)
  }

  /** Starts TLS after the server has answered 220 to STARTTLS. Returns null on success. */
  async secure(upgrade: (socket: Duplex) => Promise<Duplex>): Promise<ConnectionFailure | null> {
    this.#limitReply('starttls', 'tls')
    try {
      const secured = await upgrade(this.#socket)
      if (this.#broken !== null) {
        secured.destroy()
        this.#onClosed()
        return this.#broken
      }
      this.#socket = secured
      this.#listen(secured)
      return null
    } catch (error) {
      this.#onClosed()
      return this.#break('tls', errorMessage(error), 'starttls')
    } finally {
      this.#replyLimit = null
    }
  }

  /**
   * Sends QUIT and closes the connection. QUIT may be pipelined as the last command of a group (RFC
   * 2920 §3.1). Without a reply within `timeoutMs` the replies count as in step; the connection is
   * closed after `QUIT_TIMEOUT_MS`.
   */
  quit(pipelined: boolean, timeoutMs: number): void {
    if (this.#broken !== null || this.#hasQuit) return
    this.#hasQuit = true
    const resolve = () => {}
    this.#enqueue(
      'QUIT',
      { stage: 'rset', sent: false, quitTimeoutMs: timeoutMs, resolve },
      pipelined,
    )
  }

  /** Closes the connection without QUIT, at our deadline; pending commands resolve as failed. */
  close(): void {
    this.#break('timeout', 'deadline exceeded')
  }

  #enqueue(line: string, pending: PendingReply, pipelined: boolean) {
    const isQueued = this.#sendQueue.length > 0 || (!pipelined && this.#pending.length > 0)
    if (isQueued) this.#sendQueue.push({ line, pending })
    else this.#send(line, pending)
  }

  #send(line: string, pending: PendingReply) {
    this.#hasPipelined ||= this.#pending.length > 0
    this.#options.listener?.(`C: ${line}`)
    this.#bytesLeft += READ_BYTES_PER_COMMAND
    // After the microtasks: a reply often leads to several commands, which leave in one write.
    if (this.#writeBuffer === '') process.nextTick(() => this.#flush())
    this.#writeBuffer += `${line}\r\n`
    this.#awaitReply(pending)
  }

  #flush() {
    const batch = this.#writeBuffer
    this.#writeBuffer = ''
    const isIdle = this.#pending[0]?.sent === false
    if (isIdle && this.#reader.midway) this.#breakOutOfStep('a reply started before its command')
    for (const pending of this.#pending) pending.sent = true
    // Node encodes Latin-1 faster, which is the same for ASCII.
    if (this.#broken === null) this.#socket.write(batch, ASCII.test(batch) ? 'latin1' : 'utf8')
  }

  #awaitReply(pending: PendingReply) {
    this.#pending.push(pending)
    this.#timeReply()
  }

  /** Sets one timer for the next expected reply, once for all replies of one read. */
  #timeReply() {
    const next = this.#pending[0] ?? null
    if (this.#timedReply === next) return
    this.#timedReply = next
    this.#replyLimit = null
    if (next === null) return
    if (next.quitTimeoutMs === null) this.#limitReply(next.stage)
    else this.#startQuitTimers(next.quitTimeoutMs)
  }

  #startQuitTimers(timeoutMs: number) {
    const { clock } = this.#options
    const confirm = () => this.#hasPartialReply || this.#inStep.resolve(true)
    if (timeoutMs === 0) this.#inStep.resolve(true)
    else if (timeoutMs < QUIT_TIMEOUT_MS) this.#quitTimers.push(clock.after(timeoutMs, confirm))
    this.#quitTimers.push(
      clock.after(QUIT_TIMEOUT_MS, () => {
        if (timeoutMs >= QUIT_TIMEOUT_MS) confirm()
        this.#socket.destroy()
      }),
    )
  }

  #onClosed() {
    for (const cancel of this.#quitTimers) cancel()
    this.#closed.resolve()
  }

  #limitReply(stage: Stage, broken: 'timeout' | 'tls' = 'timeout') {
    const { clock, greetingTimeoutMs, replyTimeoutMs } = this.#options
    const timeoutMs = stage === 'greeting' ? greetingTimeoutMs : replyTimeoutMs
    const now = clock.monotonicNow()
    this.#replyLimit = { at: now + timeoutMs, timeoutMs, stage, broken }
    // The limit of the reply after the greeting is shorter, and needs no timer of its own then.
    this.#startTimer(now + Math.min(timeoutMs, replyTimeoutMs))
  }

  /**
   * Sets the timer for the earlier of the limit of the session and `replyAt`, unless it fires before
   * that: then it is set again.
   */
  #startTimer(replyAt: number) {
    if (this.#broken !== null) return
    const at = Math.min(this.#sessionEndsAt, replyAt)
    if (this.#timerAt <= at) return
    this.#cancelTimer?.()
    this.#timerAt = at
    const { clock } = this.#options
    this.#cancelTimer = clock.after(at - clock.monotonicNow(), () => this.#onTimer())
  }

  #onTimer() {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.#options.clock.monotonicNow()
    const limit = this.#replyLimit
    if (now >= this.#sessionEndsAt) this.#break('timeout', 'the session exceeded its time limit')
    else if (limit === null || now < limit.at)
      this.#startTimer(limit?.at ?? Number.POSITIVE_INFINITY)
    else {
      const { stage, broken, timeoutMs } = limit
      const close = QUIT_STAGES.has(stage) ? () => this.#quitWithoutReply() : undefined
      this.#break(broken, `no complete reply within ${timeoutMs} ms`, stage, close)
    }
  }

  /** Sends QUIT to a server that timed out; later data from it is ignored. */
  #quitWithoutReply() {
    const socket = this.#socket
    if (this.#hasQuit || !socket.writable) return void socket.destroy()
    this.#hasQuit = true
    this.#quitTimers.push(this.#options.clock.after(QUIT_TIMEOUT_MS, () => socket.destroy()))
    this.#options.listener?.('C: QUIT')
    socket.end('QUIT\r\n')
  }

  #read(chunk: Uint8Array) {
    this.#bytesLeft -= chunk.length
    if (this.#broken !== null) return void (this.#bytesLeft < 0 && this.#socket.destroy())
    if (this.#bytesLeft < 0) return void this.#break('garbage', 'the server sent too much data')
    const reader = this.#reader
    for (const reply of reader.push(chunk)) {
      if (this.#broken !== null) break
      if (this.#reader !== reader) return this.#breakBeforeTls()
      this.#deliver(reply)
    }
    const hasRemainder = reader.midway || reader.fault !== null
    if (this.#reader !== reader && hasRemainder) return this.#breakBeforeTls()
    this.#timeReply()
    if (reader === this.#reader && reader.fault !== null) this.#break('garbage', reader.fault)
  }

  /** Ends the session: clear text after the 220 to STARTTLS may be injected (RFC 3207 §6). */
  #breakBeforeTls() {
    this.#break('garbage', 'clear text between the reply to STARTTLS and the TLS handshake')
  }

  #deliver(reply: Reply) {
    const [pending] = this.#pending
    this.#logReply(reply)
    if (pending === undefined || !pending.sent) {
      // A server may send an unsolicited 421 and close (RFC 5321 §3.8); anything else is out of
      // step, and so may be a 421 after pipelined commands.
      const detail = 'an unsolicited reply'
      if (reply.code !== 421 || this.#hasPipelined) return void this.#breakOutOfStep(detail)
      this.#farewell = reply
      return void this.#break('closed', detail)
    }
    if (pending.quitTimeoutMs !== null) return this.#readQuitReply(reply)
    if (this.#hasPipelined && !isPossible(pending, reply)) {
      return void this.#break('garbage', `${reply.code} is not a valid reply to ${pending.stage}`)
    }
    this.#pending.shift()
    pending.resolve(reply)
    if (pending.stage === 'starttls' && reply.code === 220) return this.#detachListeners()
    if (reply.code === 421) return void this.#break('closed', 'the server sent 421')
    const next = this.#pending.length > 0 ? undefined : this.#sendQueue.shift()
    if (next !== undefined) this.#send(next.line, next.pending)
  }

  #readQuitReply({ code }: Reply) {
    // After pipelined commands, a 421 may be the reply to the last of them, one reply late.
    if (code === 221 || (code === 421 && !this.#hasPipelined)) {
      this.#inStep.resolve(true)
      // The server closes first, so that it never counts this session and the next one at once.
      this.#break('closed', 'QUIT was sent', 'rset', () => this.#socket.end())
    } else if (this.#hasPipelined) {
      this.#break('garbage', `${code} is not a valid reply to QUIT`)
    } else {
      // A nonstandard code in place of 221. If it is a surplus reply instead, the 221 follows and
      // is out of step.
      this.#pending.shift()
    }
  }

  #logReply(reply: Reply) {
    const { listener } = this.#options
    if (!listener) return
    const enhanced = reply.enhanced === null ? '' : `${reply.enhanced} `
    for (const line of reply.text.split('\n')) listener(`S: ${reply.code} ${enhanced}${line}`)
  }

  /** True if part of a reply has arrived while none is expected, or only the one to QUIT. */
  get #hasPartialReply(): boolean {
    const [next] = this.#pending
    return this.#reader.midway && next?.quitTimeoutMs !== null
  }

  #breakOutOfStep(detail: string) {
    if (this.#broken === null) this.#inStep.resolve(false)
    return this.#break('garbage', detail)
  }

  #break(
    broken: ConnectionFailure['broken'],
    detail: string,
    stage?: Stage,
    close: () => unknown = () => this.#socket.destroy(),
  ): ConnectionFailure {
    if (this.#broken !== null) return this.#broken
    const at = stage ?? this.#pending[0]?.stage ?? 'rset'
    this.#broken = { broken, detail, stage: at }
    // Without pipelining, an impossible reply to one command does not affect earlier replies.
    const isSuspicious = broken === 'garbage' || this.#hasPartialReply
    this.#inStep.resolve(!isSuspicious || !this.#hasPipelined)
    this.#cancelTimer?.()
    const unanswered = this.#pending
    for (const { pending } of this.#sendQueue) unanswered.push(pending)
    this.#pending = []
    this.#sendQueue = []
    for (const { stage, resolve } of unanswered) resolve(this.#failureOf(this.#broken, stage))
    close()
    return this.#broken
  }

  /**
   * Returns what a command without a reply gets. A 421 that arrives before EHLO answers it: Postfix
   * sends one after the TLS handshake to a client that has had too many.
   */
  #failureOf(broken: ConnectionFailure, stage: Stage): Reply | ConnectionFailure {
    const farewell = stage === 'ehlo' ? this.#farewell : null
    this.#farewell = null
    return farewell ?? { ...broken, stage }
  }

  #listen(socket: Duplex) {
    socket.on('data', this.#onData)
    socket.on('error', this.#onError)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onClose)
  }

  /** Stops reading, because clear text after the 220 is not protected (RFC 3207 §6). */
  #detachListeners() {
    this.#reader = new ReplyReader()
    this.#socket.off('data', this.#onData)
    this.#socket.off('error', this.#onError)
    this.#socket.off('end', this.#onEnd)
    this.#socket.off('close', this.#onClose)
    // The clear-text socket remains below TLS, which reports its errors.
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => this.#onClosed())
  }

  readonly #onData = (chunk: Uint8Array) => this.#read(chunk)
  readonly #onError = (error: Error) => void this.#break('closed', errorMessage(error))
  readonly #onEnd = () => void this.#break('closed', 'the server closed the connection')
  readonly #onClose = () => {
    this.#break('closed', 'the server closed the connection')
    this.#onClosed()
  }
}

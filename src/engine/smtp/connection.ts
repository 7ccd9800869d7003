import type { Duplex } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { NoResponseReason, Stage } from './classify-reply.ts'
import { REPLY_BYTES_MAX, type Reply, ReplyReader } from './reply.ts'

/** A command that waits for its reply, or the greeting that is waited for. */
type PendingReply = {
  readonly stage: Stage
  /** Its bytes have left, so that a reply to it may come. */
  sent: boolean
  /**
   * How long to wait for the reply to QUIT before the replies count as in step; null: another
   * command.
   */
  readonly quitTimeoutMs: number | null
  readonly resolve: (outcome: Reply | ConnectionFailure) => void
}

/** Codes of success of the commands that may be pipelined (RFC 5321 §4.3.2). */
const SUCCESS_CODES: Readonly<Partial<Record<Stage, ReadonlySet<number>>>> = {
  mail: new Set([250]),
  rcpt: new Set([250, 251, 252]),
  rset: new Set([250]),
}

/** False for a code that the command cannot have: this may be the reply to another one. */
const isPossible = ({ stage }: PendingReply, code: number): boolean =>
  code >= 400 || SUCCESS_CODES[stage]?.has(code) !== false

/** Why a command has no reply: the conversation broke, and stays broken. */
export type ConnectionFailure = {
  readonly broken: Extract<NoResponseReason, 'timeout' | 'closed' | 'tls' | 'garbage'>
  readonly stage: Stage
  readonly detail: string
}

export const isFailure = (outcome: Reply | ConnectionFailure): outcome is ConnectionFailure =>
  'broken' in outcome

export type ConnectionOptions = {
  readonly clock: Clock
  /** How long the server may take to greet us; a pause before the greeting is a common test of patience. */
  readonly greetingTimeoutMs: number
  /** For one whole reply, not for its next byte. */
  readonly replyTimeoutMs: number
  /** For the whole conversation. */
  readonly sessionTimeoutMs: number
  /** Receives every line said, `S: …` or `C: …`, for `--explain`. */
  readonly listener?: ((line: string) => void) | null
}

/** RFC 5321 §4.5.3.1.4 grants a command 512 octets; SMTPUTF8 and long addresses need a little more. */
const COMMAND_BYTES_MAX = 1_000
/** What a session may make us read: a floor, and more for each command, as each has one reply. */
const READ_BYTES_MIN = REPLY_BYTES_MAX
const READ_BYTES_PER_COMMAND = 4 * 1_024
/** How long we wait for a QUIT to be answered and the connection to close. */
export const QUIT_TIMEOUT_MS = 2_000
/** A server that has answered EHLO hears QUIT before we leave (RFC 5321 §4.1.1.10). */
const QUIT_STAGES: ReadonlySet<Stage> = new Set(['mail', 'rcpt'])

/**
 * What carries a session: lines go out in order, each gets its reply within its time. After trouble every
 * outcome is `Broken`: nobody guesses where the stream stands.
 */
export class Connection {
  readonly #options: ConnectionOptions
  #socket: Duplex
  #reader = new ReplyReader()
  #waiting: PendingReply[] = []
  #unsent: { line: string; waiting: PendingReply }[] = []
  #batch = ''
  #bytesLeft = READ_BYTES_MIN
  #broken: ConnectionFailure | null = null
  #cancelReplyTimer: (() => void) | null = null
  /** Whose reply the timer is for. */
  #timed: PendingReply | null = null
  readonly #cancelSessionTimer: () => void
  readonly #closed = Promise.withResolvers<void>()
  readonly #inStep = Promise.withResolvers<boolean>()
  /** A command left before the replies to those before it were there. */
  #hasPipelined = false
  #hasQuit = false

  constructor(socket: Duplex, options: ConnectionOptions) {
    this.#options = options
    this.#socket = socket
    this.#listen(socket)
    this.#cancelSessionTimer = options.clock.after(options.sessionTimeoutMs, () =>
      this.#break('timeout', 'the conversation took too long'),
    )
    // A connection that died before we listened will not say so again.
    if (socket.destroyed) this.#onClose()
  }

  /** False for ever after an I/O fault, a 421, or a reply that cannot be read. */
  get usable(): boolean {
    return this.#broken === null
  }

  /**
   * Resolves when QUIT is answered or the connection is lost; false where a reply was left over,
   * unreadable, impossible for its command or earlier than its command. RSET, MAIL and RCPT all
   * answer 250, so only the 221 to QUIT (RFC 5321 §4.3.2) tells that each reply before it stood in
   * its place.
   */
  get inStep(): Promise<boolean> {
    return this.#inStep.promise
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** What the server says first, of itself. */
  greeting(): Promise<Reply | ConnectionFailure> {
    return new Promise(resolve => {
      if (this.#broken !== null) return resolve({ ...this.#broken, stage: 'greeting' })
      this.#wait({ stage: 'greeting', sent: true, quitTimeoutMs: null, resolve })
    })
  }

  /**
   * The one door to the wire: every byte that leaves is looked at here. `pipelined`: it need not wait for the
   * replies to what was given before it.
   */
  command(stage: Stage, line: string, pipelined: boolean): Promise<Reply | ConnectionFailure> {
    const bytes = Buffer.from(line, 'utf8')
    // The bytes are checked, not the characters: a narrower encoding could fold U+010A into a line feed.
    if (bytes.length > COMMAND_BYTES_MAX || bytes.some(byte => byte < 0x20 || byte === 0x7f)) {
      throw new EvError('internal', 'A command with a control character or too long was stopped.')
    }
    return new Promise(resolve => {
      if (this.#broken !== null) return resolve({ ...this.#broken, stage })
      if (this.#hasQuit) return resolve({ broken: 'closed', stage, detail: 'we said QUIT' })
      this.#give(line, { stage, sent: false, quitTimeoutMs: null, resolve }, pipelined)
    })
  }

  /** Goes on in TLS, when the server has said 220 to STARTTLS. Null when all went well. */
  async secure(putOn: (socket: Duplex) => Promise<Duplex>): Promise<ConnectionFailure | null> {
    this.#startReplyTimer('starttls', 'tls')
    try {
      const secured = await putOn(this.#socket)
      if (this.#broken !== null) {
        secured.destroy()
        this.#closed.resolve()
        return this.#broken
      }
      this.#socket = secured
      this.#listen(secured)
      return null
    } catch (error) {
      this.#closed.resolve()
      return this.#break('tls', errorMessage(error), 'starttls')
    } finally {
      this.#cancelReplyTimer?.()
    }
  }

  /**
   * Says QUIT and hangs up; it may be pipelined as the last command of a group (RFC 2920 §3.1).
   * The replies count as in step when it is not answered within `patienceMs`; the connection ends
   * after `QUIT_TIMEOUT_MS`.
   */
  quit(pipelined: boolean, timeoutMs: number): void {
    if (this.#broken !== null || this.#hasQuit) return
    this.#hasQuit = true
    const resolve = () => {}
    this.#give('QUIT', { stage: 'rset', sent: false, quitTimeoutMs: timeoutMs, resolve }, pipelined)
  }

  /** Ends at once, without a word, as our time is up. Resolves `Broken` whatever was waiting. */
  close(): void {
    this.#break('timeout', 'time ran out')
  }

  #give(line: string, waiting: PendingReply, pipelined: boolean) {
    const mustWait = this.#unsent.length > 0 || (!pipelined && this.#waiting.length > 0)
    if (mustWait) this.#unsent.push({ line, waiting })
    else this.#send(line, waiting)
  }

  #send(line: string, waiting: PendingReply) {
    this.#hasPipelined ||= this.#waiting.length > 0
    this.#options.listener?.(`C: ${line}`)
    this.#bytesLeft += READ_BYTES_PER_COMMAND
    if (this.#batch === '') queueMicrotask(() => this.#flush())
    this.#batch += `${line}\r\n`
    this.#wait(waiting)
  }

  #flush() {
    const batch = this.#batch
    this.#batch = ''
    const isIdle = this.#waiting[0]?.sent === false
    if (isIdle && this.#reader.midway) this.#breakOutOfStep('a reply began before its command')
    for (const waiting of this.#waiting) waiting.sent = true
    if (this.#broken === null) this.#socket.write(batch)
  }

  #wait(waiting: PendingReply) {
    this.#waiting.push(waiting)
    this.#timeReply()
  }

  /** One timer for the reply that is due next, set once for all that one read brings. */
  #timeReply() {
    const next = this.#waiting[0] ?? null
    if (this.#timed === next) return
    this.#timed = next
    this.#cancelReplyTimer?.()
    this.#cancelReplyTimer = null
    if (next === null) return
    if (next.quitTimeoutMs === null) this.#startReplyTimer(next.stage)
    else this.#startQuitTimers(next.quitTimeoutMs)
  }

  #startQuitTimers(timeoutMs: number) {
    const { clock } = this.#options
    if (timeoutMs === 0) this.#inStep.resolve(true)
    const cancels = [
      clock.after(timeoutMs, () => this.#hasLeftOver || this.#inStep.resolve(true)),
      clock.after(QUIT_TIMEOUT_MS, () => this.#socket.destroy()),
    ]
    void this.#closed.promise.then(() => cancels.map(cancel => cancel()))
  }

  #startReplyTimer(stage: Stage, broken: 'timeout' | 'tls' = 'timeout') {
    const { clock, greetingTimeoutMs, replyTimeoutMs } = this.#options
    const timeoutMs = stage === 'greeting' ? greetingTimeoutMs : replyTimeoutMs
    const close = QUIT_STAGES.has(stage) ? () => this.#quitWithoutReply() : undefined
    this.#cancelReplyTimer = clock.after(timeoutMs, () =>
      this.#break(broken, `no whole reply within ${timeoutMs} ms`, stage, close),
    )
  }

  /** Says QUIT to a server that is too slow; whatever it says from now on is read as no reply. */
  #quitWithoutReply() {
    const socket = this.#socket
    if (this.#hasQuit || !socket.writable) return void socket.destroy()
    this.#hasQuit = true
    const cancel = this.#options.clock.after(QUIT_TIMEOUT_MS, () => socket.destroy())
    void this.#closed.promise.then(cancel)
    this.#options.listener?.('C: QUIT')
    socket.end('QUIT\r\n')
  }

  #read(chunk: Uint8Array) {
    this.#bytesLeft -= chunk.length
    if (this.#broken !== null) return void (this.#bytesLeft < 0 && this.#socket.destroy())
    if (this.#bytesLeft < 0) return void this.#break('garbage', 'the server said too much')
    const reader = this.#reader
    for (const reply of reader.push(chunk)) {
      if (this.#broken !== null) break
      if (this.#reader !== reader) return this.#breakBeforeTls()
      this.#deliver(reply)
    }
    const isLeftOver = reader.midway || reader.fault !== null
    if (this.#reader !== reader && isLeftOver) return this.#breakBeforeTls()
    this.#timeReply()
    if (reader === this.#reader && reader.fault !== null) this.#break('garbage', reader.fault)
  }

  /** Clear text after the 220 to STARTTLS may be injected, so the session ends (RFC 3207 §6). */
  #breakBeforeTls() {
    this.#break('garbage', 'clear text between the reply to STARTTLS and TLS')
  }

  #deliver(reply: Reply) {
    const [waiting] = this.#waiting
    this.#emit(reply)
    if (waiting === undefined || !waiting.sent) {
      // Servers that tire of us say 421 unasked and close (RFC 5321 §3.8); anything else is out of step.
      const detail = 'a reply that nobody asked for'
      return void (reply.code === 421
        ? this.#break('closed', detail)
        : this.#breakOutOfStep(detail))
    }
    if (waiting.quitTimeoutMs !== null) return this.#readQuitReply(reply)
    if (this.#hasPipelined && !isPossible(waiting, reply.code)) {
      return void this.#break('garbage', `${reply.code} is no reply to ${waiting.stage}`)
    }
    this.#waiting.shift()
    waiting.resolve(reply)
    if (waiting.stage === 'starttls' && reply.code === 220) return this.#detachListeners()
    if (reply.code === 421) return void this.#break('closed', 'the server said 421')
    const unsent = this.#waiting.length > 0 ? undefined : this.#unsent.shift()
    if (unsent !== undefined) this.#send(unsent.line, unsent.waiting)
  }

  #readQuitReply({ code }: Reply) {
    if (code === 221 || code === 421) {
      this.#inStep.resolve(true)
      // The server closes first, so that it never counts this session and the next one together.
      this.#break('closed', 'we said QUIT', 'rset', () => this.#socket.end())
    } else if (this.#hasPipelined) {
      this.#break('garbage', `${code} is no reply to QUIT`)
    } else {
      // The server's own way to say 221, unless this is a surplus: then the 221 follows, and is out
      // of step.
      this.#waiting.shift()
    }
  }

  #emit(reply: Reply) {
    const { listener } = this.#options
    if (!listener) return
    const enhanced = reply.enhanced === null ? '' : `${reply.enhanced} `
    for (const line of reply.text.split('\n')) listener(`S: ${reply.code} ${enhanced}${line}`)
  }

  /** Part of a reply is there while no reply is due, or only that to QUIT. */
  get #hasLeftOver(): boolean {
    const [next] = this.#waiting
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
    const at = stage ?? this.#waiting[0]?.stage ?? 'rset'
    this.#broken = { broken, detail, stage: at }
    // Without pipelining an impossible reply to one command says nothing of the replies before it.
    const isOdd = broken === 'garbage' || this.#hasLeftOver
    this.#inStep.resolve(!isOdd || !this.#hasPipelined)
    this.#cancelReplyTimer?.()
    this.#cancelSessionTimer()
    const left = [...this.#waiting, ...this.#unsent.map(({ waiting }) => waiting)]
    this.#waiting = []
    this.#unsent = []
    for (const { stage, resolve } of left) resolve({ ...this.#broken, stage })
    close()
    return this.#broken
  }

  #listen(socket: Duplex) {
    for (const [event, listener] of this.#listeners) socket.on(event, listener)
  }

  /** What comes in clear text after the 220 is not protected, so nothing reads it (RFC 3207 §6). */
  #detachListeners() {
    this.#reader = new ReplyReader()
    for (const [event, listener] of this.#listeners) this.#socket.off(event, listener)
    // The clear-text socket lives on below TLS, which reports what happens to it.
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => this.#closed.resolve())
  }

  readonly #onData = (chunk: Uint8Array) => this.#read(chunk)
  readonly #onError = (error: Error) => void this.#break('closed', error.message)
  readonly #onEnd = () => void this.#break('closed', 'the server closed the connection')
  readonly #onClose = () => {
    this.#break('closed', 'the server closed the connection')
    this.#closed.resolve()
  }
  readonly #listeners = [
    ['data', this.#onData],
    ['error', this.#onError],
    ['end', this.#onEnd],
    ['close', this.#onClose],
  ] as const
}

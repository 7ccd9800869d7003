import type { Duplex } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Caller, Rule } from './rule.ts'
import { fillPlaceholders, SessionState, type SimulatedHost } from './session-state.ts'

/** Buffers replies and sends them together, or byte by byte with a delay. */
class ReplyWriter {
  readonly #socket: Duplex
  readonly #dripMs: number | undefined
  #buffered = ''
  #dripQueue: Buffer = Buffer.alloc(0)
  #dripTimer: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(socket: Duplex, dripMs: number | undefined) {
    this.#socket = socket
    this.#dripMs = dripMs
  }

  /** Buffers a reply, with `\n` between its lines, until the next `flush`. */
  reply(reply: string): void {
    this.#buffered += reply.includes('\n')
      ? `${reply.replaceAll('\n', '\r\n')}\r\n`
      : `${reply}\r\n`
  }

  /** Sends buffered replies. */
  flush(): void {
    if (this.#buffered === '') return
    const text = this.#buffered
    this.#buffered = ''
    if (this.#dripMs === undefined) this.#write(text)
    else this.#drip(Buffer.from(text), this.#dripMs)
  }

  /** Sends raw bytes after the buffered replies. */
  bytes(bytes: Uint8Array): void {
    this.flush()
    this.#write(bytes)
  }

  /** Repeats a line endlessly, as fast as the client reads. */
  replyForever(line: string): void {
    this.flush()
    const text = `${line}\r\n`.repeat(100)
    const more = () => {
      while (this.#write(text));
      if (!this.#socket.destroyed) this.#socket.once('drain', more)
    }
    more()
  }

  /** Closes the connection after the last byte. */
  close(): void {
    this.flush()
    this.#isClosing = true
    if (this.#dripTimer === undefined) this.#socket.end()
  }

  /** Stops sending, even in the middle of a reply. */
  stop(): void {
    clearTimeout(this.#dripTimer)
  }

  #write(text: string | Uint8Array): boolean {
    return !this.#socket.writableEnded && !this.#socket.destroyed && this.#socket.write(text)
  }

  #drip(bytes: Buffer, everyMs: number): void {
    this.#dripQueue = Buffer.concat([this.#dripQueue, bytes])
    const next = () => {
      this.#write(this.#dripQueue.subarray(0, 1))
      this.#dripQueue = this.#dripQueue.subarray(1)
      this.#dripTimer = this.#dripQueue.length > 0 ? setTimeout(next, everyMs) : undefined
      if (this.#dripTimer === undefined && this.#isClosing) this.#socket.end()
    }
    this.#dripTimer ??= setTimeout(next, everyMs)
  }
}

/** Maximum line length: RFC 5321 §4.5.3.1.4 requires 512, Postfix accepts 2,048. */
const LINE_MAX = 2_048

/** The connection of a session, with or without simulated latency. */
export type Line = Duplex & { resetAndDestroy(): unknown }

/**
 * The server side of an SMTP session. `SessionState` checks syntax and order of commands, the rules
 * of the host decide the replies. Replies to pipelined commands are sent together (RFC 2920 §3.2).
 */
export class Conversation {
  readonly #host: SimulatedHost
  readonly #caller: Caller
  readonly #status: SessionState
  readonly #raw: Line
  #socket: Duplex
  #writer: ReplyWriter
  #decoder = new StringDecoder('utf8')
  #unread = ''
  /** Whether the client has sent data beyond the current command. */
  #hasMore = false
  #greeted = false
  /** Delay before the current reply; further input is buffered until it fires. */
  #replyTimer: NodeJS.Timeout | undefined
  /** Whether further input is ignored. */
  #isInputIgnored = false

  constructor(host: SimulatedHost, socket: Line, caller: Caller) {
    this.#host = host
    this.#caller = caller
    this.#raw = socket
    this.#socket = socket
    this.#writer = new ReplyWriter(socket, host.behavior.dripMs)
    this.#status = new SessionState(host, caller)
    host.tally.pregreet += socket.readableLength
    this.#listen()
    this.#greet()
  }

  /** Destroys the connection immediately. */
  destroy(): void {
    clearTimeout(this.#replyTimer)
    this.#writer.stop()
    this.#isInputIgnored = true
    this.#socket.destroy()
    this.#raw.destroy()
  }

  readonly #onData = (bytes: Buffer) => this.#handleInput(bytes)
  readonly #onEnd = () => this.#closeSession()
  readonly #onClose = () => this.destroy()

  #listen(): void {
    // No setEncoding: TLS needs raw bytes when it takes over the socket.
    this.#socket.on('data', this.#onData).on('end', this.#onEnd)
    this.#socket.on('error', this.#onClose).on('close', this.#onClose)
  }

  #greet(): void {
    const rule = this.#host.rules.find('CONNECT', this.#status)
    const reply = rule === undefined ? '220 {host} ESMTP' : rule.reply
    // After a 554 greeting the server waits for QUIT and replies 503 otherwise (RFC 5321 §3.1).
    if (reply?.startsWith('5') === true) this.#status.stage = 'refused'
    this.#applyRule('CONNECT', rule, reply)
    this.#writer.flush()
  }

  #handleInput(bytes: Buffer): void {
    if (!this.#greeted) this.#host.tally.pregreet += bytes.length
    if (this.#isInputIgnored) return
    this.#unread += this.#decoder.write(bytes)
    this.#processLines()
  }

  /** Processes complete lines until a reply is delayed. */
  #processLines(): void {
    let start = 0
    while (this.#replyTimer === undefined && !this.#isInputIgnored) {
      const end = this.#unread.indexOf('\n', start)
      if (end === -1) break
      const line = this.#unread.slice(start, end)
      start = end + 1
      this.#hasMore = start < this.#unread.length
      if (line.length <= LINE_MAX && line.endsWith('\r')) this.#handleCommand(line.slice(0, -1))
      else this.#rejectLine()
    }
    this.#unread = this.#unread.slice(start)
    if (this.#unread.length > LINE_MAX && this.#replyTimer === undefined) {
      this.#unread = ''
      this.#rejectLine()
    }
    this.#writer.flush()
  }

  #rejectLine(): void {
    this.#host.tally.badLines += 1
    this.#writer.reply('500 5.5.2 Error: line too long or not ended by CRLF')
  }

  #handleCommand(line: string): void {
    const verb = verbOf(line)
    this.#host.tally.command(verb)
    if (this.#isOutOfOrder(verb) && this.#host.behavior.strict === true) {
      this.#writer.reply('554 5.5.0 SMTP synchronization error')
      this.#closeSession()
      return
    }
    const fault = this.#status.faultOf(verb, line)
    if (fault !== undefined) {
      this.#writer.reply(fault)
      return
    }
    const rule = this.#host.rules.find(verb, this.#status)
    const reply = rule === undefined ? this.#defaultReply(verb) : rule.reply
    if ((reply ?? rule?.raw)?.startsWith('2') === true) this.#status.advance(verb)
    this.#applyRule(verb, rule, reply)
  }

  #isOutOfOrder(verb: string): boolean {
    const isOutOfOrder = this.#hasMore && (!this.#status.pipelining || MUST_BE_LAST.has(verb))
    if (isOutOfOrder) this.#host.tally.outOfOrder += 1
    return isOutOfOrder
  }

  #defaultReply(verb: string): string {
    if (verb !== 'EHLO') return DEFAULT_REPLIES[verb] ?? '500 5.5.2 Error: command not recognized'
    const starttls = this.#status.mayEncrypt ? ['STARTTLS'] : []
    const lines = ['{host}', ...this.#host.extensions, ...starttls]
    return lines.map((line, at) => `250${at < lines.length - 1 ? '-' : ' '}${line}`).join('\n')
  }

  #applyRule(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    const waitMs = (rule?.afterMs ?? 0) + (this.#host.behavior.replyMs ?? 0)
    if (waitMs === 0) {
      this.#sendReply(verb, rule, reply)
      return
    }
    this.#writer.flush()
    this.#replyTimer = setTimeout(() => {
      this.#replyTimer = undefined
      this.#sendReply(verb, rule, reply)
      this.#processLines()
    }, waitMs)
  }

  #sendReply(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    if (rule?.raw !== undefined) this.#writer.bytes(Buffer.from(rule.raw, 'latin1'))
    if (reply !== undefined) this.#writer.reply(fillPlaceholders(reply, this.#status))
    if (verb === 'CONNECT') this.#greeted = (reply ?? rule?.raw) !== undefined
    if (rule?.endless !== undefined) {
      this.#isInputIgnored = true
      this.#writer.replyForever(rule.endless)
    } else if (rule?.end === 'hang') {
      this.#writer.flush()
      this.#isInputIgnored = true
    } else if (rule?.end === 'reset') {
      this.#isInputIgnored = true
      this.#raw.resetAndDestroy()
    } else if (rule?.end === 'tls-alert') {
      this.#encrypt(UNABLE_TO_ENCRYPT)
    } else if (rule?.end === 'close' || verb === 'QUIT' || reply?.startsWith('421') === true) {
      this.#closeSession()
    } else if (verb === 'STARTTLS' && this.#status.secure) {
      this.#encrypt(this.#host.secureContext())
    }
  }

  #closeSession(): void {
    this.#isInputIgnored = true
    this.#caller.end()
    this.#writer.close()
  }

  /** Discards input received after STARTTLS, which an attacker may have injected. */
  #encrypt(secureContext: SecureContext): void {
    this.#writer.flush()
    this.#unread = ''
    this.#decoder = new StringDecoder('utf8')
    this.#raw.off('data', this.#onData).off('end', this.#onEnd)
    this.#socket = new TLSSocket(this.#raw, { isServer: true, secureContext })
    this.#writer = new ReplyWriter(this.#socket, this.#host.behavior.dripMs)
    this.#listen()
  }
}

/** Without a certificate there is no common cipher, so the handshake fails with an alert. */
const UNABLE_TO_ENCRYPT = createSecureContext()

/** Commands that must be the last of a pipelined group (RFC 2920 §3.1). */
const MUST_BE_LAST = new Set(['EHLO', 'HELO', 'STARTTLS', 'QUIT', 'NOOP', 'DATA', 'VRFY', 'EXPN'])

const DEFAULT_REPLIES: Readonly<Record<string, string>> = {
  HELO: '250 {host}',
  STARTTLS: '220 2.0.0 Ready to start TLS',
  MAIL: '250 2.1.0 Ok',
  RCPT: '250 2.1.5 Ok',
  RSET: '250 2.0.0 Ok',
  NOOP: '250 2.0.0 Ok',
  QUIT: '221 2.0.0 Bye',
}

function verbOf(line: string): string {
  const end = line.search(/[ :]/)
  return (end === -1 ? line : line.slice(0, end)).slice(0, 20).toUpperCase()
}

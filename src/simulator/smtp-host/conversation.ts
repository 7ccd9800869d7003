import { type SimulatedHost, filledIn, SessionState } from './session-state.ts'
import type { Duplex } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Caller, Rule } from './rule.ts'

/** What a server says: gathered, then sent at once, or byte by byte where it drips. */
class ReplyWriter {
  readonly #socket: Duplex
  readonly #dripMs: number | undefined
  #suppressed = ''
  #drops: Buffer = Buffer.alloc(0)
  #dripping: NodeJS.Timeout | undefined
  #last = false

  constructor(socket: Duplex, dripMs: number | undefined) {
    this.#socket = socket
    this.#dripMs = dripMs
  }

  /** A whole reply, `\n` between its lines; sent by the next `flush`. */
  say(reply: string): void {
    this.#suppressed += reply.includes('\n')
      ? `${reply.replaceAll('\n', '\r\n')}\r\n`
      : `${reply}\r\n`
  }

  /** Sends what was said. */
  flush(): void {
    if (this.#suppressed === '') return
    const text = this.#suppressed
    this.#suppressed = ''
    if (this.#dripMs === undefined) this.#write(text)
    else this.#drip(Buffer.from(text), this.#dripMs)
  }

  /** Sends bytes as they are, behind what was said. */
  bytes(bytes: Uint8Array): void {
    this.flush()
    this.#write(bytes)
  }

  /** Says a line again and again, as fast as the client reads. */
  replyForever(line: string): void {
    this.flush()
    const text = `${line}\r\n`.repeat(100)
    const more = () => {
      while (this.#write(text));
      if (!this.#socket.destroyed) this.#socket.once('drain', more)
    }
    more()
  }

  /** Ends the connection behind the last word. */
  close(): void {
    this.flush()
    this.#last = true
    if (this.#dripping === undefined) this.#socket.end()
  }

  /** Falls silent in the middle of a word. */
  hush(): void {
    clearTimeout(this.#dripping)
  }

  #write(text: string | Uint8Array): boolean {
    return !this.#socket.writableEnded && !this.#socket.destroyed && this.#socket.write(text)
  }

  #drip(bytes: Buffer, everyMs: number): void {
    this.#drops = Buffer.concat([this.#drops, bytes])
    const next = () => {
      this.#write(this.#drops.subarray(0, 1))
      this.#drops = this.#drops.subarray(1)
      this.#dripping = this.#drops.length > 0 ? setTimeout(next, everyMs) : undefined
      if (this.#dripping === undefined && this.#last) this.#socket.end()
    }
    this.#dripping ??= setTimeout(next, everyMs)
  }
}

/** What a line may hold at most (RFC 5321 §4.5.3.1.4 says 512; Postfix takes 2,048). */
const LINE_MAX = 2_048

/** A socket as a mail server sees it: near or far. */
export type Line = Duplex & { resetAndDestroy(): unknown }

/**
 * The server's side of one SMTP conversation: order and grammar by `Standing`, opinions by the rules of the
 * host. Replies to commands that came together leave together (RFC 2920 §3.2).
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
  /** Whether the client sent more behind the command at hand. */
  #more = false
  #greeted = false
  /** The server thinks; what comes waits. */
  #thinking: NodeJS.Timeout | undefined
  /** The server listens no more. */
  #deaf = false

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

  /** Ends it at once. */
  destroy(): void {
    clearTimeout(this.#thinking)
    this.#writer.hush()
    this.#deaf = true
    this.#socket.destroy()
    this.#raw.destroy()
  }

  readonly #onData = (bytes: Buffer) => this.#handleLine(bytes)
  readonly #onEnd = () => this.#hangUp()
  readonly #onGone = () => this.destroy()

  #listen(): void {
    // No setEncoding: TLS must find bytes where it takes over.
    this.#socket.on('data', this.#onData).on('end', this.#onEnd)
    this.#socket.on('error', this.#onGone).on('close', this.#onGone)
  }

  #greet(): void {
    const rule = this.#host.rules.find('CONNECT', this.#status)
    const reply = rule === undefined ? '220 {host} ESMTP' : rule.reply
    // RFC 5321 §3.1: who greets with 554 waits for QUIT and says 503 to all else.
    if (reply?.startsWith('5') === true) this.#status.stage = 'refused'
    this.#obey('CONNECT', rule, reply)
    this.#writer.flush()
  }

  #handleLine(bytes: Buffer): void {
    if (!this.#greeted) this.#host.tally.pregreet += bytes.length
    if (this.#deaf) return
    this.#unread += this.#decoder.write(bytes)
    this.#work()
  }

  /** Takes one line after another, as far as they have come and the server need not think. */
  #work(): void {
    let start = 0
    while (this.#thinking === undefined && !this.#deaf) {
      const end = this.#unread.indexOf('\n', start)
      if (end === -1) break
      const line = this.#unread.slice(start, end)
      start = end + 1
      this.#more = start < this.#unread.length
      if (line.length <= LINE_MAX && line.endsWith('\r')) this.#command(line.slice(0, -1))
      else this.#badLine()
    }
    this.#unread = this.#unread.slice(start)
    if (this.#unread.length > LINE_MAX && this.#thinking === undefined) {
      this.#unread = ''
      this.#badLine()
    }
    this.#writer.flush()
  }

  #badLine(): void {
    this.#host.tally.badLines += 1
    this.#writer.say('500 5.5.2 Error: line too long or not ended by CRLF')
  }

  #command(line: string): void {
    const verb = verbOf(line)
    this.#host.tally.command(verb)
    if (this.#isOutOfOrder(verb) && this.#host.behavior.strict === true) {
      this.#writer.say('554 5.5.0 SMTP synchronization error')
      this.#hangUp()
      return
    }
    const fault = this.#status.faultOf(verb, line)
    if (fault !== undefined) {
      this.#writer.say(fault)
      return
    }
    const rule = this.#host.rules.find(verb, this.#status)
    const reply = rule === undefined ? this.#politeReply(verb) : rule.reply
    if ((reply ?? rule?.raw)?.startsWith('2') === true) this.#status.advance(verb)
    this.#obey(verb, rule, reply)
  }

  #isOutOfOrder(verb: string): boolean {
    const wrong = this.#more && (!this.#status.pipelining || MUST_BE_LAST.has(verb))
    if (wrong) this.#host.tally.outOfOrder += 1
    return wrong
  }

  #politeReply(verb: string): string {
    if (verb !== 'EHLO') return POLITE[verb] ?? '500 5.5.2 Error: command not recognized'
    const starttls = this.#status.mayEncrypt ? ['STARTTLS'] : []
    const lines = ['{host}', ...this.#host.extensions, ...starttls]
    return lines.map((line, at) => `250${at < lines.length - 1 ? '-' : ' '}${line}`).join('\n')
  }

  #obey(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    const waitMs = (rule?.afterMs ?? 0) + (this.#host.behavior.replyMs ?? 0)
    if (waitMs === 0) {
      this.#utter(verb, rule, reply)
      return
    }
    this.#writer.flush()
    this.#thinking = setTimeout(() => {
      this.#thinking = undefined
      this.#utter(verb, rule, reply)
      this.#work()
    }, waitMs)
  }

  #utter(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    if (rule?.raw !== undefined) this.#writer.bytes(Buffer.from(rule.raw, 'latin1'))
    if (reply !== undefined) this.#writer.say(filledIn(reply, this.#status))
    if (verb === 'CONNECT') this.#greeted = (reply ?? rule?.raw) !== undefined
    if (rule?.endless !== undefined) {
      this.#deaf = true
      this.#writer.replyForever(rule.endless)
    } else if (rule?.end === 'hang') {
      this.#writer.flush()
      this.#deaf = true
    } else if (rule?.end === 'reset') {
      this.#deaf = true
      this.#raw.resetAndDestroy()
    } else if (rule?.end === 'tls-alert') {
      this.#encrypt(UNABLE_TO_ENCRYPT)
    } else if (rule?.end === 'close' || verb === 'QUIT' || reply?.startsWith('421') === true) {
      this.#hangUp()
    } else if (verb === 'STARTTLS' && this.#status.secure) {
      this.#encrypt(this.#host.secureContext())
    }
  }

  #hangUp(): void {
    this.#deaf = true
    this.#caller.over()
    this.#writer.close()
  }

  /** What was sent behind STARTTLS is thrown away: it may be an intruder's. */
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

/** Without a certificate there is no cipher to agree on: the handshake ends with an alert. */
const UNABLE_TO_ENCRYPT = createSecureContext()

/** Commands that end a group (RFC 2920 §3.1). */
const MUST_BE_LAST = new Set(['EHLO', 'HELO', 'STARTTLS', 'QUIT', 'NOOP', 'DATA', 'VRFY', 'EXPN'])

const POLITE: Readonly<Record<string, string>> = {
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
